/*
 * lane_table.h - what this server knows of the leases of lanes that several servers share.
 *
 * A cache: what is lost of it is asked for again, so a full table forgets lanes that nobody uses. It outlives the server
 * with the rest of its memory, for while Redis is away it is all that tells who had a lane last. Same rules as the sandbox
 * table: lock-free reads, short robust writes.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_IPC_LANE_TABLE_H
#define ORCHARD_IPC_LANE_TABLE_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stdint.h>

struct err;
struct shm_lanes;

enum { LANE_KEY_SIZE = 64 };

struct lane_record {
	char key[LANE_KEY_SIZE]; /* names the sandbox's life and the lane */
	uint64_t lane; /* as the exec lock names it */
	uint64_t number; /* of the newest lease that this server had; 0: none yet */
	uint64_t over; /* leases up to this one are not its own any more */
	uint64_t fences; /* made of the newest lease */
	int64_t until_ms; /* boot clock */
	uint32_t sandbox_slot;
	uint32_t turns; /* commands that may go although others wait */
	bool wanted; /* others wait */
};

/* What a full table may forget; one for each process, which goes around the table with it. */
struct lane_forgetting {
	bool (*is_idle)(void *arg, const struct lane_record *record); /* nobody uses that lane */
	void *arg;
	uint32_t hand; /* where it goes on */
};
/* Finds the record or makes an empty one. ERR_BUSY when the table is full of lanes in use. */
int lane_table_enter(struct shm_lanes *table, const struct lane_record *record, struct lane_forgetting *forgetting,
	uint32_t *ret_slot, struct err *err) MUSTCHECK;
bool lane_table_find(
	struct shm_lanes *table, const char *key, struct lane_record *ret_record, uint32_t *ret_slot) MUSTCHECK;
bool lane_table_read(struct shm_lanes *table, uint32_t slot, struct lane_record *ret_record) MUSTCHECK;
/* Calls change() with the record locked; it returns 0 to keep what it did. ERR_NOT_FOUND: it was forgotten. */
typedef int lane_change_f(struct lane_record *record, void *arg, struct err *err);
int lane_table_change(struct shm_lanes *table, uint32_t slot, const char *key, lane_change_f *change, void *arg,
	struct err *err) MUSTCHECK;
uint32_t lane_table_bound(struct shm_lanes *table);
uint32_t lane_table_count(struct shm_lanes *table);

#endif
