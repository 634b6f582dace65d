/* disk.c - project quotas: ids, limits, and whether this filesystem has them. */
/* SPDX-License-Identifier: MIT */
#include "spawner/disk/disk.h"

#include "base/err.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/dqblk_xfs.h>
#include <linux/fs.h>
#include <linux/quota.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#ifndef SYS_quotactl_fd
#define SYS_quotactl_fd 443
#endif

enum {
	SLOT_STRIDE = 65536, /* there are no more slots: each has this many ids of the 32 bits */
	SLOT_PROJECTS = 16, /* of one slot; those of deleted sandboxes wait for the trash */
	INODE_BYTES = 4096, /* one file for each of these: files without content take room, too */
	INODES_MIN = 1024,
	QUOTA_BLOCK = 1024 /* the unit of block limits */
};

static const char *const limited[] = { "upper", "work", "spool" };

static int
quota_call(int fd, int command, uint32_t project, void *data)
{
	return (int)syscall(SYS_quotactl_fd, fd, QCMD(command, PRJQUOTA), project, data);
}

/* Counting alone limits nothing: some filesystems count whenever they can. */
static bool
quota_is_enforced(int fd)
{
	struct fs_quota_statv state = { .qs_version = FS_QSTATV_VERSION1 };

	return quota_call(fd, Q_XGETQSTATV, 0, &state) == 0 && (state.qs_flags & FS_QUOTA_PDQ_ENFD) != 0;
}

void
disk_open(struct disk_host *host, int dirfd, int64_t project_base)
{
	host->project_base = (uint32_t)project_base;
	host->quota = quota_is_enforced(dirfd);
	if (host->quota)
		log_info("disk of sandboxes is limited by project quotas, from project %u on", host->project_base);
	else
		log_info("the filesystem of state_dir has no project quotas: disk of sandboxes is measured now and "
			 "then");
}

/* A project without files; those of an earlier sandbox may still lie in the trash. */
static int
find_project(const struct disk_host *host, int fd, uint32_t slot, uint32_t *ret_project, struct err *err)
{
	for (uint32_t i = 0; i < SLOT_PROJECTS; i++) {
		uint32_t project = host->project_base + slot + i * SLOT_STRIDE;
		struct if_dqblk use = { 0 };

		if (project < host->project_base)
			break;
		if (quota_call(fd, Q_GETQUOTA, project, &use) != 0 && errno != ENOENT && errno != ESRCH)
			return err_set_errno(err, errno, "disk use of project %u", project);
		if (use.dqb_curinodes == 0 && use.dqb_curspace == 0) {
			*ret_project = project;
			return 0;
		}
	}
	return err_set(err, ERR_NO_CAPACITY,
		"no project is free for its disk limit: files of deleted sandboxes are still being removed, or "
		"others "
		"use projects from disk_project_base on");
}

/* What is made in the directory from now on belongs to the project. */
static int
join_project(int box_fd, const char *name, uint32_t project, struct err *err)
{
	AUTO_FD dir = openat(box_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct fsxattr attr;

	if (dir < 0 || ioctl(dir, FS_IOC_FSGETXATTR, &attr) != 0)
		return err_set_errno(err, errno, "project of %s", name);
	attr.fsx_projid = project;
	attr.fsx_xflags |= FS_XFLAG_PROJINHERIT;
	if (ioctl(dir, FS_IOC_FSSETXATTR, &attr) != 0)
		return err_set_errno(err, errno, "project of %s", name);
	return 0;
}

static int
set_limit(int fd, uint32_t project, int64_t bytes, struct err *err)
{
	int64_t inodes = bytes / INODE_BYTES;
	struct if_dqblk limit = { .dqb_valid = QIF_LIMITS };

	if (bytes > 0) {
		limit.dqb_bhardlimit = (uint64_t)(bytes + QUOTA_BLOCK - 1) / QUOTA_BLOCK;
		limit.dqb_ihardlimit = (uint64_t)(inodes < INODES_MIN ? INODES_MIN : inodes);
	}
	if (quota_call(fd, Q_SETQUOTA, project, &limit) != 0)
		return err_set_errno(err, errno, "disk limit of project %u", project);
	return 0;
}

/* Opens what belongs to the project of the sandbox; -1: it has none. */
static int
open_project(const struct disk_host *host, int dirfd, const char *name, uint32_t *ret_project)
{
	char path[256];
	struct fsxattr attr;
	AUTO_FD upper = -1;

	if (!host->quota || (size_t)snprintf(path, sizeof path, "%s/%s", name, limited[0]) >= sizeof path)
		return -1;
	upper = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (upper < 0 || ioctl(upper, FS_IOC_FSGETXATTR, &attr) != 0 || attr.fsx_projid < host->project_base)
		return -1;
	*ret_project = attr.fsx_projid;
	return STEAL_FD(upper);
}

int
disk_join(const struct disk_host *host, int box_fd, uint32_t slot, struct err *err)
{
	uint32_t project = 0;

	if (!host->quota)
		return 0;
	/* Without the limit that an earlier sandbox left. */
	if (find_project(host, box_fd, slot, &project, err) != 0 || set_limit(box_fd, project, 0, err) != 0)
		return -1;
	for (size_t i = 0; i < sizeof limited / sizeof *limited; i++) {
		if (join_project(box_fd, limited[i], project, err) != 0)
			return -1;
	}
	return 0;
}

int
disk_limit(const struct disk_host *host, int box_fd, uint32_t slot, int64_t bytes, struct err *err)
{
	AUTO_FD upper = -1;
	uint32_t project = 0;

	if (!host->quota)
		return 0;
	upper = open_project(host, box_fd, ".", &project);
	if (upper >= 0)
		return set_limit(upper, project, bytes, err);
	if (disk_join(host, box_fd, slot, err) != 0)
		return -1;
	return disk_limit(host, box_fd, slot, bytes, err);
}

int64_t
disk_used(const struct disk_host *host, int dirfd, const char *name)
{
	struct if_dqblk use = { 0 };
	uint32_t project = 0;
	AUTO_FD fd = open_project(host, dirfd, name, &project);

	return fd >= 0 && quota_call(fd, Q_GETQUOTA, project, &use) == 0 ? (int64_t)use.dqb_curspace : -1;
}

void
disk_release(const struct disk_host *host, int dirfd, const char *name)
{
	uint32_t project = 0;
	AUTO_FD fd = open_project(host, dirfd, name, &project);
	struct err err;

	if (fd >= 0 && set_limit(fd, project, 0, &err) != 0)
		log_warn("sandbox %s is removed, but not its limit: %s", name, err.msg);
}
