/* walk.c - a stack of open directories: deep trees need no deep stack, and no path of any length. */
/* SPDX-License-Identifier: MIT */
#include "agent/tar/walk.h"

#include "base/alloc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>

struct level {
	DIR *dir;
	size_t path_len;
};

struct walk {
	const struct walk_ops *ops;
	struct level *levels;
	size_t depth, size;
	char *path;
	size_t path_size;
};

static bool
is_made_up(int fd)
{
	static const long kinds[] = { PROC_SUPER_MAGIC, SYSFS_MAGIC, CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC,
		DEVPTS_SUPER_MAGIC, DEBUGFS_MAGIC, TRACEFS_MAGIC, SECURITYFS_MAGIC, BPF_FS_MAGIC };
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return false;
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if (fs.f_type == kinds[i])
			return true;
	return false;
}

/* Takes fd. */
static int
walk_enter(struct walk *walk, int fd, size_t path_len)
{
	int errnum = errno;
	DIR *dir;

	if (fd >= 0 && is_made_up(fd)) {
		close(fd);
		return 0;
	}
	dir = fd >= 0 ? fdopendir(fd) : NULL;
	if (dir == NULL) {
		if (fd >= 0)
			close(fd);
		if (fd < 0 && errnum == ENOENT && path_len > 0)
			return 0; /* gone meanwhile */
		return walk->ops->on_unreadable(walk->path, errnum, walk->ops->arg);
	}
	if (walk->depth == walk->size) {
		walk->size = walk->size > 0 ? walk->size * 2 : 16;
		walk->levels = alloc_resize(walk->levels, walk->size * sizeof *walk->levels);
	}
	walk->levels[walk->depth++] = (struct level){ .dir = dir, .path_len = path_len };
	return 0;
}

/* The path of that name in the current directory, with a slash behind for a directory. */
static size_t
walk_name(struct walk *walk, const char *name, bool is_dir)
{
	size_t at = walk->levels[walk->depth - 1].path_len, len = strlen(name);

	if (at + len + 2 > walk->path_size) {
		walk->path_size = (at + len + 2) * 2;
		walk->path = alloc_resize(walk->path, walk->path_size);
	}
	memcpy(walk->path + at, name, len);
	at += len;
	if (is_dir)
		walk->path[at++] = '/';
	walk->path[at] = '\0';
	return at;
}

static int
walk_entry(struct walk *walk, const char *name)
{
	struct walk_entry entry = { .dir_fd = dirfd(walk->levels[walk->depth - 1].dir), .name = name };
	size_t len;
	int rc;

	if (fstatat(entry.dir_fd, name, &entry.st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno == ENOENT)
			return 0;
		rc = errno;
		walk_name(walk, name, false);
		return walk->ops->on_unreadable(walk->path, rc, walk->ops->arg);
	}
	len = walk_name(walk, name, S_ISDIR(entry.st.st_mode));
	entry.path = walk->path;
	rc = walk->ops->on_entry(&entry, walk->ops->arg);
	if (rc != 0 || !S_ISDIR(entry.st.st_mode))
		return rc;
	return walk_enter(walk,
		openat(entry.dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), len);
}

static int
walk_step(struct walk *walk)
{
	DIR *dir = walk->levels[walk->depth - 1].dir;
	struct dirent *found;

	errno = 0;
	found = readdir(dir);
	if (found != NULL && (strcmp(found->d_name, ".") == 0 || strcmp(found->d_name, "..") == 0))
		return 0;
	if (found != NULL)
		return walk_entry(walk, found->d_name);
	walk->path[walk->levels[walk->depth - 1].path_len] = '\0';
	walk->depth--;
	if (errno != 0) {
		int errnum = errno;

		closedir(dir);
		return walk->ops->on_unreadable(walk->path, errnum, walk->ops->arg);
	}
	closedir(dir);
	return 0;
}

int
walk_tree(int root_fd, const struct walk_ops *ops)
{
	struct walk walk = { .ops = ops, .path = alloc_zero(1, 256), .path_size = 256 };
	int rc = walk_enter(&walk, root_fd, 0);

	while (rc == 0 && walk.depth > 0)
		rc = walk_step(&walk);
	while (walk.depth > 0)
		closedir(walk.levels[--walk.depth].dir);
	free(walk.levels);
	free(walk.path);
	return rc;
}
