/*
 * record_index.h - where in the record log a finished thing stands: key -> place.
 *
 * Hash chains in shared memory under one short robust mutex. The log on
 * disk is the truth; the index is rebuilt from it when shared memory is new.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_IPC_RECORD_INDEX_H
#define ORCHARD_IPC_RECORD_INDEX_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct shm_index;

struct record_key {
	uint8_t bytes[16];
};

struct record_location {
	uint32_t segment; /* 0: nowhere */
	uint32_t length;
	uint64_t offset;
};

/* By clock_steady(). */
struct record_life {
	double expires_at;
	double ended_at; /* of what it stands for, in full seconds; 0: not yet, so it may not make room */
};

/* First one wins: ERR_EXISTS leaves the older entry (and returns its place in *location). ERR_BUSY: full. */
int record_index_put(struct shm_index *index, const struct record_key *key, const struct record_life *life,
	struct record_location *location, struct err *err) MUSTCHECK;
bool record_index_get(
	struct shm_index *index, const struct record_key *key, double now, struct record_location *ret_location);
bool record_index_find(struct shm_index *index, const struct record_key *key, double now,
	struct record_location *ret_location, struct record_life *ret_life);
void record_index_drop(struct shm_index *index, const struct record_key *key);
/* These two change an entry only while it names that place: false, or ERR_STALE, when it does not (or has ended). */
bool record_index_drop_at(
	struct shm_index *index, const struct record_key *key, const struct record_location *location) MUSTCHECK;
int record_index_move(struct shm_index *index, const struct record_key *key, const struct record_life *life,
	const struct record_location *from, const struct record_location *to, struct err *err) MUSTCHECK;
/* What an entry that is there stands for has ended. */
bool record_index_settle(struct shm_index *index, const struct record_key *key, const struct record_life *life,
	struct record_location *ret_location);
/* Forgets entries that have expired or lie in segments below `oldest`; returns how many are left. */
uint32_t record_index_purge(struct shm_index *index, double now, uint32_t oldest);
/*
 * For when it is full: forgets what has expired, and if that frees little, the sixteenth that ended first, but
 * nothing that ended after `ended_by`. False: it is still full.
 */
bool record_index_make_room(struct shm_index *index, double now, double ended_by);
/* How many made room that way since the index was new. */
uint64_t record_index_forgotten(struct shm_index *index);
/* Which of these segments (ascending) an entry stands in; only sets what is true. */
void record_index_mark_used(struct shm_index *index, const uint32_t *numbers, size_t count, bool *ret_used);
/*
 * Keys of what had ended by that second or later, a page at a time: from 0 on, each call with what the last one returned,
 * until that is 0. What is put or moved meanwhile may be there or not.
 */
uint32_t record_index_page(struct shm_index *index, uint32_t from, double ended_from, struct record_key *ret_keys,
	size_t size, size_t *ret_count);
/* The next free segment number (never 0), shared by all processes. */
uint32_t record_index_next_segment(struct shm_index *index);
/* The last number given out. */
uint32_t record_index_newest_segment(struct shm_index *index);
void record_index_raise_segment(struct shm_index *index, uint32_t seen);
uint32_t record_index_count(struct shm_index *index);

#endif
