/*
 * job_table.h - commands that have not ended yet, in fixed shared slots.
 *
 * A slot is made before the client hears of the job and lives until its result
 * is in the record log; then it is freed and every waiter is told. What is big
 * (the command's text) stands in the record log at `spec`. Same rules as the
 * sandbox table: lock-free reads, short robust writes, uid = job id.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_IPC_JOB_TABLE_H
#define ORCHARD_IPC_JOB_TABLE_H

#include "base/cleanup.h"
#include "base/id.h"
#include "ipc/record_index.h"
#include "ipc/sandbox_table.h"
#include "ipc/scoreboard.h"

#include <stdbool.h>
#include <stdint.h>

struct err;
struct shm_jobs;

enum job_state {
	JOB_QUEUED,
	JOB_RUNNING, /* the agent may have it */
	JOB_SAVING /* its end is known to `owner`, which is writing it down */
};

struct job_record {
	char id[ID_UUID_SIZE];
	char sandbox_id[SANDBOX_ID_SIZE];
	char sandbox_uid[ID_UUID_SIZE];
	char tenant[SANDBOX_TENANT_SIZE];
	char lane[64];
	uint32_t sandbox_slot;
	uint32_t state; /* enum job_state */
	bool cancel; /* asked to be cancelled */
	bool left; /* its client left while it was queued: it gives its place up */
	bool detached; /* it goes on without its client: wait:false, or an Idempotency-Key */
	bool followed; /* somebody wants to hear when it starts to run */
	bool stdin_open; /* its stdin can be written to */
	bool taken; /* from another server that was gone */
	bool claimed; /* by another server, that thought this one gone: it is no more ours */
	bool untold; /* Redis has lost it: its owner tells of it anew */
	struct proc_ref owner; /* who drives it; a stale one: the reaper takes over */
	uint64_t fence; /* exec ticket; 0 while it has none */
	uint32_t lock_node;
	uint64_t lane_fence; /* what the agent is given where lanes are shared with other servers; 0: `fence` */
	uint32_t attempt;
	double created_at, started_at; /* wall clock; 0: not yet */
	int64_t created_ms, started_ms;
	int64_t timeout_ms;
	struct record_location spec;
	char prev_job[ID_UUID_SIZE]; /* the sandbox's last_job before this one, once it is */
	bool chained; /* this one is the sandbox's last_job, or was; prev_job is its place for good */
	char blocked_by[ID_UUID_SIZE]; /* QUEUED: the job in its lane at the agent, if the lock has none */
	double keep_until; /* its result is kept so long, for the sake of `key`; 0: it has none */
	struct record_key key;
};

int job_table_insert(struct shm_jobs *table, const struct job_record *record, uint32_t *ret_slot,
	struct err *err) MUSTCHECK; /* ERR_BUSY when full */
bool job_table_find(struct shm_jobs *table, const char *job_id, struct job_record *ret_record, uint32_t *ret_slot);
bool job_table_read(struct shm_jobs *table, uint32_t slot, struct job_record *ret_record);
typedef int job_change_f(struct job_record *record, void *arg, struct err *err);
int job_table_change(struct shm_jobs *table, uint32_t slot, const char *job_id, job_change_f *change, void *arg,
	struct err *err) MUSTCHECK;
bool job_table_remove(struct shm_jobs *table, uint32_t slot, const char *job_id);
uint32_t job_table_bound(struct shm_jobs *table);
uint32_t job_table_count(struct shm_jobs *table);

#endif
