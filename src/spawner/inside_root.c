/*
 * inside_root.c - from a copy of the host's mounts to the sandbox's own few.
 *
 * proc and sysfs are created while the host's are still in sight (the kernel
 * wants to see them) and attached after the old root is gone. From then on every
 * path stays in the sandbox, whatever links the image holds.
 */
/* SPDX-License-Identifier: MIT */
#include "spawner/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static const char *const readonly_paths[] = { "/proc/sys", "/proc/bus", "/proc/fs", "/proc/irq",
	"/proc/sysrq-trigger" };
static const char *const masked_files[] = { "/proc/kcore", "/proc/keys", "/proc/key-users", "/proc/timer_list",
	"/proc/timer_stats", "/proc/latency_stats", "/proc/sched_debug", "/proc/kmsg", "/proc/kallsyms",
	"/proc/interrupts" };
static const char *const masked_dirs[] = { "/proc/acpi", "/proc/scsi", "/proc/asound", "/sys/firmware",
	"/sys/devices/virtual/powercap" };

#define COUNT(array) (sizeof(array) / sizeof *(array))

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

static const char *
change_root(int root)
{
	if (move_mount(root, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) != 0)
		return "attach the root filesystem";
	if (fchdir(root) != 0)
		return "enter the root filesystem";
	if (syscall(SYS_pivot_root, ".", ".") != 0)
		return "pivot_root (is the host's root an initramfs?)";
	if (umount2(".", MNT_DETACH) != 0)
		return "leave the host's root";
	if (chdir("/") != 0)
		return "chdir /";
	return NULL;
}

static const char *
mask_paths(void)
{
	const unsigned long ro = MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC;

	for (size_t i = 0; i < COUNT(readonly_paths); i++) {
		const char *path = readonly_paths[i];

		if (mount(path, path, NULL, MS_BIND | MS_REC, NULL) != 0) {
			if (errno == ENOENT)
				continue;
			return "bind a read-only path";
		}
		if (mount(NULL, path, NULL, ro, NULL) != 0)
			return "make a path read-only";
	}
	for (size_t i = 0; i < COUNT(masked_files); i++) {
		if (mount("/dev/null", masked_files[i], NULL, MS_BIND, NULL) != 0 && errno != ENOENT)
			return "mask a file";
	}
	for (size_t i = 0; i < COUNT(masked_dirs); i++) {
		/* an empty directory of the read-only /dev, and so is what covers these */
		if (mount("/dev/mqueue", masked_dirs[i], NULL, MS_BIND, NULL) != 0 && errno != ENOENT)
			return "mask a directory";
	}
	return NULL;
}

static const char *
mount_dev(int dev, int64_t shm_bytes)
{
	char options[64];

	if (!attach(dev, "/dev", 0755))
		return "mount /dev (it must be a directory of the image, or missing)";
	/* terminals are counted for the whole host: one sandbox must not take them all */
	if (mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
		    "newinstance,ptmxmode=0666,mode=0620,gid=5,max=256") != 0)
		return "mount /dev/pts";
	snprintf(options, sizeof options, "mode=1777,size=%lld", (long long)shm_bytes);
	if (mount("shm", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, options) != 0)
		return "mount /dev/shm";
	return NULL;
}

/* Gives the image a small file that it lacks or has only as an empty place-holder. */
static void
fill_file(const char *path, const char *text)
{
	AUTO_FD fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0 &&
		write(fd, text, strlen(text)) < 0)
		(void)unlink(path);
}

static void
fill_image_gaps(const char *id)
{
	char text[256];

	if (mkdir("/tmp", 01777) == 0)
		(void)chmod("/tmp", 01777);
	(void)mkdir("/etc", 0755);
	snprintf(text, sizeof text, "%s\n", id);
	fill_file("/etc/hostname", text);
	snprintf(text, sizeof text,
		"127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n127.0.1.1\t%s\n", id);
	fill_file("/etc/hosts", text);
	fill_file("/etc/resolv.conf", "# loopback only\n");
}

const char *
inside_build_root(const struct enter_plan *plan, const int mounts[ENTER_MOUNTS])
{
	const unsigned plain = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
	AUTO_FD proc = -1;
	AUTO_FD sys = -1;
	const char *failed;

	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		return "make mounts private";
	proc = new_mount("proc", plain);
	if (proc < 0)
		return "create /proc (the host's own /proc must not be masked)";
	sys = new_mount("sysfs", plain | MOUNT_ATTR_RDONLY); /* not everywhere allowed: then there is none */
	failed = change_root(mounts[ENTER_ROOT]);
	if (failed != NULL)
		return failed;
	if (!attach(proc, "/proc", 0555))
		return "mount /proc (it must be a directory of the image, or missing)";
	if (sys >= 0 && !attach(sys, "/sys", 0555))
		return "mount /sys (it must be a directory of the image, or missing)";
	failed = mount_dev(mounts[ENTER_DEV], plan->shm_bytes);
	if (failed == NULL)
		failed = mask_paths();
	if (failed == NULL)
		fill_image_gaps(plan->id);
	return failed;
}
