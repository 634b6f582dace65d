/* layer_tree.c - where in the layer's directory each member goes, and what it replaces there. */
/* SPDX-License-Identifier: MIT */
#include "image/layer_tree.h"

#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "image/layer_file.h"

#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <search.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

enum { MEMBERS_MAX = 4000000, PATH_BYTES_MAX = 256 << 20, BLOCK = 4096, RESERVE_MAX = 256 << 20 };

static const char whiteout[] = ".wh.", opaque_mark[] = ".wh..wh..opq", reserved[] = ".wh..wh.";

void
layer_tree_init(struct layer_tree *tree, int root, int64_t bytes_max)
{
	struct statvfs st;

	memset(tree, 0, sizeof *tree);
	tree->root = root;
	tree->bytes_max = bytes_max;
	tree->bytes_free = INT64_MAX;
	if (fstatvfs(root, &st) == 0 && st.f_bavail < INT64_MAX / st.f_frsize) {
		int64_t avail = (int64_t)(st.f_bavail * st.f_frsize), reserve = avail / 16;

		tree->bytes_free = avail - (reserve < RESERVE_MAX ? reserve : RESERVE_MAX);
	}
}

void
layer_tree_free(struct layer_tree *tree)
{
	for (size_t i = 0; i < tree->dir_count; i++)
		free(tree->dirs[i].path);
	for (size_t i = 0; i < tree->opaque_count; i++)
		free(tree->opaque[i]);
	free(tree->dirs);
	free(tree->opaque);
	tdestroy(tree->implied, free);
}

int
layer_tree_charge(struct layer_tree *tree, int64_t bytes, struct err *err)
{
	tree->bytes += bytes;
	if (tree->bytes > tree->bytes_max)
		return err_set(err, ERR_TOO_LARGE, "the image is larger than image_max_bytes allows");
	if (tree->bytes > tree->bytes_free)
		return err_set(err, ERR_NO_SPACE, "the layer is larger than the disk space that is free");
	return 0;
}

static int
open_inside(const struct layer_tree *tree, const char *path, uint64_t flags)
{
	struct open_how how = { .flags = flags | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };

	return (int)syscall(SYS_openat2, tree->root, path[0] != '\0' ? path : ".", &how, sizeof how);
}

/* Without leading, doubled and trailing slashes and "."; "" is the layer itself. */
static int
clean_path(const char *raw, char ret_path[PATH_MAX], struct err *err)
{
	size_t len = 0;

	while (*raw != '\0') {
		size_t part = strcspn(raw, "/");

		if (part == 2 && memcmp(raw, "..", 2) == 0)
			return err_set(
				err, ERR_INVALID, "its name climbs by \"..\"; the layer is not to be trusted");
		if (part > NAME_MAX || len + part + 2 > PATH_MAX)
			return err_set(err, ERR_INVALID, "its name is too long");
		if (part > 0 && !(part == 1 && raw[0] == '.')) {
			if (len > 0)
				ret_path[len++] = '/';
			memcpy(ret_path + len, raw, part);
			len += part;
		}
		raw += part + (raw[part] == '/');
	}
	ret_path[len] = '\0';
	return 0;
}

