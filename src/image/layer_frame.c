/* layer_frame.c - finds the directories that are implied, asks the layers for each from the top down, as overlayfs does. */
/* SPDX-License-Identifier: MIT */
#include "image/layer_frame.h"

#include "base/alloc.h"
#include "base/err.h"
#include "base/text.h"
#include "image/oci_layout.h"
#include "image/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#define OPAQUE_XATTR "trusted.overlay.opaque"

struct frame_dir {
	char *path; /* owned */
	struct stat st;
};

struct paths {
	char **list;
	size_t count, room;
};

struct search {
	int *layers; /* lowest first */
	size_t layer_count;
	struct layer_frame *frame;
	size_t room;
};

/* What a layer has at a path, and what the layers have together. */
enum presence { ABSENT, COVERED, IMPLIED, EXPLICIT };
enum sight { SIGHT_NONE, SIGHT_IMPLIED, SIGHT_TOP, SIGHT_BELOW };

static void
paths_add(struct paths *paths, char *path)
{
	if (paths->count == paths->room) {
		paths->room = paths->room * 2 + 64;
		paths->list = alloc_resize(paths->list, paths->room * sizeof *paths->list);
	}
	paths->list[paths->count++] = path;
}

static void
paths_free(struct paths *paths)
{
	for (size_t i = 0; i < paths->count; i++)
		free(paths->list[i]);
	free(paths->list);
}

static int
open_dir(int layer, const char *path)
{
	struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV };

	return (int)syscall(SYS_openat2, layer, path[0] != '\0' ? path : ".", &how, sizeof how);
}

static bool
is_marked(int fd, const char *attribute)
{
	char value;

	return fgetxattr(fd, attribute, &value, 1) == 1 && value == 'y';
}

/* --- what is seen at a path --- */

static enum presence
presence_of(int fd, struct stat *ret_st)
{
	if (fstat(fd, ret_st) != 0)
		return COVERED;
	return is_marked(fd, UNPACK_IMPLIED_XATTR) ? IMPLIED : EXPLICIT;
}

/* *ret_ends: whatever layers below have there is not seen. */
static enum presence
look_in_layer(int layer, const char *path, struct stat *ret_st, bool *ret_ends)
{
	AUTO_FREE char *part = alloc_string(path);
	char *end = part;

	*ret_ends = is_marked(layer, OPAQUE_XATTR);
	for (;;) {
		AUTO_FD fd = -1;
		bool whole;

		end += strcspn(end, "/");
		whole = *end == '\0';
		*end = '\0';
		fd = open_dir(layer, part);
		if (fd < 0)
			return errno == ENOENT ? ABSENT : COVERED;
		*ret_ends = *ret_ends || is_marked(fd, OPAQUE_XATTR);
		if (whole)
			return presence_of(fd, ret_st);
		*end++ = '/';
	}
}

/* *ret_layers: how many were found to have it, down to the first that has it by itself. */
static enum sight
look(const struct search *search, const char *path, struct stat *ret_st, size_t *ret_layers)
{
	enum sight sight = SIGHT_NONE;
	bool ends = false;

	*ret_layers = 0;
	for (size_t i = search->layer_count; i-- > 0 && !ends;) {
		struct stat st;
		enum presence presence = look_in_layer(search->layers[i], path, &st, &ends);

		if (presence == COVERED)
			break;
		if (presence == ABSENT)
			continue;
		++*ret_layers;
		if (presence == EXPLICIT || sight == SIGHT_NONE)
			*ret_st = st;
		if (presence == EXPLICIT)
			return sight == SIGHT_NONE ? SIGHT_TOP : SIGHT_BELOW;
		sight = SIGHT_IMPLIED;
	}
	return sight;
}

/* --- what the frame needs --- */

static void
frame_add(struct search *search, const char *path, const struct stat *st)
{
	struct layer_frame *frame = search->frame;

	if (frame->count == search->room) {
		search->room = search->room * 2 + 16;
		frame->dirs = alloc_resize(frame->dirs, search->room * sizeof *frame->dirs);
	}
	frame->dirs[frame->count++] = (struct frame_dir){ alloc_string(path), *st };
}

static void
add_parents(struct search *search, const char *path)
{
	AUTO_FREE char *part = alloc_string(path);
	struct stat st;
	size_t layers;

	for (char *slash; (slash = strrchr(part, '/')) != NULL;) {
		*slash = '\0';
		if (look(search, part, &st, &layers) != SIGHT_NONE)
			frame_add(search, part, &st);
	}
}

static bool
is_plain(const struct stat *st)
{
	return st->st_uid == 0 && st->st_gid == 0 && (st->st_mode & 07777) == 0755;
}

/* False: no other layer shows anything at this path, so none does below it. */
static bool
consider(struct search *search, const char *path)
{
	struct stat st;
	size_t layers;
	enum sight sight = look(search, path, &st, &layers);

	if (sight == SIGHT_BELOW && !is_plain(&st)) {
		frame_add(search, path, &st);
		add_parents(search, path);
	}
	return sight == SIGHT_TOP || sight == SIGHT_BELOW || layers > 1;
}

