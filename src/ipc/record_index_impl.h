/* record_index_impl.h - the inside of the index, for record_index.c and record_room.c. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_IPC_RECORD_INDEX_IMPL_H
#define ORCHARD_IPC_RECORD_INDEX_IMPL_H

#include "ipc/record_index.h"

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>

/* References to entries are number + 1; 0: none. */
struct index_entry {
	struct record_key key;
	double expires_at;
	uint64_t offset;
	uint32_t length;
	_Atomic uint32_t segment; /* 0: not in use */
	uint32_t next; /* in its chain or in the free list */
	uint32_t ended; /* second (wall clock) by which what it stands for had ended; 0: it has not */
};

struct shm_index {
	alignas(64) pthread_mutex_t mutex;
	_Atomic uint32_t segment; /* the newest number given out */
	uint32_t total, bucket_mask;
	uint64_t buckets, entries; /* offsets from here */
	/* Derived. */
	uint32_t bound; /* entries from here on were never used */
	uint32_t free;
	uint32_t count;
	_Atomic uint32_t ready; /* entries whose memory is there: see room.h; at least bound */
	uint64_t forgotten; /* ended, but not expired, when they made room */
};

/* The mutex; the lists are made new when its holder died. */
void index_enter(struct shm_index *index);
void index_leave(struct shm_index *index);
/* With the mutex. */
struct index_entry *index_entry_at(struct shm_index *index, uint32_t ref);
/* Places that entries can have now: all, or as many as there is memory for. */
uint32_t index_places(struct shm_index *index);
uint32_t index_segment_of(const struct index_entry *entry);
void index_forget(struct shm_index *index, struct index_entry *entry);

#endif
