/*
 * rootfs.c - overlay over id-mapped views of the image's layers.
 *
 * The overlay belongs to the host's root, so user code can neither read nor set
 * the trusted.overlay.* marks, and the image on disk keeps its real owners. All
 * paths given to the kernel are /proc/self/fd/N: no character of an image's path
 * has a meaning there, and the sandbox's mount table tells nothing of the host.
 */
/* SPDX-License-Identifier: MIT */
#include "spawner/make/rootfs.h"

#include "base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

enum { OVERLAYFS_MAGIC = 0x794c7630, LOWER_TEXT_MAX = 255, FD_PATH = 32 };

static void
fd_path(int fd, char ret_path[FD_PATH])
{
	snprintf(ret_path, FD_PATH, "/proc/self/fd/%d", fd);
}

/* What the kernel says about the last failure on a filesystem context. */
static void
read_reason(int fs, char *buf, size_t size)
{
	ssize_t n = read(fs, buf, size - 1);

	buf[n > 0 ? n : 0] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
}

static int
view_layer(int layer, int userns_fd, int *ret_mount, struct err *err)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)userns_fd };
	AUTO_FD mnt = open_tree(layer, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
	struct statfs st;

	if (mnt < 0)
		return err_set_errno(err, errno, "image directory");
	if (mount_setattr(mnt, "", AT_EMPTY_PATH, &attr, sizeof attr) != 0) {
		int why = errno;

		if (fstatfs(layer, &st) != 0)
			st.f_type = 0;
		if ((unsigned long)st.f_type == OVERLAYFS_MAGIC)
			return err_set(err, ERR_UNSUPPORTED,
				"an overlay filesystem can't be a layer of another one: keep state_dir and the "
				"images on "
				"a volume with ext4, xfs or btrfs");
		return err_set(err, ERR_UNSUPPORTED,
			"the image's filesystem (type 0x%lx) can't be id-mapped (%s): keep state_dir and the "
			"images on "
			"ext4, xfs or btrfs; Linux 5.19 or newer is needed",
			(unsigned long)st.f_type, strerror(why));
	}
	*ret_mount = STEAL_FD(mnt);
	return 0;
}

static int
set_string(int fs, const char *key, const char *value, struct err *err)
{
	char reason[256];
	int why;

	if (fsconfig(fs, FSCONFIG_SET_STRING, key, value, 0) == 0)
		return 0;
	why = errno;
	read_reason(fs, reason, sizeof reason);
	return err_set_errno(err, why, "overlay option %s (%s)", key, reason);
}

/* How this kernel takes the lower layers; learnt from its refusals. */
enum lower_way {
	LOWER_DETACHED, /* one option a layer, mounted nowhere: from Linux 6.15 on */
	LOWER_ATTACHED, /* one option a layer: from 6.7 on */
	LOWER_JOINED, /* all in one text of limited length */
	LOWER_WAYS
};

static int
set_lower(int fs, enum lower_way way, const int *views, size_t count, struct err *err)
{
	char all[LOWER_TEXT_MAX + 1] = "", path[FD_PATH];
	size_t len = 0;

	for (size_t i = 0; i < count && way != LOWER_JOINED; i++) {
		fd_path(views[i], path);
		if (set_string(fs, "lowerdir+", path, err) != 0)
			return -1;
	}
	if (way != LOWER_JOINED)
		return 0;
	/* Names below the working directory, see attach_views. */
	for (size_t i = 0; i < count; i++) {
		len += (size_t)snprintf(all + len, sizeof all - len, "%s%zu", i > 0 ? ":" : "", i);
		if (len >= sizeof all)
			return err_set(err, ERR_UNSUPPORTED,
				"an image of %zu layers needs Linux 6.7 or newer; squash it to fewer layers",
				count);
	}
	return set_string(fs, "lowerdir", all, err);
}

/* upper/ and work/ by way of the descriptor; renames of image directories work, nothing is flushed. */
static int
set_upper(int fs, int box_fd, struct err *err)
{
	char base[FD_PATH], path[FD_PATH + 8];

	fd_path(box_fd, base);
	snprintf(path, sizeof path, "%s/upper", base);
	if (set_string(fs, "upperdir", path, err) != 0)
		return -1;
	snprintf(path, sizeof path, "%s/work", base);
	if (set_string(fs, "workdir", path, err) != 0)
		return -1;
	if (set_string(fs, "redirect_dir", "on", err) != 0 || set_string(fs, "metacopy", "off", err) != 0 ||
		set_string(fs, "index", "off", err) != 0)
		return -1;
	if (fsconfig(fs, FSCONFIG_SET_FLAG, "volatile", NULL, 0) != 0)
		return err_set_errno(err, errno, "overlay option volatile");
	return 0;
}

static int
explain(int fs, int box_fd, int why, struct err *err)
{
	char reason[256];
	struct statfs st;

	read_reason(fs, reason, sizeof reason);
	if (fstatfs(box_fd, &st) == 0 && (unsigned long)st.f_type == OVERLAYFS_MAGIC)
		return err_set(err, ERR_UNSUPPORTED,
			"state_dir lies on an overlay filesystem, which can't carry another one: put state_dir on "
			"a "
			"volume with ext4, xfs or btrfs, or on a tmpfs");
	return err_set_errno(
		err, why, "overlay mount (%s)", reason[0] != '\0' ? reason : "the kernel gives no reason");
}

