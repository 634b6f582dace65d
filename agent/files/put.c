/*
 * put.c - a file is replaced whole or not at all.
 *
 * What comes goes into a file without a name or, where there are none, with one that nobody knows; only when all of
 * it is there it takes the place of the old one. The replaced file's mode and owner are kept, without its setuid and
 * setgid bits, as write() would. So replacing needs more than open(): the right to write it, and, but for root, to own
 * it.
 */
/* SPDX-License-Identifier: MIT */
#include "agent/files/file_call.h"
#include "agent/files/helper_side.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/id.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PUT_PIECE = 64 * 1024, PUT_MAX_LINKS = 40, PUT_RESERVE_FROM = 1024 * 1024, PUT_DEFAULT_MODE = 0644 };

struct put {
	struct helper_side *side;
	const struct file_call *call;
	char *target; /* the path with the links at its end followed */
	char *parent;
	const char *name; /* the last part of target */
	int dir_fd;
	bool replaces;
	bool foreign; /* what it would replace belongs to another user */
	struct stat old;
	int fd; /* what is being written */
	bool named; /* it has the name temporary */
	char temporary[64];
	int64_t size;
};

static const char *
last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash == NULL ? path : slash + 1;
}

static char *
follow_one(const char *path, const char *link)
{
	size_t parent = (size_t)(last_part(path) - path);

	return link[0] == '/' ? alloc_string(link) : alloc_format("%.*s%s", (int)parent, path, link);
}

/* Where open() would end. 0 or -1 with errno. */
static int
put_follow(struct put *put)
{
	char link[PATH_MAX];

	put->target = alloc_string(put->call->path);
	for (int i = 0; i <= PUT_MAX_LINKS; i++) {
		ssize_t len = readlink(put->target, link, sizeof link - 1);
		char *next;

		if (len < 0)
			return errno == EINVAL || errno == ENOENT || errno == ENOTDIR ? 0 : -1;
		link[len] = '\0';
		next = follow_one(put->target, link);
		free(put->target);
		put->target = next;
	}
	errno = ELOOP;
	return -1;
}

