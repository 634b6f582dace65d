/* rootfs.h - the root filesystem of one sandbox: image layers below, a private writable layer on top. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_ROOTFS_H
#define ORCHARD_SPAWNER_ROOTFS_H

#include "base/cleanup.h"

#include <stddef.h>

struct err;

/*
 * Builds the overlay as a detached mount. layers are directories, top first; they
 * are seen through the ids of userns_fd and never written. box_fd holds upper/ and work/.
 */
int
rootfs_build(int box_fd, const int *layers, size_t count, int userns_fd, int *ret_mount, struct err *err) MUSTCHECK;

#endif
