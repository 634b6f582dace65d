/*
 * scoreboard.h - which processes there are, what they are, and their counters.
 *
 * A process is named by `struct proc_ref`: its slot and the slot's generation,
 * which the master raises when it has reaped the process. Whatever else in
 * shared memory has an owner names it so; a stale generation means the owner is
 * dead, and its things are repaired.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_IPC_SCOREBOARD_H
#define ORCHARD_IPC_SCOREBOARD_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct shm_scoreboard;

enum proc_role { PROC_NONE, PROC_MASTER, PROC_WORKER, PROC_REAPER, PROC_SPAWNER, PROC_GATEWAY };
enum proc_state { PROC_STARTING, PROC_READY, PROC_DRAINING };

struct proc_ref {
	uint32_t slot;
	uint32_t generation;
};

/* Counters of one process; each is written by its owner only, so plain relaxed adds do. */
enum metric {
	METRIC_CONNECTIONS, /* open now */
	METRIC_CONNECTIONS_TOTAL,
	METRIC_CONNECTIONS_REFUSED,
	METRIC_REQUESTS_TOTAL,
	METRIC_RESPONSES_2XX,
	METRIC_RESPONSES_4XX,
	METRIC_RESPONSES_5XX,
	METRIC_WAITERS, /* open now */
	METRIC_SANDBOXES_CREATED,
	METRIC_SANDBOXES_FAILED,
	METRIC_SANDBOXES_DELETED,
	METRIC_SANDBOXES_REAPED,
	METRIC_EXECS_STARTED,
	METRIC_EXECS_SUCCEEDED,
	METRIC_EXECS_FAILED,
	METRIC_EXECS_TIMED_OUT,
	METRIC_EXECS_REFUSED, /* over a queue limit */
	METRIC_EXECS_RECOVERED, /* taken over from a dead process */
	METRIC_AGENT_ERRORS,
	METRIC_COUNT
};

struct proc_info {
	struct proc_ref ref;
	enum proc_role role;
	enum proc_state state;
	pid_t pid;
	uint64_t start_time;
	double started_at; /* wall clock */
	uint64_t restarts; /* how often this role was respawned in this slot */
	int64_t metrics[METRIC_COUNT];
};

/* Master only. Claims a free slot before the fork; ERR_NO_CAPACITY when all are taken. */
int scoreboard_claim(
	struct shm_scoreboard *board, enum proc_role role, struct proc_ref *ret_ref, struct err *err) MUSTCHECK;
void scoreboard_set_pid(struct shm_scoreboard *board, struct proc_ref ref, pid_t pid, uint64_t start_time);
/* Master only, after waitpid(): the generation rises, counters move into the totals of the dead. */
void scoreboard_retire(struct shm_scoreboard *board, struct proc_ref ref);
void scoreboard_set_state(struct shm_scoreboard *board, struct proc_ref ref, enum proc_state state);
bool scoreboard_is_current(struct shm_scoreboard *board, struct proc_ref ref);
/* Fills *ret_info for slot; false when the slot is free. */
bool scoreboard_info(struct shm_scoreboard *board, uint32_t slot, struct proc_info *ret_info);

/* Adds to a counter of one's own slot. */
void scoreboard_add(struct shm_scoreboard *board, struct proc_ref self, enum metric metric, int64_t n);
/* The sum over live and dead processes; gauges (open now) over live ones only. */
int64_t scoreboard_sum(struct shm_scoreboard *board, enum metric metric);

#endif
