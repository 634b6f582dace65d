/*
 * inside_root.c - from a copy of the host's mounts to the sandbox's own few.
 *
 * proc and sysfs are created while the host's are still in sight (the kernel
 * wants to see them) and attached after the host's root is gone. They move into
 * the image by its top directories alone; after that every path stays in the
 * sandbox, whatever links the image holds.
 */
/* SPDX-License-Identifier: MIT */
#include "spawner/make/inside.h"

#include "conf/config.h"
#include "conf/covers.h"
#include "spawner/make/pieces.h"
#include "spawner/site.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* A new mount of type that hangs nowhere yet, or -1. */
static int
new_mount(const char *type, unsigned attributes)
{
	AUTO_FD fs = fsopen(type, FSOPEN_CLOEXEC);

	if (fs < 0 || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) != 0)
		return -1;
	return fsmount(fs, FSMOUNT_CLOEXEC, attributes);
}

/* Puts a detached mount on a directory of the image; one that is missing is made, a link is refused. */
static bool
attach(int mnt, const char *path, mode_t mode)
{
	AUTO_FD dir = -1;

	if (mkdir(path, mode) != 0 && errno != EEXIST)
		return false;
	dir = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return dir >= 0 && move_mount(mnt, "", dir, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) == 0;
}

/* Makes a mount the root; the one before then lies at a directory of it, or upon it (".", in the way of no path). */
static const char *
change_root(int root, const char *old)
{
	if (fchdir(root) != 0)
		return "enter the root filesystem";
	if (syscall(SYS_pivot_root, ".", old) != 0)
		return "pivot_root (is the host's root an initramfs?)";
	return NULL;
}

/* Takes the old root off with all that hangs in it: waits for the kernel, and not longer for many mounts than for one. */
static const char *
leave_root(const char *old)
{
	if (umount2(old, MNT_DETACH) != 0)
		return "leave the old root";
	return chdir("/") == 0 ? NULL : "chdir /";
}

/* Makes it read-only where it is. */
static bool
seal_path(const char *path)
{
	const unsigned long ro = MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC;

	return mount(path, path, NULL, MS_BIND | MS_REC, NULL) == 0 && mount(NULL, path, NULL, ro, NULL) == 0;
}

static const char *
seal_paths(const char *const *paths)
{
	for (; *paths != NULL; paths++) {
		if (!seal_path(*paths) && errno != ENOENT)
			return "make a path read-only";
	}
	return NULL;
}

static const char *
mask_files(const char *const *paths)
{
	for (; *paths != NULL; paths++) {
		if (mount("/dev/null", *paths, NULL, MS_BIND, NULL) != 0 && errno != ENOENT)
			return "mask a file";
	}
	return NULL;
}

/* By an empty directory of the read-only /dev. */
static bool
mask_dir(const char *path)
{
	return mount("/dev/mqueue", path, NULL, MS_BIND, NULL) == 0;
}

static const char *
mask_dirs(const char *const *paths)
{
	for (; *paths != NULL; paths++) {
		if (!mask_dir(*paths) && errno != ENOENT)
			return "mask a directory";
	}
	return NULL;
}

static const char *
mask_processors(void)
{
	char path[64];

	for (int cpu = 0;; cpu++) {
		covers_processor(cpu, path, sizeof path);
		if (mask_dir(path))
			continue;
		if (errno != ENOENT)
			return "mask a directory";
		*strrchr(path, '/') = '\0';
		if (cpu == 0 || access(path, F_OK) != 0)
			return NULL;
	}
}

static const char *
mask_paths(void)
{
	const char *failed = seal_paths(covers_readonly);

	if (failed == NULL)
		failed = mask_files(covers_files);
	if (failed == NULL)
		failed = mask_dirs(covers_dirs);
	return failed != NULL ? failed : mask_processors();
}

static const char *
mount_dev(int dev)
{
	if (!attach(dev, "/dev", 0755))
		return "mount /dev";
	/* terminals are counted for the whole host, which has 3072 for all sandboxes: one must not take them all */
	if (mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
		    "newinstance,ptmxmode=0666,mode=0620,gid=5,max=512") != 0)
		return "mount /dev/pts";
	if (mount("shm", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777,size=4k") != 0)
		return "mount /dev/shm";
	return NULL;
}

static const char *
cover(const struct site *site)
{
	const char *failed = site->agent_clones ? inside_forbid_namespaces() : NULL;

	if (failed == NULL)
		failed = seal_paths(covers_agent_readonly);
	if (failed == NULL)
		failed = mask_files(covers_agent_files);
	if (failed == NULL && site->config->sandbox_mask_paths)
		failed = mask_paths();
	return failed;
}

/* A name in the image's /etc. Its links may lead about in the image, but not to what we hold open (/proc/self/fd). */
static int
open_in_etc(const char *name, int flags)
{
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_NO_MAGICLINKS };
	AUTO_FD etc = (int)syscall(SYS_openat2, AT_FDCWD, "/etc", &how, sizeof how);

	return etc < 0 ? -1 : openat(etc, name, flags | O_NOFOLLOW | O_CLOEXEC, 0644);
}

