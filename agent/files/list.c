/*
 * list.c - a directory in the order of its names, of any size.
 *
 * Names are gathered LIST_BATCH at a time: each pass over the directory keeps the smallest ones behind the last
 * batch, in a heap. So memory is bounded, and the whole costs a pass for each batch. Entries that come or go
 * meanwhile are told or not; no name is told twice.
 */
/* SPDX-License-Identifier: MIT */
#include "agent/files/file_call.h"
#include "agent/files/helper_side.h"

#include "base/alloc.h"
#include "base/json.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { LIST_BATCH = 8192, LIST_BUFFER = 64 * 1024 };

struct list {
	struct helper_side *side;
	const struct file_call *call;
	DIR *dir;
	char **names; /* a heap, the largest first; sorted once a pass is over; see name_create() */
	size_t count;
	char *last; /* the name before the next one; NULL: none */
	int64_t left; /* entries that may still be told */
	bool more; /* there were names that found no room in the batch */
	bool begun, any, cut;
	size_t buffered;
	char buffer[LIST_BUFFER];
};

/* --- the heap --- */

static void
list_sink(struct list *list, size_t at)
{
	for (;;) {
		size_t child = 2 * at + 1;
		char *name;

		if (child >= list->count)
			return;
		if (child + 1 < list->count && strcmp(list->names[child + 1], list->names[child]) > 0)
			child++;
		if (strcmp(list->names[at], list->names[child]) >= 0)
			return;
		name = list->names[at];
		list->names[at] = list->names[child];
		list->names[child] = name;
		at = child;
	}
}

static void
list_rise(struct list *list, size_t at)
{
	while (at > 0 && strcmp(list->names[at], list->names[(at - 1) / 2]) > 0) {
		char *name = list->names[at];

		list->names[at] = list->names[(at - 1) / 2];
		list->names[(at - 1) / 2] = name;
		at = (at - 1) / 2;
	}
}

/* Its d_type stands behind its NUL. */
static char *
name_create(const struct dirent *entry)
{
	size_t size = strlen(entry->d_name) + 1;
	char *name = alloc_zero(1, size + 1);

	memcpy(name, entry->d_name, size);
	name[size] = (char)entry->d_type;
	return name;
}

static unsigned char
name_type(const char *name)
{
	return (unsigned char)name[strlen(name) + 1];
}

static void
list_keep(struct list *list, const struct dirent *entry)
{
	const char *name = entry->d_name;

	if (list->count < LIST_BATCH) {
		list->names[list->count] = name_create(entry);
		list_rise(list, list->count++);
		return;
	}
	list->more = true;
	if (strcmp(name, list->names[0]) >= 0)
		return;
	free(list->names[0]);
	list->names[0] = name_create(entry);
	list_sink(list, 0);
}

static int
list_compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* 0 or -1 with errno. */
static int
list_gather(struct list *list)
{
	struct dirent *entry;

	list->more = false;
	rewinddir(list->dir);
	for (errno = 0; (entry = readdir(list->dir)) != NULL; errno = 0) {
		const char *name = entry->d_name;

		if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
			(list->last == NULL || strcmp(name, list->last) > 0))
			list_keep(list, entry);
	}
	if (errno != 0)
		return -1;
	qsort(list->names, list->count, sizeof list->names[0], list_compare);
	return 0;
}

/* --- the answer --- */

static void
list_flush(struct list *list)
{
	if (!list->cut && helper_write(list->side, list->buffer, list->buffered) < 0)
		list->cut = true;
	list->buffered = 0;
}

static void
list_put(struct list *list, const char *text, size_t len)
{
	while (len > 0) {
		size_t room = LIST_BUFFER - list->buffered, part = len < room ? len : room;

		memcpy(list->buffer + list->buffered, text, part);
		list->buffered += part;
		text += part;
		len -= part;
		if (list->buffered == LIST_BUFFER)
			list_flush(list);
	}
}

/* Takes value. */
static void
list_put_json(struct list *list, struct json_object *value)
{
	size_t len;
	AUTO_FREE char *text = json_text_names(value, &len);

	list_put(list, text, len);
	json_object_put(value);
}

static void
list_put_text(struct list *list, const char *text)
{
	list_put(list, text, strlen(text));
}

static void
list_begin(struct list *list)
{
	struct helper_head head = { .status = 200, .content_type = "application/json", .length = -1 };

	list->begun = true;
	helper_begin(list->side, &head);
	list_put_text(list, "{\"path\":");
	list_put_json(list, json_object_new_string(list->call->path));
	list_put_text(list, ",\"files\":[");
}

/* What has vanished meanwhile is skipped; what may not be looked at is told as the directory knows it. */
static void
list_entry(struct list *list, const char *name)
{
	struct json_object *entry;
	struct stat st;
	int fd = dirfd(list->dir);
	bool known = fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;

	if (!known && errno == ENOENT)
		return;
	entry = json_object_new_object();
	json_object_object_add(entry, "name", json_object_new_string(name));
	if (known)
		file_entry_add(entry, fd, name, &st);
	else
		file_entry_add_unknown(entry, name_type(name));
	if (list->any)
		list_put_text(list, ",");
	list->any = true;
	list->left--;
	list_put_json(list, entry);
}

/* Tells the batch, as far as it is wanted; true: it was the last one. */
static bool
list_tell(struct list *list)
{
	bool last = !list->more;

	for (size_t i = 0; i < list->count; i++) {
		if (list->left > 0 && !list->cut) {
			list_entry(list, list->names[i]);
			free(list->last);
			list->last = list->names[i];
		} else {
			list->more = true;
			free(list->names[i]);
		}
	}
	list->count = 0;
	return last || list->left <= 0 || list->cut;
}

static void
list_end(struct list *list)
{
	list_put_text(list, list->more ? "],\"truncated\":true,\"next\":" : "],\"truncated\":false,\"next\":");
	list_put_json(list, list->more && list->last != NULL ? json_object_new_string(list->last) : NULL);
	list_put_text(list, "}");
	list_flush(list);
	if (!list->cut)
		helper_end(list->side);
}

static void
list_run(struct list *list)
{
	int rc;

	list->names = alloc_zero(LIST_BATCH, sizeof list->names[0]);
	do {
		rc = list_gather(list);
		if (rc < 0 && !list->begun)
			helper_refuse_errno(list->side, errno, "%s", list->call->path);
		if (rc < 0)
			return;
		if (!list->begun)
			list_begin(list);
	} while (!list_tell(list));
	list_end(list);
}

/* Opening a fifo as a directory is refused by the kernel before it could wait. */
void
file_list_run(struct helper_side *side, const void *arg)
{
	static struct list list;
	int fd;

	list.side = side;
	list.call = arg;
	list.left = list.call->limit;
	if (!file_path_check(side, list.call->path))
		return;
	fd = open(list.call->path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
	list.dir = fd < 0 ? NULL : fdopendir(fd);
	if (list.dir == NULL) {
		helper_refuse_errno(side, errno, "%s", list.call->path);
		return;
	}
	if (list.call->after != NULL)
		list.last = alloc_string(list.call->after);
	list_run(&list);
}
