/*
 * file_tree.c - removes a directory tree of any depth and width, for trees whose
 * content nobody vouches for.
 *
 * The walk keeps its own stack of levels. Only the innermost TREE_OPEN_MAX levels
 * hold an open directory; the ones further out are opened again as ".." on the way
 * back, and the walk stops unless that is the very directory it came from. Every
 * name is looked up from an open directory and never through a link, so moving
 * things about meanwhile cannot lead the walk elsewhere.
 */
/* SPDX-License-Identifier: MIT */
#include "base/file.h"
#include "base/alloc.h"
#include "base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

enum {
	TREE_OPEN_MAX = 32,
	TREE_RETRY_MAX = 64, /* passes over one directory that others keep filling */
};

struct tree_level {
	DIR *dir; /* NULL: closed to save descriptors */
	dev_t dev;
	ino_t ino;
	unsigned retries;
	char *name; /* in the level above */
};

struct tree_walk {
	int top_fd; /* borrowed */
	struct tree_level *levels;
	size_t depth, room;
	struct err *err;
};

static struct tree_level *
tree_top(struct tree_walk *walk)
{
	return &walk->levels[walk->depth - 1];
}

static int
tree_parent_fd(struct tree_walk *walk)
{
	return walk->depth > 0 ? dirfd(tree_top(walk)->dir) : walk->top_fd;
}

/* Opens name as a directory, giving its owner all rights first if it must. -1 with errno. */
static int
tree_open_dir(int parent, const char *name)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(parent, name, flags);
	char proc_path[64];
	AUTO_FD handle = -1;
	struct stat st;

	if (fd >= 0 || errno != EACCES)
		return fd;
	handle = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (handle < 0 || fstat(handle, &st) < 0)
		return -1;
	snprintf(proc_path, sizeof proc_path, "/proc/self/fd/%d", handle);
	if (chmod(proc_path, (st.st_mode & 07777) | 0700) < 0)
		return -1;
	return openat(parent, name, flags);
}

static int
tree_check_same_filesystem(struct tree_walk *walk, int fd, const char *name, const struct stat *st)
{
	struct statx stx;

	if (walk->depth > 0 && tree_top(walk)->dev != st->st_dev)
		return err_set(
			walk->err, ERR_CONFLICT, "%s: another filesystem is mounted there; unmount it first", name);
	if (statx(fd, "", AT_EMPTY_PATH, STATX_TYPE, &stx) == 0 &&
		(stx.stx_attributes & stx.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) != 0)
		return err_set(walk->err, ERR_CONFLICT, "%s: it is a mount point; unmount it first", name);
	return 0;
}

/* Takes fd over. */
static int
tree_set_dir(struct tree_walk *walk, struct tree_level *level, int fd)
{
	level->dir = fdopendir(fd);
	if (level->dir != NULL)
		return 0;
	err_set_errno(walk->err, errno, "read directory %s", level->name);
	close(fd);
	return -1;
}

/* Goes down into name. 1: done, 0: name is gone or no directory any more, -1: failed. */
static int
tree_enter(struct tree_walk *walk, const char *name)
{
	AUTO_FD fd = tree_open_dir(tree_parent_fd(walk), name);
	struct tree_level *level;
	struct stat st;

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set_errno(walk->err, errno, "open directory %s", name);
	if (tree_check_same_filesystem(walk, fd, name, &st) < 0)
		return -1;
	/* Not ours to change: then removing what is inside says so. */
	if ((st.st_mode & 0700) != 0700)
		(void)!fchmod(fd, (st.st_mode & 07777) | 0700);
	if (walk->depth == walk->room) {
		walk->room = walk->room == 0 ? TREE_OPEN_MAX : walk->room * 2;
		walk->levels = alloc_resize(walk->levels, walk->room * sizeof walk->levels[0]);
	}
	level = &walk->levels[walk->depth++];
	*level = (struct tree_level){ .dev = st.st_dev, .ino = st.st_ino, .name = alloc_string(name) };
	if (walk->depth > TREE_OPEN_MAX) {
		struct tree_level *outer = level - TREE_OPEN_MAX;

		if (outer->dir != NULL)
			closedir(outer->dir);
		outer->dir = NULL;
	}
	return tree_set_dir(walk, level, STEAL_FD(fd)) < 0 ? -1 : 1;
}