/*
 * Gives the image a small file that it lacks or has only as an empty place-holder. Looked at first: opening for
 * writing alone would copy one that stays as it is.
 */
static void
fill_file(const char *name, const char *text)
{
	AUTO_FD place = open_in_etc(name, O_PATH);
	AUTO_FD fd = -1;
	ssize_t written = 0; /* best effort: on a full disk it stays empty */
	struct stat st;

	if (place >= 0 && (fstat(place, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > 0))
		return;
	fd = open_in_etc(name, O_WRONLY | O_CREAT | O_NONBLOCK);
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0)
		written = write(fd, text, strlen(text));
	(void)written;
}

/* A file to mount the name servers on; a link would lead elsewhere, so it goes. */
static void
make_resolv_place(void)
{
	AUTO_FD etc = open_in_etc(".", O_PATH | O_DIRECTORY);
	struct stat st;

	if (fstatat(etc, "resolv.conf", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode))
		(void)unlinkat(etc, "resolv.conf", 0);
	fill_file("resolv.conf", "#\n");
}

void
inside_fill_gaps(const char *id, bool network)
{
	char text[256];

	if (mkdir("/tmp", 01777) == 0)
		(void)chmod("/tmp", 01777);
	(void)mkdir("/etc", 0755);
	snprintf(text, sizeof text, "%s\n", id);
	fill_file("hostname", text);
	snprintf(text, sizeof text,
		"127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n127.0.1.1\t%s\n", id);
	fill_file("hosts", text);
	if (network)
		make_resolv_place();
	else
		fill_file("resolv.conf", "# loopback only\n");
}

/* Name servers over whatever the image has there, which stays what it is. */
static const char *
cover_resolv(int mnt)
{
	AUTO_FD file = open_in_etc("resolv.conf", O_PATH);

	if (file < 0 || move_mount(mnt, "", file, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) != 0)
		return "mount /etc/resolv.conf (it must be a file of the image, or missing)";
	return NULL;
}

const char *
inside_build_ground(
	const struct site *site, const int mounts[ENTER_GROUND], bool alone, struct inside_ground *ret_ground)
{
	const unsigned plain = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
	const char *failed;

	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		return "make mounts private";
	ret_ground->dev = mounts[ENTER_DEV];
	ret_ground->proc = new_mount("proc", plain);
	if (ret_ground->proc < 0)
		return "create /proc (the host's own /proc must not be masked)";
	ret_ground->sys = new_mount(
		"sysfs", plain | MOUNT_ATTR_RDONLY); /* not everywhere allowed: then there is none */
	if (move_mount(mounts[ENTER_BASE], "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) != 0)
		return "attach the ground";
	failed = change_root(mounts[ENTER_BASE], PIECE_OLD);
	if (failed == NULL && alone)
		failed = leave_root(PIECE_OLD);
	if (failed != NULL)
		return failed;
	if (!attach(ret_ground->proc, "/proc", 0555))
		return "mount /proc";
	if (ret_ground->sys >= 0 && !attach(ret_ground->sys, "/sys", 0555))
		return "mount /sys";
	failed = mount_dev(ret_ground->dev);
	return failed != NULL ? failed : cover(site);
}

static const char *
limit_shm(int64_t bytes)
{
	char options[64];

	snprintf(options, sizeof options, "mode=1777,size=%lld", (long long)bytes);
	if (mount(NULL, "/dev/shm", NULL, MS_REMOUNT | MS_NOSUID | MS_NODEV, options) != 0)
		return "limit /dev/shm";
	return NULL;
}

const char *
inside_build_root(const struct inside_ground *ground, int root)
{
	const char *failed;

	if (move_mount(root, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) != 0 || fchdir(root) != 0)
		return "attach the root filesystem";
	if (!attach(ground->proc, "proc", 0555))
		return "mount /proc (it must be a directory of the image, or missing)";
	if (ground->sys >= 0 && !attach(ground->sys, "sys", 0555))
		return "mount /sys (it must be a directory of the image, or missing)";
	if (!attach(ground->dev, "dev", 0755))
		return "mount /dev (it must be a directory of the image, or missing)";
	failed = change_root(root, ".");
	return failed != NULL ? failed : leave_root(".");
}

const char *
inside_furnish_root(const struct enter_words *words, int resolv)
{
	const char *failed = limit_shm(words->shm_bytes);

	if (failed != NULL)
		return failed;
	inside_fill_gaps(words->id, resolv >= 0);
	return resolv >= 0 ? cover_resolv(resolv) : NULL;
}