static int
add_below(DIR *directory, const char *path, struct paths *todo)
{
	const struct dirent *entry;
	struct stat st;

	while (errno = 0, (entry = readdir(directory)) != NULL) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
			(entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN))
			continue;
		if (fstatat(dirfd(directory), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
			return -1;
		if (S_ISDIR(st.st_mode))
			paths_add(todo, alloc_format("%s%s%s", path, path[0] != '\0' ? "/" : "", entry->d_name));
	}
	return errno != 0 ? -1 : 0;
}

static int
visit(struct search *search, int layer, const char *path, struct paths *todo)
{
	AUTO_FD fd = open_dir(layer, path);
	AUTO_DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;

	if (directory == NULL)
		return -1;
	fd = -1; /* the list's from now on */
	if (path[0] != '\0' && is_marked(dirfd(directory), UNPACK_IMPLIED_XATTR) && !consider(search, path))
		return 0;
	return add_below(directory, path, todo);
}

/* One directory is open at a time, however deep they are nested. */
static int
search_layer(struct search *search, int layer)
{
	struct paths todo = { 0 };
	int rc = 0;

	paths_add(&todo, alloc_string(""));
	while (rc == 0 && todo.count > 0) {
		AUTO_FREE char *path = todo.list[--todo.count];

		rc = visit(search, layer, path, &todo);
	}
	paths_free(&todo);
	return rc;
}

static int
compare(const void *a, const void *b)
{
	return strcmp(((const struct frame_dir *)a)->path, ((const struct frame_dir *)b)->path);
}

static void
sort_out(struct layer_frame *frame)
{
	size_t kept = 0;

	if (frame->count == 0)
		return;
	qsort(frame->dirs, frame->count, sizeof *frame->dirs, compare);
	for (size_t i = 0; i < frame->count; i++) {
		if (kept > 0 && strcmp(frame->dirs[kept - 1].path, frame->dirs[i].path) == 0)
			free(frame->dirs[i].path);
		else
			frame->dirs[kept++] = frame->dirs[i];
	}
	frame->count = kept;
}

static void
name_it(struct layer_frame *frame)
{
	AUTO_FREE char *text = NULL;
	size_t len = 0;
	FILE *out = must_alloc(open_memstream(&text, &len));

	for (size_t i = 0; i < frame->count; i++) {
		const struct stat *st = &frame->dirs[i].st;

		fprintf(out, "%o %u %u %lld.%09ld %s", st->st_mode & 07777, st->st_uid, st->st_gid,
			(long long)st->st_mtim.tv_sec, st->st_mtim.tv_nsec, frame->dirs[i].path);
		fputc('\0', out);
	}
	if (fclose(out) != 0)
		abort(); /* as without memory */
	text_sha256_hex(text, len, frame->layer.digest);
	frame->layer.size = -1;
}

static int
search_layers(struct search *search, int images_fd, const struct oci_image *image)
{
	for (size_t i = 0; i < image->layer_count; i++) {
		char path[OCI_NAME_SIZE];

		snprintf(path, sizeof path, "layers/%.64s", image->layers[i].digest);
		search->layers[i] = openat(images_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (search->layers[i] < 0)
			return -1;
		search->layer_count++;
	}
	for (size_t i = 1; i < search->layer_count; i++) {
		if (is_marked(search->layers[i], UNPACK_IMPLIED_XATTR) &&
			search_layer(search, search->layers[i]) != 0)
			return -1;
	}
	return 0;
}

int
layer_frame_find(int images_fd, const struct oci_image *image, struct layer_frame *ret, struct err *err)
{
	struct search search = { .layers = alloc_zero(image->layer_count + 1, sizeof(int)), .frame = ret };
	int rc;

	*ret = (struct layer_frame){ .count = 0 };
	rc = search_layers(&search, images_fd, image);
	if (rc != 0)
		err_set_errno(err, errno, "look for directories that layers imply");
	sort_out(ret);
	name_it(ret);
	for (size_t i = 0; i < search.layer_count; i++)
		close(search.layers[i]);
	free(search.layers);
	if (rc != 0)
		layer_frame_free(ret);
	return rc;
}

void
layer_frame_free(struct layer_frame *frame)
{
	for (size_t i = 0; i < frame->count; i++)
		free(frame->dirs[i].path);
	free(frame->dirs);
	*frame = (struct layer_frame){ .count = 0 };
}

static int
write_dir(int dir_fd, const struct frame_dir *dir)
{
	AUTO_FD fd = -1;

	if (mkdirat(dir_fd, dir->path, 0700) != 0)
		return -1;
	fd = open_dir(dir_fd, dir->path);
	if (fd < 0 || fchown(fd, dir->st.st_uid, dir->st.st_gid) != 0)
		return -1;
	return fchmod(fd, dir->st.st_mode & 07777);
}

int
layer_frame_write(const struct layer_frame *frame, int dir_fd, struct err *err)
{
	for (size_t i = 0; i < frame->count; i++) {
		if (write_dir(dir_fd, &frame->dirs[i]) != 0)
			return err_set_errno(err, errno, "directories that layers imply");
	}
	for (size_t i = frame->count; i-- > 0;) {
		const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, frame->dirs[i].st.st_mtim };

		(void)utimensat(dir_fd, frame->dirs[i].path, times, AT_SYMLINK_NOFOLLOW);
	}
	return 0;
}