static void
tree_drop_level(struct tree_walk *walk)
{
	struct tree_level *level = tree_top(walk);

	if (level->dir != NULL)
		closedir(level->dir);
	free(level->name);
	walk->depth--;
}

/* Makes sure that the level above the innermost one is open. */
static int
tree_reopen_above(struct tree_walk *walk)
{
	struct tree_level *level = tree_top(walk), *above = level - 1;
	AUTO_FD fd = -1;
	struct stat st;

	if (walk->depth < 2 || above->dir != NULL)
		return 0;
	fd = openat(dirfd(level->dir), "..", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set_errno(walk->err, errno, "open directory above %s", level->name);
	if (st.st_dev != above->dev || st.st_ino != above->ino)
		return err_set(walk->err, ERR_CONFLICT, "%s: it was moved elsewhere meanwhile", level->name);
	return tree_set_dir(walk, above, STEAL_FD(fd));
}

/* The innermost directory has been read to its end: removes it, or reads it again. */
static int
tree_leave(struct tree_walk *walk)
{
	struct tree_level *level = tree_top(walk);
	int above;

	if (tree_reopen_above(walk) < 0)
		return -1;
	above = walk->depth > 1 ? dirfd(level[-1].dir) : walk->top_fd;
	if (unlinkat(above, level->name, AT_REMOVEDIR) == 0 || errno == ENOENT) {
		tree_drop_level(walk);
		return 0;
	}
	if (errno != ENOTEMPTY && errno != EEXIST)
		return err_set_errno(walk->err, errno, "directory %s", level->name);
	/* Some filesystems skip entries when others vanish under the reader. */
	if (++level->retries > TREE_RETRY_MAX)
		return err_set(
			walk->err, ERR_BUSY, "directory %s: something keeps making files in it", level->name);
	rewinddir(level->dir);
	return 0;
}

/* Removes what is not a directory, or an empty one; goes down into a full one. */
static int
tree_remove_entry(struct tree_walk *walk, const char *name, bool maybe_dir)
{
	int parent = tree_parent_fd(walk);

	if (!maybe_dir || unlinkat(parent, name, AT_REMOVEDIR) < 0) {
		if (maybe_dir && errno != ENOTDIR && errno != ENOENT)
			return tree_enter(walk, name) < 0 ? -1 : 0;
		if (unlinkat(parent, name, 0) < 0 && errno != ENOENT) {
			if (errno == EISDIR)
				return tree_enter(walk, name) < 0 ? -1 : 0;
			return err_set_errno(walk->err, errno, "%s", name);
		}
	}
	return 0;
}

static int
tree_step(struct tree_walk *walk)
{
	struct dirent *entry;

	errno = 0;
	entry = readdir(tree_top(walk)->dir);
	if (entry == NULL && errno != 0)
		return err_set_errno(walk->err, errno, "read directory %s", tree_top(walk)->name);
	if (entry == NULL)
		return tree_leave(walk);
	if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
		return 0;
	return tree_remove_entry(walk, entry->d_name, entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN);
}

int
file_remove_tree_at(int dirfd, const char *name, struct err *err)
{
	struct tree_walk walk = { .top_fd = dirfd, .err = err };
	int rc = tree_remove_entry(&walk, name, true);

	while (rc == 0 && walk.depth > 0)
		rc = tree_step(&walk);
	while (walk.depth > 0)
		tree_drop_level(&walk);
	free(walk.levels);
	return rc < 0 ? err_prefix(err, "remove tree %s", name) : 0;
}
