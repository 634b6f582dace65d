/* runtime_home.h - where a sandbox's bundle and its runtime's own records lie, while it lives: run_dir/runtime/<uid>. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_RUNTIME_HOME_H
#define ORCHARD_SPAWNER_RUNTIME_HOME_H

#include "base/cleanup.h"

#include <limits.h>

struct err;

struct runtime_home {
	int fd;
	char path[PATH_MAX];
};

/* runtimes_fd: run_dir/runtime. With places for what is mounted in the bundle. */
int runtime_home_make(int runtimes_fd, const char *run_dir, const char *uid, struct runtime_home *ret_home,
	struct err *err) MUSTCHECK;
/* All that a runtime remembers of it; none is fine. */
int runtime_home_remove(int runtimes_fd, const char *uid, struct err *err) MUSTCHECK;

#endif
