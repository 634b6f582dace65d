/*
 * pack.h - a directory here as a tar stream, made as it is read. What stands in the way (a file that may not be read, one
 * that changes meanwhile) ends it: what is copied is all of it, or known not to be.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARDCTL_COPY_PACK_H
#define ORCHARDCTL_COPY_PACK_H

#include "base/cleanup.h"

#include <stddef.h>
#include <stdint.h>

struct err;
struct pack;

/* directory: its contents, with names that count from it. */
int pack_open(const char *directory, struct pack **ret_pack, struct err *err) MUSTCHECK;
void pack_close(struct pack *pack);
/* The next bytes; *ret_len is 0 at the end. */
int pack_read(struct pack *pack, void *buf, size_t size, size_t *ret_len, struct err *err) MUSTCHECK;

/* About how many bytes it will be. */
int64_t pack_measure(const char *directory);

#endif
