/*
 * slot_impl.h - layout and locks of a slot array, for the files slot_*.c only.
 *
 * slot_array.c changes it, slot_chain.c keeps what is derived, slot_read.c reads it.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_IPC_SLOT_IMPL_H
#define ORCHARD_IPC_SLOT_IMPL_H

#include "ipc/slot_array.h"

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <string.h>

enum { SLOT_STRIPES = 64, SLOT_LINE = 64 };

/* References to slots are number + 1, so that zero-filled memory says "none". */
struct slot_head {
	_Atomic uint32_t seq;
	_Atomic uint32_t used;
	_Atomic uint32_t hash;
	_Atomic uint32_t next; /* in its chain, or in the free list */
};

struct slot_stripe {
	alignas(SLOT_LINE) pthread_mutex_t mutex;
	_Atomic uint32_t armed; /* reference to the slot that the journal is to be copied to */
};

struct slot_array {
	alignas(SLOT_LINE) pthread_mutex_t mutex;
	uint32_t capacity;
	uint32_t stride;
	uint32_t bucket_mask;
	uint32_t free;
	uint64_t seed;
	uint64_t journals, buckets, slots; /* offsets from here */
	alignas(SLOT_LINE) _Atomic uint32_t version; /* odd: chains are being taken apart */
	_Atomic uint32_t bound;
	_Atomic uint32_t count;
	_Atomic uint32_t ready; /* slots whose memory is there: see room.h; at least bound */
	struct slot_stripe stripes[SLOT_STRIPES];
};

_Static_assert(sizeof(struct slot_head) == 16, "layout changed: raise SHM_VERSION");
_Static_assert(sizeof(struct slot_stripe) == SLOT_LINE, "layout changed: raise SHM_VERSION");
_Static_assert(sizeof(struct slot_array) == (3 + SLOT_STRIPES) * SLOT_LINE, "layout changed: raise SHM_VERSION");

static inline struct slot_head *
slot_head_at(struct slot_array *array, uint32_t slot)
{
	return (struct slot_head *)((char *)array + array->slots + (uint64_t)slot * array->stride);
}

static inline char *
slot_record_of(struct slot_head *head)
{
	return (char *)(head + 1);
}

static inline char *
slot_journal_at(struct slot_array *array, uint32_t stripe)
{
	return (char *)array + array->journals + (uint64_t)stripe * array->stride;
}

static inline _Atomic uint32_t *
slot_bucket_at(struct slot_array *array, uint32_t hash)
{
	return (_Atomic uint32_t *)((char *)array + array->buckets) + (hash & array->bucket_mask);
}

/* Records are copied word by word where somebody may write or read them meanwhile; `seq` tells who did. */
typedef _Atomic uint64_t slot_word __attribute__((may_alias));

static inline void
slot_load_words(void *to, const char *shared, size_t size)
{
	const slot_word *words = (const slot_word *)(const void *)shared;

	for (size_t i = 0; i < size / sizeof *words; i++) {
		uint64_t word = atomic_load_explicit(&words[i], memory_order_relaxed);

		memcpy((char *)to + i * sizeof word, &word, sizeof word);
	}
}

static inline void
slot_store_words(char *shared, const void *from, size_t size)
{
	slot_word *words = (slot_word *)(void *)shared;

	for (size_t i = 0; i < size / sizeof *words; i++) {
		uint64_t word;

		memcpy(&word, (const char *)from + i * sizeof word, sizeof word);
		atomic_store_explicit(&words[i], word, memory_order_relaxed);
	}
}

/* Slots that may be touched. */
static inline uint32_t
slot_ready(const struct slot_array *array)
{
	return atomic_load_explicit(&array->ready, memory_order_acquire);
}

/* --- slot_array.c --- */
/* The lock of the record in that slot; what a dead holder left is finished first. */
void slot_lock_record(struct slot_array *array, const struct slot_kind *kind, uint32_t slot);
void slot_unlock_record(struct slot_array *array, uint32_t slot);

/* --- slot_chain.c; all with the table lock held, but the first two --- */
uint32_t slot_hash(const struct slot_array *array, const struct slot_kind *kind, const char *key);
/* After a death all that is derived is made new first. */
void slot_lock_table(struct slot_array *array);
void slot_rebuild(struct slot_array *array);
/* The slot of key, or UINT32_MAX. */
uint32_t slot_find_locked(struct slot_array *array, const struct slot_kind *kind, const char *key);
/* A slot nobody uses; or SLOT_NONE, or SLOT_NOT_READY when there is one, but not its memory. */
enum { SLOT_NONE = -1, SLOT_NOT_READY = -2 };
int64_t slot_pick(struct slot_array *array);
void slot_link(struct slot_array *array, uint32_t slot);
/* Marks it free, takes it out of its chain, puts it in the free list. */
void slot_retire(struct slot_array *array, uint32_t slot);

#endif
