/* disk_usage.h - how much of the disk a directory takes that strangers write to. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_DISK_USAGE_H
#define ORCHARD_SPAWNER_DISK_USAGE_H

#include "base/cleanup.h"

#include <stdint.h>

struct err;

/* As deep as the longest path leads. */
enum { DISK_USAGE_DEPTH = 2048 };

/*
 * Adds up name below dirfd, each file as 4 KiB at least. Takes a quarter of one processor at most. What moves
 * meanwhile may be missed or counted twice. INT64_MAX where directories are nested deeper
 * than DISK_USAGE_DEPTH, which no path reaches, or than there are descriptors.
 */
int disk_usage(int dirfd, const char *name, int64_t *ret_bytes, struct err *err) MUSTCHECK;

#endif
