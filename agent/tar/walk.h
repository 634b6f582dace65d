/*
 * walk.h - a directory tree, entry by entry, each directory before what is in it. No link is followed, and what the
 * kernel makes up (/proc, /sys) is told as empty directories.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_TAR_WALK_H
#define ORCHARD_AGENT_TAR_WALK_H

#include "base/cleanup.h"

#include <sys/stat.h>

struct walk_entry {
	int dir_fd;
	const char *name; /* in dir_fd */
	const char *path; /* from the root of the walk; a directory's ends in a slash */
	struct stat st;
};

struct walk_ops {
	/* 0: go on; other: stop. */
	int (*on_entry)(const struct walk_entry *entry, void *arg);
	/* A directory that cannot be read, with errno; path as above, of the root "". 0: leave its content out; other: stop. */
	int (*on_unreadable)(const char *path, int errnum, void *arg);
	void *arg;
};

/* Takes root_fd. 0, or what stopped it. */
int walk_tree(int root_fd, const struct walk_ops *ops) MUSTCHECK;

#endif
