/* record_log_impl.h - what record_log.c and record_sweep.c share. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_BACKEND_RECORD_LOG_IMPL_H
#define ORCHARD_BACKEND_RECORD_LOG_IMPL_H

#include "backend/record_log.h"
#include "backend/record_segment.h"

enum { RECORD_CACHED_FDS = 16 };

struct cached_fd {
	uint32_t number; /* 0: unused */
	int fd;
	uint64_t used;
};

struct record_log {
	struct shm_index *index;
	int dirfd;
	int64_t segment_bytes, max_bytes;
	struct segment segment; /* where this process appends */
	uint64_t clock; /* of the cache */
	struct cached_fd cache[RECORD_CACHED_FDS];
};

#endif
