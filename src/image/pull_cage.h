/* pull_cage.h - where skopeo runs. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_IMAGE_PULL_CAGE_H
#define ORCHARD_IMAGE_PULL_CAGE_H

#include "base/cleanup.h"

#include <stdint.h>

struct err;
struct puller;

enum { PULL_CAGE_FAILED = 125 }; /* exit status: the program was not started */
#define PULL_AUTH_PATH "/proc/self/fd/3"

/*
 * In a child that is the first process of its own process, IPC and UTS namespaces. Returns when it failed only.
 * The credentials become descriptor 3.
 */
void pull_cage_exec(
	const struct puller *puller, int64_t file_max, char *const *argv, int out_fd, int err_fd, struct err *err);

#endif
