/*
 * unpack_cage.h - where a layer is unpacked.
 *
 * The root is an empty read-only tmpfs and the layer's directory is mounted on
 * /layer, without devices, set-user-id or execution. So ".." and absolute links
 * end in the cage, and there is nothing of the layer where libraries look for their
 * own files (/lib, /usr/lib, /etc). No network, no other processes, no other descriptors.
 *
 * What is kept of root's rights, and why: CHOWN, FOWNER, FSETID to give files their
 * owners and set-id bits, DAC_OVERRIDE to write into directories whose modes
 * forbid it, SETFCAP for file capabilities. A whiteout is a device that needs no right.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_IMAGE_UNPACK_CAGE_H
#define ORCHARD_IMAGE_UNPACK_CAGE_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stdint.h>

struct err;

/* *ret_layer is /layer. There is no way back. */
int cage_enter(int dir_fd, int *ret_layer, struct err *err) MUSTCHECK;
/* Drops every capability that is not in the set (1 << CAP_x), for good, and sets no_new_privs. */
int cage_keep_capabilities(uint64_t kept, struct err *err) MUSTCHECK;
/* Forbids calls by which faults of the kernel have been reached; alone: also to start programs, and sockets. */
int cage_forbid_calls(bool alone, struct err *err) MUSTCHECK;

#endif
