/*
 * shm.h - the one mapping that every process of a server shares.
 *
 * run_dir/shm holds fixed sections, indices only, no pointers. Its header names
 * layout version, sizes and the boot it was made in; the magic is stored last.
 * The master creates it before the first fork, or adopts the one that an earlier
 * master of this boot left (same layout and sizes), so that sandboxes and jobs
 * outlive the server. Adopting re-initialises every lock; the caller holds the
 * state lock, so nobody else has it mapped.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_IPC_SHM_H
#define ORCHARD_IPC_SHM_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct shm;
struct shm_sandboxes; /* sandbox_table.h */
struct shm_exec_lock; /* exec_lock.h */
struct shm_jobs; /* job_table.h */
struct shm_lanes; /* lane_table.h */
struct shm_index; /* record_index.h */
struct shm_scoreboard; /* scoreboard.h */
struct shm_notify; /* notify.h */
struct shm_life; /* server_life.h */

struct shm_sizes {
	uint32_t sandboxes; /* max_sandboxes */
	uint32_t jobs; /* exec_queue_limit: live job slots and lock nodes */
	uint32_t records; /* job_store_max_records */
	uint32_t keys; /* idempotency_max_records */
	uint32_t lanes; /* leases of lanes shared with other servers; 0: shared with none */
};

enum { SHM_PROCESSES = 96 }; /* slots of the scoreboard: two generations and the rest */

/* Also starts clock_steady(). *ret_adopted: an earlier server's data is in there. ERR_NO_SPACE when the memory can't be reserved. */
int shm_open_or_create(const char *path, const struct shm_sizes *sizes, struct shm **ret_shm, bool *ret_adopted,
	struct err *err) MUSTCHECK;
/* Why what is at path could not be adopted with these sizes but would be replaced; NULL: it can be, or there is nothing. */
const char *shm_obstacle(const char *path, const struct shm_sizes *sizes);
void shm_close(struct shm *shm); /* unmaps; the file stays */

struct shm_sandboxes *shm_sandboxes(struct shm *shm);
struct shm_exec_lock *shm_exec_lock(struct shm *shm);
struct shm_jobs *shm_jobs(struct shm *shm);
struct shm_lanes *shm_lanes(struct shm *shm);
struct shm_index *shm_index(struct shm *shm); /* of what has ended */
struct shm_index *shm_keys(struct shm *shm); /* of Idempotency-Keys */
struct shm_scoreboard *shm_scoreboard(struct shm *shm);
struct shm_notify *shm_notify(struct shm *shm);
struct shm_life *shm_life(struct shm *shm);

#endif
