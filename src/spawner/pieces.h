/* pieces.h - the one /dev that every sandbox gets a read-only view of. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_PIECES_H
#define ORCHARD_SPAWNER_PIECES_H

#include "base/cleanup.h"

struct err;

/* Mounts a tmpfs with dev/ on run/pieces, in the caller's mount namespace; *ret_fd is its root. */
int pieces_mount(int run_fd, int *ret_fd, struct err *err) MUSTCHECK;

/* A detached read-only mount of dev/, its files owned by the ids of userns_fd. */
int pieces_view(int pieces_fd, int userns_fd, int *ret_mount, struct err *err) MUSTCHECK;

#endif
