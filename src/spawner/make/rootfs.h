/* rootfs.h - the root filesystem of one sandbox: image layers below, a private writable layer on top. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_ROOTFS_H
#define ORCHARD_SPAWNER_ROOTFS_H

#include "base/cleanup.h"

#include <stddef.h>

struct err;

struct rootfs_plan {
	int box_fd; /* holds upper/ and work/ */
	int scratch_fd; /* a directory of this mount namespace where layers may be mounted for a moment */
	int userns_fd; /* whose ids the layers are seen through */
	const int *layers; /* directories, top first; never written */
	size_t layer_count;
};

/* Builds the overlay as a detached mount. */
int rootfs_build(const struct rootfs_plan *plan, int *ret_mount, struct err *err) MUSTCHECK;

/*
 * Builds leave what they had to open of the layers: to close it waits for the kernel, so that is for when nobody does.
 * Without it they add up.
 */
void rootfs_settle(void);

#endif
