/*
 * pieces.c - one tmpfs for the whole host instead of one per sandbox.
 *
 * A bind of a ready tree costs microseconds, making it anew costs a tmpfs and
 * fifteen nodes. It is read-only in the sandbox: a shared writable one would let
 * sandboxes talk to each other.
 */
/* SPDX-License-Identifier: MIT */
#include "spawner/make/pieces.h"

#include "base/err.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

static const struct {
	const char *name;
	unsigned major, minor;
} nodes[] = {
	{ "dev/null", 1, 3 },
	{ "dev/zero", 1, 5 },
	{ "dev/full", 1, 7 },
	{ "dev/random", 1, 8 },
	{ "dev/urandom", 1, 9 },
	{ "dev/tty", 5, 0 },
};

static const struct {
	const char *name, *target;
} links[] = {
	{ "dev/fd", "/proc/self/fd" },
	{ "dev/stdin", "/proc/self/fd/0" },
	{ "dev/stdout", "/proc/self/fd/1" },
	{ "dev/stderr", "/proc/self/fd/2" },
	{ "dev/ptmx", "pts/ptmx" },
};

static const char *const dirs[] = { "dev", "dev/pts", "dev/shm", "dev/mqueue", PIECE_BASE, PIECE_BASE "/proc",
	PIECE_BASE "/sys", PIECE_BASE "/dev", PIECE_BASE "/" PIECE_OLD };

#define COUNT(array) (sizeof(array) / sizeof *(array))

static int
fill(int root, struct err *err)
{
	for (size_t i = 0; i < COUNT(dirs); i++) {
		if (mkdirat(root, dirs[i], 0755) != 0)
			return err_set_errno(err, errno, "make %s", dirs[i]);
	}
	for (size_t i = 0; i < COUNT(nodes); i++) {
		if (mknodat(root, nodes[i].name, S_IFCHR | 0666, makedev(nodes[i].major, nodes[i].minor)) != 0 ||
			fchmodat(root, nodes[i].name, 0666, 0) != 0)
			return err_set_errno(err, errno, "make %s", nodes[i].name);
	}
	for (size_t i = 0; i < COUNT(links); i++) {
		if (symlinkat(links[i].target, root, links[i].name) != 0)
			return err_set_errno(err, errno, "make %s", links[i].name);
	}
	return 0;
}

int
pieces_mount(int run_fd, int *ret_fd, struct err *err)
{
	AUTO_FD fs = fsopen("tmpfs", FSOPEN_CLOEXEC);
	AUTO_FD mnt = -1;
	AUTO_FD root = -1;

	if (fs < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "mode", "0755", 0) != 0 ||
		fsconfig(fs, FSCONFIG_SET_STRING, "size", "64k", 0) != 0 ||
		fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) != 0 ||
		(mnt = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC)) < 0)
		return err_set_errno(err, errno, "tmpfs for /dev of sandboxes");
	if (mkdirat(run_fd, "pieces", 0700) != 0 && errno != EEXIST)
		return err_set_errno(err, errno, "mkdir pieces");
	if (move_mount(mnt, "", run_fd, "pieces", MOVE_MOUNT_F_EMPTY_PATH) != 0)
		return err_set_errno(err, errno, "mount pieces");
	root = openat(mnt, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return err_set_errno(err, errno, "open pieces");
	if (fill(root, err) != 0)
		return -1;
	*ret_fd = STEAL_FD(root);
	return 0;
}

int
pieces_write(int pieces_fd, const char *name, const char *text, struct err *err)
{
	return file_write_atomic_at(pieces_fd, name, 0644, text, strlen(text), false, err);
}

int
pieces_view(int pieces_fd, const char *name, int userns_fd, int *ret_mount, struct err *err)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY | (userns_fd >= 0 ? MOUNT_ATTR_IDMAP : 0),
		.userns_fd = userns_fd >= 0 ? (uint64_t)userns_fd : 0 };
	AUTO_FD mnt = open_tree(pieces_fd, name, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	if (mnt < 0)
		return err_set_errno(err, errno, "view of %s", name);
	if (mount_setattr(mnt, "", AT_EMPTY_PATH, &attr, sizeof attr) != 0) {
		/* tmpfs learned id mapping late; without it the nodes only look like nobody's */
		attr.attr_set = MOUNT_ATTR_RDONLY;
		attr.userns_fd = 0;
		if (mount_setattr(mnt, "", AT_EMPTY_PATH, &attr, sizeof attr) != 0)
			return err_set_errno(err, errno, "read-only view of %s", name);
	}
	*ret_mount = STEAL_FD(mnt);
	return 0;
}