static int
put_open_parent(struct put *put)
{
	put->name = last_part(put->target);
	if (*put->name == '\0' || strcmp(put->name, ".") == 0 || strcmp(put->name, "..") == 0) {
		errno = EISDIR;
		return -1;
	}
	put->parent = file_path_parent(put->target);
	if (file_make_dirs(put->parent, 0777) < 0)
		return -1;
	put->dir_fd = open(put->parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return put->dir_fd < 0 ? -1 : 0;
}

/* What stands there now may be replaced. */
static int
put_check_old(struct put *put)
{
	if (fstatat(put->dir_fd, put->name, &put->old, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -1;
	put->replaces = true;
	if (!S_ISREG(put->old.st_mode)) {
		errno = S_ISDIR(put->old.st_mode) ? EISDIR : ENXIO;
		return -1;
	}
	if (faccessat(put->dir_fd, put->name, W_OK, 0) < 0)
		return -1;
	put->foreign = geteuid() != 0 && put->old.st_uid != geteuid();
	errno = EACCES;
	return put->foreign ? -1 : 0;
}

/* The agent knows the name before the file has it. */
static void
put_announce(struct put *put)
{
	AUTO_FREE char *path = NULL;
	char id[ID_UUID_SIZE];

	id_uuid4(id);
	snprintf(put->temporary, sizeof put->temporary, ".orchard-%s", id);
	path = alloc_format("%s/%s", put->parent, put->temporary);
	helper_leave_nothing(put->side, path);
}

static int
put_open_new(struct put *put)
{
	char proc[64];

	put->fd = openat(put->dir_fd, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	snprintf(proc, sizeof proc, "/proc/self/fd/%d", put->fd);
	if (put->fd >= 0 && access(proc, F_OK) == 0)
		return 0;
	if (put->fd >= 0)
		close(put->fd);
	put_announce(put);
	put->fd = openat(put->dir_fd, put->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	put->named = put->fd >= 0;
	return put->fd < 0 ? -1 : 0;
}

/* A body that cannot fit is refused before it is sent. Not every file system can tell. */
static int
put_reserve(struct put *put)
{
	int64_t length = helper_length(put->side);

	if (length < PUT_RESERVE_FROM || fallocate(put->fd, FALLOC_FL_KEEP_SIZE, 0, length) == 0)
		return 0;
	return errno == ENOSPC || errno == EDQUOT || errno == EFBIG ? -1 : 0;
}

/* 0, -1 with errno, or 1: cut. */
static int
put_write(struct put *put)
{
	static char piece[PUT_PIECE];
	ssize_t got;

	while ((got = helper_read(put->side, piece, sizeof piece)) > 0) {
		if (file_write_all(put->fd, piece, (size_t)got) < 0)
			return -1;
		put->size += got;
	}
	return got < 0 ? 1 : 0;
}

/* Some file systems tell that a write has failed only when a descriptor closes. */
static int
put_settle(struct put *put)
{
	int mode = put->call->mode >= 0 ? put->call->mode : PUT_DEFAULT_MODE;
	int copy;

	if (put->replaces && put->call->mode < 0)
		mode = put->old.st_mode & 01777;
	if (put->replaces && (put->old.st_uid != geteuid() || put->old.st_gid != getegid()) &&
		fchown(put->fd, put->old.st_uid, put->old.st_gid) < 0 && put->old.st_uid != geteuid())
		return -1;
	if (fchmod(put->fd, (mode_t)mode) < 0 || (put->call->sync && fsync(put->fd) < 0))
		return -1;
	copy = dup(put->fd);
	return copy < 0 ? -1 : close(copy);
}

static int
put_name(struct put *put)
{
	char proc[64];

	if (put->named)
		return 0;
	put_announce(put);
	snprintf(proc, sizeof proc, "/proc/self/fd/%d", put->fd);
	if (linkat(AT_FDCWD, proc, put->dir_fd, put->temporary, AT_SYMLINK_FOLLOW) < 0)
		return -1;
	put->named = true;
	return 0;
}

static int
put_replace(struct put *put)
{
	int fd;

	if (put_settle(put) < 0 || put_name(put) < 0)
		return -1;
	if (renameat(put->dir_fd, put->temporary, put->dir_fd, put->name) < 0)
		return -1;
	put->named = false;
	if (!put->call->sync)
		return 0;
	fd = openat(put->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno == EACCES ? 0 : -1;
	if (fsync(fd) < 0)
		return -1;
	return close(fd);
}

static void
put_answer(struct put *put)
{
	struct json_object *body = json_object_new_object();

	json_object_object_add(body, "success", json_object_new_boolean(true));
	json_object_object_add(body, "path", json_object_new_string(put->call->path));
	json_object_object_add(body, "size", json_object_new_int64(put->size));
	helper_json(put->side, 200, body);
}

static void
put_refuse(struct put *put, int errnum)
{
	const char *path = put->call->path;

	if (put->foreign)
		helper_refuse(put->side, 403, "permission_denied",
			"%s: it belongs to another user; only its owner or root can replace it", path);
	else
		helper_refuse_errno(put->side, errnum, "%s", path);
}

static int
put_prepare(struct put *put)
{
	if (put_follow(put) < 0 || put_open_parent(put) < 0 || put_check_old(put) < 0)
		return -1;
	return put_open_new(put) < 0 ? -1 : put_reserve(put);
}

void
file_put_run(struct helper_side *side, const void *arg)
{
	const struct file_call *call = arg;
	struct put put = { .side = side, .call = call, .dir_fd = -1, .fd = -1 };
	int rc;

	if (!file_path_check(side, call->path))
		return;
	rc = put_prepare(&put);
	if (rc == 0)
		rc = put_write(&put);
	if (rc == 0)
		rc = put_replace(&put);

	int errnum = errno;

	if (put.named)
		(void)!unlinkat(put.dir_fd, put.temporary, 0);
	if (rc == 0)
		put_answer(&put);
	else if (rc < 0)
		put_refuse(&put, errnum);
}