/* As the kernel makes it, with success, where it finds no room for its working directory. */
static bool
is_read_only(int mnt)
{
	struct statvfs st;

	return fstatvfs(mnt, &st) == 0 && (st.f_flag & ST_RDONLY) != 0;
}

static int
make_overlay(const struct rootfs_plan *plan, enum lower_way way, const int *views, int *ret_mount, struct err *err)
{
	AUTO_FD fs = fsopen("overlay", FSOPEN_CLOEXEC);
	int mnt;

	if (fs < 0)
		return err_set_errno(err, errno, "overlay filesystem (is the kernel module there?)");
	if (set_string(fs, "source", "overlay", err) != 0 ||
		set_lower(fs, way, views, plan->layer_count, err) != 0 || set_upper(fs, plan->box_fd, err) != 0)
		return -1;
	if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) != 0)
		return explain(fs, plan->box_fd, errno, err);
	mnt = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NODEV);
	if (mnt < 0)
		return err_set_errno(err, errno, "overlay mount");
	if (is_read_only(mnt)) {
		close(mnt);
		return err_set(err, ERR_NO_SPACE,
			"no space for the overlay's working directory: the disk of state_dir is full");
	}
	*ret_mount = mnt;
	return 0;
}

/* Mounts the views as 0, 1, 2... below dir; returns how many. */
static size_t
attach_views(int dir, const int *views, size_t count, struct err *err)
{
	char name[24];

	for (size_t i = 0; i < count; i++) {
		snprintf(name, sizeof name, "%zu", i);
		if (mkdirat(dir, name, 0700) != 0 ||
			move_mount(views[i], "", dir, name, MOVE_MOUNT_F_EMPTY_PATH) != 0) {
			err_set_errno(err, errno, "mount an image layer");
			return i;
		}
	}
	return count;
}

static void
detach_views(int dir, const int *views, size_t count)
{
	char name[24], path[FD_PATH];

	for (size_t i = 0; i < count; i++) {
		fd_path(views[i], path);
		umount2(path, MNT_DETACH);
		snprintf(name, sizeof name, "%zu", i);
		unlinkat(dir, name, AT_REMOVEDIR);
	}
}

/*
 * The layers are mounted in a directory of this process's own while the overlay is made; it keeps private
 * copies of them. Helpers have one thread and use no relative path elsewhere, so they may stand there.
 */
static int
make_overlay_attached(
	const struct rootfs_plan *plan, enum lower_way way, const int *views, int *ret_mount, struct err *err)
{
	AUTO_FD dir = -1;
	char name[32];
	size_t attached;
	int rc = -1;

	snprintf(name, sizeof name, "views-%d", (int)getpid());
	if (mkdirat(plan->scratch_fd, name, 0700) != 0 && errno != EEXIST)
		return err_set_errno(err, errno, "directory to mount image layers in");
	dir = openat(plan->scratch_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0 || fchdir(dir) != 0)
		return err_set_errno(err, errno, "directory to mount image layers in");
	attached = attach_views(dir, views, plan->layer_count, err);
	if (attached == plan->layer_count)
		rc = make_overlay(plan, way, views, ret_mount, err);
	detach_views(dir, views, attached);
	if (chdir("/") != 0)
		return err_set_errno(err, errno, "leave the directory of image layers");
	unlinkat(plan->scratch_fd, name, AT_REMOVEDIR);
	return rc;
}

/* Views of layers that have served their purpose. */
static int *left_views;
static size_t left_count;

static void
leave_views(const int *views, size_t count)
{
	left_views = realloc(left_views, (left_count + count) * sizeof *left_views);
	if (left_views == NULL)
		abort();
	memcpy(left_views + left_count, views, count * sizeof *views);
	left_count += count;
}

void
rootfs_settle(void)
{
	while (left_count > 0)
		close(left_views[--left_count]);
}

/* One way, with views of its own: a mount that was taken off can't be put anywhere again. */
static int
build_in_one_way(const struct rootfs_plan *plan, enum lower_way way, int *ret_mount, struct err *err)
{
	int *views = calloc(plan->layer_count, sizeof *views);
	size_t made = 0;
	int rc = 0;

	if (views == NULL)
		abort();
	while (made < plan->layer_count && rc == 0) {
		rc = view_layer(plan->layers[made], plan->userns_fd, &views[made], err);
		made += rc == 0;
	}
	if (rc == 0)
		rc = way == LOWER_DETACHED ? make_overlay(plan, way, views, ret_mount, err)
					   : make_overlay_attached(plan, way, views, ret_mount, err);
	if (made > 0)
		leave_views(views, made);
	free(views);
	return rc;
}

int
rootfs_build(const struct rootfs_plan *plan, int *ret_mount, struct err *err)
{
	static enum lower_way known; /* a property of the kernel */
	int rc = -1;

	for (enum lower_way way = known; way < LOWER_WAYS && rc != 0; way++) {
		rc = build_in_one_way(plan, way, ret_mount, err);
		if (rc == 0)
			known = way;
	}
	return rc;
}