static int
compare_paths(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void
add_implied(struct layer_tree *tree, const char *path)
{
	char *copy = must_alloc(strdup(path));
	char **node = must_alloc(tsearch(copy, &tree->implied, compare_paths));

	tree->path_bytes += strlen(path) + 1;
	if (*node != copy)
		free(copy);
}

static void
forget_implied(struct layer_tree *tree, const char *path)
{
	void *node = tfind(path, &tree->implied, compare_paths);
	char *known = node != NULL ? *(char **)node : NULL;

	if (known == NULL)
		return;
	tdelete(path, &tree->implied, compare_paths);
	free(known);
}

/* The directory at path[0..len), made as far as it is missing: not every tar names the parents of its members. */
static int
open_dir(struct layer_tree *tree, char *path, size_t len, struct err *err)
{
	char after = path[len];
	int fd, parent;
	size_t up = len;
	bool made;

	path[len] = '\0';
	fd = open_inside(tree, path, O_RDONLY | O_DIRECTORY);
	if (fd < 0 && errno == ENOENT && len > 0) {
		while (up > 0 && path[up] != '/')
			up--;
		parent = open_dir(tree, path, up, err);
		if (parent < 0) {
			path[len] = after;
			return -1;
		}
		made = mkdirat(parent, path + up + (up > 0), 0755) == 0;
		if (made || errno == EEXIST)
			fd = open_inside(tree, path, O_RDONLY | O_DIRECTORY);
		if (made && fd >= 0)
			add_implied(tree, path);
		close(parent);
	}
	path[len] = after;
	return fd >= 0 ? fd : err_set_errno(err, errno, "its directory");
}

static void
add_opaque(struct layer_tree *tree, const char *path)
{
	if (tree->opaque_count == tree->opaque_room) {
		tree->opaque_room = tree->opaque_room * 2 + 16;
		tree->opaque = must_alloc(realloc(tree->opaque, tree->opaque_room * sizeof *tree->opaque));
	}
	tree->path_bytes += strlen(path) + 1;
	tree->opaque[tree->opaque_count++] = must_alloc(strdup(path));
}

static void
add_dir(struct layer_tree *tree, const char *path, struct archive_entry *entry)
{
	struct timespec times[2];

	layer_file_times(entry, times);
	if (tree->dir_count == tree->dir_room) {
		tree->dir_room = tree->dir_room * 2 + 64;
		tree->dirs = must_alloc(realloc(tree->dirs, tree->dir_room * sizeof *tree->dirs));
	}
	tree->path_bytes += strlen(path) + 1;
	tree->dirs[tree->dir_count++] = (struct layer_dir){ must_alloc(strdup(path)), times[1] };
}

static bool
is_whiteout(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

/* Frees a name for a new member; the last of several members of one name wins. */
static int
clear_name(int parent, const char *name, struct err *err)
{
	struct stat st;

	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return errno == ENOENT ? 0 : err_set_errno(err, errno, "look for an older one");
	if (S_ISDIR(st.st_mode))
		return file_remove_tree_at(parent, name, err);
	return unlinkat(parent, name, 0) == 0 ? 0 : err_set_errno(err, errno, "remove an older one");
}

/* The name is hidden; a directory of this layer that has it already hides what lies below itself. */
static int
add_whiteout(struct layer_tree *tree, int parent, const char *path, const char *name, struct err *err)
{
	const char *target = name + sizeof whiteout - 1;
	char target_path[PATH_MAX];
	struct stat st;

	if (target[0] == '\0' || strcmp(target, ".") == 0 || strcmp(target, "..") == 0)
		return err_set(err, ERR_INVALID, "it deletes nothing that can be named");
	if (fstatat(parent, target, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return mknodat(parent, target, S_IFCHR, makedev(0, 0)) == 0
			? 0
			: err_set_errno(err, errno, "make whiteout (Linux 5.8 or newer is needed)");
	if (S_ISDIR(st.st_mode)) {
		snprintf(target_path, sizeof target_path, "%.*s%s", (int)(name - path), path, target);
		add_opaque(tree, target_path);
		forget_implied(tree, target_path); /* made anew, and by nobody's rules but this layer's */
	}
	return 0;
}

static int
add_directory(struct layer_tree *tree, int parent, const char *path, const char *name, struct archive_entry *entry,
	struct err *err)
{
	AUTO_FD fd = -1;
	struct stat st;

	if (name[0] != '\0') {
		bool is_there = fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0;

		if (is_there && is_whiteout(&st))
			add_opaque(tree, path);
		if (is_there && !S_ISDIR(st.st_mode) && clear_name(parent, name, err) != 0)
			return -1;
		if (mkdirat(parent, name, 0700) != 0 && errno != EEXIST)
			return err_set_errno(err, errno, "make directory");
	}
	fd = openat(parent, name[0] != '\0' ? name : ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_set_errno(err, errno, "open directory");
	add_dir(tree, path, entry);
	forget_implied(tree, path);
	return layer_file_set(fd, entry, err);
}

static int
add_hard_link(struct layer_tree *tree, int parent, const char *path, const char *name, const char *raw_target,
	struct err *err)
{
	char target[PATH_MAX], *slash;
	AUTO_FD dir = -1;
	int rc;

	if (clean_path(raw_target, target, err) != 0)
		return err_prefix(err, "target of a hard link");
	if (strcmp(target, path) == 0)
		return 0;
	slash = strrchr(target, '/');
	dir = open_dir(tree, target, slash != NULL ? (size_t)(slash - target) : 0, err);
	if (dir < 0 || clear_name(parent, name, err) != 0)
		return -1;
	rc = linkat(dir, slash != NULL ? slash + 1 : target, parent, name, 0);
	if (rc != 0 && errno == ENOENT)
		return err_set(err, ERR_INVALID, "the target of a hard link is not in the layer");
	return rc == 0 ? 0 : err_set_errno(err, errno, "make hard link");
}

static int
add_other(struct layer_tree *tree, int parent, const char *name, struct archive *archive,
	struct archive_entry *entry, struct err *err)
{
	unsigned type = archive_entry_filetype(entry);

	if (type == AE_IFREG || type == AE_IFLNK || type == AE_IFIFO) {
		if (clear_name(parent, name, err) != 0)
			return -1;
		if (type == AE_IFREG)
			return layer_file_make(tree, parent, name, archive, entry, err);
		return type == AE_IFLNK ? layer_file_make_symlink(parent, name, entry, err)
					: layer_file_make_fifo(parent, name, entry, err);
	}
	if (tree->skipped++ == 0)
		log_info("the layer holds device nodes; they are left out");
	return 0;
}

static int
add_at(struct layer_tree *tree, char *path, struct archive *archive, struct archive_entry *entry, struct err *err)
{
	char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
	size_t parent_len = slash != NULL ? (size_t)(slash - path) : 0;
	const char *link = archive_entry_hardlink(entry);
	AUTO_FD parent = open_dir(tree, path, parent_len, err);

	if (parent < 0)
		return -1;
	if (strcmp(name, opaque_mark) == 0) {
		path[parent_len] = '\0';
		add_opaque(tree, path);
		return 0;
	}
	if (strncmp(name, reserved, sizeof reserved - 1) == 0)
		return 0; /* other marks of the same family mean nothing here */
	if (strncmp(name, whiteout, sizeof whiteout - 1) == 0)
		return add_whiteout(tree, parent, path, name, err);
	if (link == NULL && archive_entry_filetype(entry) == AE_IFDIR)
		return add_directory(tree, parent, path, name, entry, err);
	if (name[0] == '\0')
		return err_set(err, ERR_INVALID, "the top of the layer is not a directory");
	if (link != NULL)
		return add_hard_link(tree, parent, path, name, link, err);
	return add_other(tree, parent, name, archive, entry, err);
}

int
layer_tree_add(struct layer_tree *tree, struct archive *archive, struct archive_entry *entry, struct err *err)
{
	const char *raw = archive_entry_pathname(entry);
	char path[PATH_MAX];

	if (raw == NULL)
		return err_set(err, ERR_INVALID, "a member of the layer has no name");
	if (++tree->members > MEMBERS_MAX || tree->path_bytes > PATH_BYTES_MAX)
		return err_set(err, ERR_TOO_LARGE, "the layer has too many files (%d are taken)", MEMBERS_MAX);
	if (layer_tree_charge(tree, BLOCK, err) != 0 || clean_path(raw, path, err) != 0)
		return -1;
	return add_at(tree, path, archive, entry, err);
}

void
layer_tree_finish(struct layer_tree *tree)
{
	for (size_t i = tree->dir_count; i-- > 0;) {
		struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, tree->dirs[i].mtime };
		AUTO_FD fd = open_inside(tree, tree->dirs[i].path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);

		if (fd >= 0)
			(void)futimens(fd, times);
	}
}

struct implied_walk {
	void (*call)(const char *path, void *arg);
	void *arg;
};

static void
on_implied(const void *node, VISIT visit, void *arg)
{
	const struct implied_walk *walk = arg;

	if (visit == postorder || visit == leaf)
		walk->call(*(const char *const *)node, walk->arg);
}

void
layer_tree_each_implied(const struct layer_tree *tree, void (*call)(const char *path, void *arg), void *arg)
{
	struct implied_walk walk = { call, arg };

	twalk_r(tree->implied, on_implied, &walk);
}
