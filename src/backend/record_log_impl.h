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
	bool keep;
	int64_t keep_ended_s;
	int64_t full_ms; /* when there was last no room to be made; 0: never */
	struct segment segment; /* where this process appends */
	uint64_t clock; /* of the cache */
	struct cached_fd cache[RECORD_CACHED_FDS];
};

/*
 * Sealed heads and data, one behind the other, as one append. Afterwards each head says whether its record stands
 * (segment_head_stands); ret_first: of the first one. On failure nothing is kept.
 */
int record_log_append_group(struct record_log *log, char *bytes, size_t len, struct record_location *ret_first,
	struct err *err) MUSTCHECK;

#endif
