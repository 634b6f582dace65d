/* pieces.h - the one /dev and the one resolv.conf that sandboxes get read-only views of. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_PIECES_H
#define ORCHARD_SPAWNER_PIECES_H

#include "base/cleanup.h"

struct err;

/* Mounts a tmpfs with dev/ on run/pieces, in the caller's mount namespace; *ret_fd is its root. */
int pieces_mount(int run_fd, int *ret_fd, struct err *err) MUSTCHECK;

#define PIECE_BASE   "base" /* empty places for /proc, /sys, /dev and the host's root */
#define PIECE_OLD    "old"
#define PIECE_DEV    "dev"
#define PIECE_RESOLV "resolv.conf"

/* A small file beside dev/, for pieces_view. */
int pieces_write(int pieces_fd, const char *name, const char *text, struct err *err) MUSTCHECK;
/* A detached read-only mount of one of them, its files owned by the ids of userns_fd; -1: by those of the host. */
int pieces_view(int pieces_fd, const char *name, int userns_fd, int *ret_mount, struct err *err) MUSTCHECK;

#endif
