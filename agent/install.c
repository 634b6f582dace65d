/*
 * install.c - runs alone in its container, before anything of a sandbox does.
 *
 * A file is whole before it has its name, so a pod whose init container is started again finds the old or the new one.
 */
/* SPDX-License-Identifier: MIT */
#include "agent/install.h"

#include "base/cleanup.h"
#include "base/err.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#define INSTALL_NAME "orchard-agent"

enum { INSTALL_DEPTH = 128, INSTALL_PIECE = 1 << 20 };

/* Where a walk is. */
struct install_place {
	int from, to; /* directories; borrowed */
	dev_t device; /* of the tree: what is mounted in it is left out */
	const struct stat *target; /* which may lie in the tree, and is not copied into itself */
	int depth;
};

static int
install_bytes(int from, int to)
{
	ssize_t sent;

	do {
		sent = sendfile(to, from, NULL, INSTALL_PIECE);
	} while (sent > 0 || (sent < 0 && errno == EINTR));
	return (int)sent;
}

/* from is at the start of the file. */
static int
install_file(int from, int to_dir, const char *name, mode_t mode, struct err *err)
{
	static const char temporary[] = ".orchard-install";
	AUTO_FD to = -1;

	if (unlinkat(to_dir, temporary, 0) < 0 && errno != ENOENT)
		return err_set_errno(err, errno, "%s", temporary);
	to = openat(to_dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (to < 0 || install_bytes(from, to) < 0 || fchmod(to, mode & 0777) < 0 ||
		renameat(to_dir, temporary, to_dir, name) < 0)
		return err_set_errno(err, errno, "copy %s", name);
	return 0;
}

static int
install_link(const struct install_place *place, const char *name, struct err *err)
{
	char target[PATH_MAX];
	ssize_t len = readlinkat(place->from, name, target, sizeof target - 1);

	if (len < 0)
		return err_set_errno(err, errno, "read link %s", name);
	target[len] = '\0';
	if ((unlinkat(place->to, name, 0) < 0 && errno != ENOENT) || symlinkat(target, place->to, name) < 0)
		return err_set_errno(err, errno, "link %s", name);
	return 0;
}

static int install_directory(const struct install_place *place, struct err *err);

/* The permissions come last: they may forbid to write. */
static int
install_below(const struct install_place *place, const char *name, mode_t mode, struct err *err)
{
	AUTO_FD from = openat(place->from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), to = -1;
	struct install_place below = {
		.device = place->device, .target = place->target, .depth = place->depth + 1
	};

	if (from < 0)
		return err_set_errno(err, errno, "open %s", name);
	if (below.depth > INSTALL_DEPTH)
		return err_set(err, ERR_INVALID, "%s: more than %d directories deep", name, INSTALL_DEPTH);
	if (mkdirat(place->to, name, 0700) < 0 && errno != EEXIST)
		return err_set_errno(err, errno, "make %s", name);
	to = openat(place->to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (to < 0)
		return err_set_errno(err, errno, "open the copy of %s", name);
	below.from = from;
	below.to = to;
	if (install_directory(&below, err) < 0)
		return err_prefix(err, "%s", name);
	if (fchmod(to, mode & 0777) < 0)
		return err_set_errno(err, errno, "permissions of %s", name);
	return 0;
}

static int
install_entry(const struct install_place *place, const char *name, struct err *err)
{
	AUTO_FD file = -1;
	struct stat st;

	if (fstatat(place->from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set_errno(err, errno, "%s", name);
	if (st.st_dev != place->device ||
		(st.st_dev == place->target->st_dev && st.st_ino == place->target->st_ino))
		return 0;
	if (S_ISLNK(st.st_mode))
		return install_link(place, name, err);
	if (S_ISDIR(st.st_mode))
		return install_below(place, name, st.st_mode, err);
	if (!S_ISREG(st.st_mode))
		return 0;
	file = openat(place->from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (file < 0)
		return err_set_errno(err, errno, "open %s", name);
	return install_file(file, place->to, name, st.st_mode, err);
}

static int
install_directory(const struct install_place *place, struct err *err)
{
	int fd = fcntl(place->from, F_DUPFD_CLOEXEC, 3);
	AUTO_DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (dir == NULL)
		return err_set_errno(err, errno, "open a directory");
	while ((errno = 0, entry = readdir(dir)) != NULL) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (install_entry(place, entry->d_name, err) < 0)
			return -1;
	}
	return errno == 0 ? 0 : err_set_errno(err, errno, "read a directory");
}

static int
install_all(const char *directory, const char *tree, struct err *err)
{
	AUTO_FD to = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC), from = -1;
	struct stat here, there;

	if (to < 0)
		return err_set_errno(err, errno, "open %s", directory);
	from = open(
		tree != NULL ? tree : "/proc/self/exe", O_RDONLY | O_CLOEXEC | (tree != NULL ? O_DIRECTORY : 0));
	if (from < 0 || fstat(from, &here) < 0 || fstat(to, &there) < 0)
		return err_set_errno(err, errno, "open %s", tree != NULL ? tree : "/proc/self/exe");
	if (tree == NULL)
		return install_file(from, to, INSTALL_NAME, 0755, err);
	return install_directory(
		&(struct install_place){ .from = from, .to = to, .device = here.st_dev, .target = &there }, err);
}

int
install_main(const char *directory, const char *tree)
{
	struct err err;

	if (install_all(directory, tree, &err) == 0)
		return 0;
	fprintf(stderr, "orchard-agent: %s\n", err.msg);
	return 1;
}
