/*
 * disk.h - how much of state_dir the files of one sandbox may take, by the kernel's count.
 *
 * Where the filesystem has project quotas the kernel counts and refuses: upper/,
 * work/ and spool/ of a sandbox are one project with a hard limit. The project is
 * written in the directories themselves, so a later spawner need not be told.
 * User code can't leave it: only the initial user namespace changes projects.
 * Elsewhere the limit is watched, see disk_watch.h.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_DISK_H
#define ORCHARD_SPAWNER_DISK_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stdint.h>

struct err;

struct disk_host {
	bool quota; /* project quotas are there and enforced */
	uint32_t project_base; /* first id of sandboxes */
};

/* Looks at the filesystem of dirfd, and logs what limits there will be. */
void disk_open(struct disk_host *host, int dirfd, int64_t project_base);

/*
 * Counts from now on what is written below box_fd, whose directories are there and empty, without a limit. slot is no
 * other sandbox's. Without quotas it does nothing. ERR_NO_CAPACITY when all projects of the slot still hold files.
 */
int disk_join(const struct disk_host *host, int box_fd, uint32_t slot, struct err *err) MUSTCHECK;
/* Limits what is counted there, after disk_join if that was not done. bytes 0: no limit. */
int disk_limit(const struct disk_host *host, int box_fd, uint32_t slot, int64_t bytes, struct err *err) MUSTCHECK;
/* What the files of the sandbox name below dirfd take; -1: the kernel does not count them. */
int64_t disk_used(const struct disk_host *host, int dirfd, const char *name);
/* Takes the limit of the sandbox name below dirfd back; its files still count until they are deleted. */
void disk_release(const struct disk_host *host, int dirfd, const char *name);

#endif
