/* paths.c - looking at, making, moving and removing entries. */
/* SPDX-License-Identifier: MIT */
#include "agent/files/file_call.h"
#include "agent/files/fault.h"
#include "agent/files/helper_side.h"

#include "base/err.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void
path_answer(struct helper_side *side, const char *name, const char *path, const char *to)
{
	struct json_object *body = json_object_new_object();

	json_object_object_add(body, "success", json_object_new_boolean(true));
	json_object_object_add(body, name, json_object_new_string(path));
	if (to != NULL)
		json_object_object_add(body, "to", json_object_new_string(to));
	helper_json(side, 200, body);
}

void
file_stat_run(struct helper_side *side, const void *arg)
{
	const struct file_call *call = arg;
	struct json_object *body;
	struct stat st, target;
	char *etag;

	if (!file_path_check(side, call->path))
		return;
	if (lstat(call->path, &st) < 0 || (call->follow && stat(call->path, &target) < 0)) {
		helper_refuse_errno(side, errno, "%s", call->path);
		return;
	}
	etag = file_etag(call->follow ? &target : &st);
	body = json_object_new_object();
	json_object_object_add(body, "path", json_object_new_string(call->path));
	file_entry_add(body, AT_FDCWD, call->path, &st);
	if (!call->follow) {
		json_object_object_add(
			body, "type", json_object_new_string(S_ISDIR(st.st_mode) ? "directory" : "file"));
		json_object_object_add(body, "size", json_object_new_int64(st.st_size));
	}
	json_object_object_add(body, "etag", json_object_new_string(etag));
	free(etag);
	helper_json(side, 200, body);
}

static int
path_mkdir(const struct file_call *call)
{
	struct stat st;
	bool there = lstat(call->path, &st) == 0;

	if (there && !call->parents) {
		errno = EEXIST;
		return -1;
	}
	if (call->parents ? file_make_dirs(call->path, 0777) < 0 : mkdir(call->path, 0777) < 0)
		return -1;
	return call->mode >= 0 && !there ? chmod(call->path, (mode_t)call->mode) : 0;
}

void
file_mkdir_run(struct helper_side *side, const void *arg)
{
	const struct file_call *call = arg;

	if (!file_path_check(side, call->path))
		return;
	if (path_mkdir(call) < 0)
		helper_refuse_errno(side, errno, "%s", call->path);
	else
		path_answer(side, "path", call->path, NULL);
}

/* Not every file system can refuse to overwrite by itself. */
static int
path_move(const struct file_call *call)
{
	struct stat st;

	if (call->overwrite)
		return rename(call->path, call->to);
	if (renameat2(AT_FDCWD, call->path, AT_FDCWD, call->to, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -1;
	if (lstat(call->to, &st) == 0) {
		errno = EEXIST;
		return -1;
	}
	return rename(call->path, call->to);
}

void
file_move_run(struct helper_side *side, const void *arg)
{
	const struct file_call *call = arg;
	AUTO_FREE char *parent = NULL;
	struct stat st;

	if (!file_path_check(side, call->path) || !file_path_check(side, call->to))
		return;
	if (lstat(call->path, &st) < 0) {
		helper_refuse_errno(side, errno, "%s", call->path);
		return;
	}
	parent = file_path_parent(call->to);
	if ((call->parents && file_make_dirs(parent, 0777) < 0) || path_move(call) < 0)
		helper_refuse_errno(side, errno, "%s to %s", call->path, call->to);
	else
		path_answer(side, "from", call->path, call->to);
}

/* What a tree as a whole failed with, as the errno that stands for it. */
static int
path_errno(enum err_code code)
{
	switch (code) {
	case ERR_DENIED:
		return EACCES;
	case ERR_NOT_FOUND:
		return ENOENT;
	case ERR_NO_SPACE: /* where an image's own file goes, a mark is written */
		return ENOSPC;
	case ERR_NO_CAPACITY:
		return ENOMEM;
	case ERR_BUSY:
	case ERR_CONFLICT:
		return EBUSY;
	default:
		return EIO;
	}
}

static void
path_remove_all(struct helper_side *side, const struct file_call *call)
{
	const struct fault *fault;
	struct err err;

	if (file_remove_tree_at(AT_FDCWD, call->path, &err) == 0) {
		path_answer(side, "path", call->path, NULL);
		return;
	}
	fault = fault_of_errno(path_errno(err.code));
	helper_refuse(side, fault->status, fault->code, "%s; what stood before it is removed already", err.msg);
}

/* rm refuses these too: d/. would be emptied before the kernel says that it cannot go, and d/.. is more than d. */
static bool
path_ends_in_dots(const char *path)
{
	size_t end = strlen(path), start;

	while (end > 1 && path[end - 1] == '/')
		end--;
	for (start = end; start > 0 && path[start - 1] != '/'; start--)
		;
	return (end - start == 1 && path[start] == '.') || (end - start == 2 && memcmp(path + start, "..", 2) == 0);
}

/* What stands at path itself: a slash behind a link leads to its directory, which is not what would go. */
static int
path_look(const char *path, struct stat *ret_st)
{
	char name[PATH_MAX];
	size_t len = strlen(path);

	if (lstat(path, ret_st) < 0)
		return -1;
	while (len > 1 && path[len - 1] == '/')
		len--;
	if (path[len] == '\0' || len >= sizeof name)
		return 0;
	memcpy(name, path, len);
	name[len] = '\0';
	if (lstat(name, ret_st) < 0)
		return -1;
	if (S_ISDIR(ret_st->st_mode))
		return 0;
	errno = ENOTDIR;
	return -1;
}

void
file_delete_run(struct helper_side *side, const void *arg)
{
	const struct file_call *call = arg;
	struct stat st;
	int rc;

	if (!file_path_check(side, call->path))
		return;
	if (path_look(call->path, &st) < 0) {
		helper_refuse_errno(side, errno, "%s", call->path);
		return;
	}
	if (path_ends_in_dots(call->path)) {
		helper_refuse(
			side, 400, "invalid", "%s: name what is to be removed, not \".\" or \"..\"", call->path);
		return;
	}
	if (S_ISDIR(st.st_mode) && call->recursive) {
		path_remove_all(side, call);
		return;
	}
	rc = S_ISDIR(st.st_mode) ? rmdir(call->path) : unlink(call->path);
	if (rc == 0)
		path_answer(side, "path", call->path, NULL);
	else if (errno == ENOTEMPTY || errno == EEXIST)
		helper_refuse(side, 409, "not_empty",
			"%s: the directory is not empty; recursive=1 removes all of it", call->path);
	else
		helper_refuse_errno(side, errno, "%s", call->path);
}
