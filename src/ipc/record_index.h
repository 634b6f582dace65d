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

/* First one wins: ERR_EXISTS leaves the older entry (and returns its place in *location). ERR_BUSY: full. */
int record_index_put(struct shm_index *index, const struct record_key *key, double expires_at,
	struct record_location *location, struct err *err) MUSTCHECK;
bool record_index_get(
	struct shm_index *index, const struct record_key *key, double now, struct record_location *ret_location);
void record_index_drop(struct shm_index *index, const struct record_key *key);
/* Forgets entries that have expired or lie in segments below `oldest`; returns how many are left. */
uint32_t record_index_purge(struct shm_index *index, double now, uint32_t oldest);
/* For when it is full: forgets what has expired, and if that frees little, the sixteenth that expires soonest. */
void record_index_make_room(struct shm_index *index, double now);
/* The next free segment number (never 0), shared by all processes. */
uint32_t record_index_next_segment(struct shm_index *index);
void record_index_raise_segment(struct shm_index *index, uint32_t seen);
uint32_t record_index_count(struct shm_index *index);

#endif
