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

enum proc_role {
	PROC_NONE,
	PROC_MASTER,
	PROC_WORKER,
	PROC_REAPER,
	PROC_SPAWNER,
	PROC_GATEWAY,
	PROC_CONTROLLER,
	PROC_ROLES
};
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
	METRIC_REAPED_TTL, /* by rule, in the order of enum expiry_rule */
	METRIC_REAPED_PENDING,
	METRIC_REAPED_HEARTBEAT,
	METRIC_REAPED_IDLE,
	METRIC_REAPED_FAILED,
	METRIC_REAPED_DOUBTFUL,
	METRIC_REAPED_ORPHAN, /* that no record stands for */
	METRIC_EXECS_STARTED,
	METRIC_EXECS_SUCCEEDED,
	METRIC_EXECS_FAILED,
	METRIC_EXECS_TIMED_OUT,
	METRIC_EXECS_REFUSED, /* over a queue limit */
	METRIC_EXECS_RECOVERED, /* taken over from a dead process */
	METRIC_AGENT_ERRORS,
	METRIC_STREAMS, /* open now */
	METRIC_STREAM_BYTES, /* of output, live or by offset */
	METRIC_STDIN_BYTES,
	METRIC_KEY_REPLAYS, /* requests answered with what their Idempotency-Key stands for */
	METRIC_KEY_CONFLICTS,
	METRIC_IMAGE_PULLS, /* from registries */
	METRIC_IMAGE_PULL_FAILURES,
	METRIC_IMAGE_PULL_MS,
	METRIC_IMAGE_BYTES, /* unpacked now */
	METRIC_IMAGE_LAYERS, /* unpacked now */
	METRIC_CREATES_MADE, /* by the spawner; what their steps took stands next, in the order of enum make_step */
	METRIC_CREATE_WAIT_US,
	METRIC_CREATE_FILES_US,
	METRIC_CREATE_SOCKET_US,
	METRIC_CREATE_CGROUPS_US,
	METRIC_CREATE_NAMESPACES_US,
	METRIC_CREATE_ROOT_US,
	METRIC_CREATE_INIT_US,
	METRIC_CREATE_RECORD_US,
	METRIC_CREATES_READY, /* whose agent has answered; the time from made to there */
	METRIC_CREATE_AGENT_US,
	METRIC_TERMINALS, /* open now */
	METRIC_TERMINALS_TOTAL,
	METRIC_TERMINALS_REFUSED, /* by workers and gateways, for lack of room or of a gateway */
	METRIC_TERMINALS_LOST, /* ended because their agent was gone */
	METRIC_TERMINAL_INPUT_BYTES, /* from clients to programs */
	METRIC_TERMINAL_OUTPUT_BYTES,
	METRIC_FILE_CALLS,
	METRIC_FILE_CALLS_OPEN, /* open now */
	METRIC_FILE_BYTES_IN,
	METRIC_FILE_BYTES_OUT,
	METRIC_BODY_BYTES, /* held now */
	METRIC_BODIES_REFUSED, /* for lack of memory for them */
	METRIC_REDIS_USED, /* now: it has, or wants, a connection */
	METRIC_REDIS_UP, /* now */
	METRIC_REDIS_HEARS, /* now: changes of other servers are read */
	METRIC_REDIS_COMMANDS,
	METRIC_REDIS_REFUSED, /* while it was away, or too much waited for it */
	METRIC_REDIS_LATE,
	METRIC_REDIS_LOST,
	METRIC_REDIS_ERRORS,
	METRIC_REDIS_CONNECTS,
	METRIC_REDIS_ANSWERED, /* and the time it took: */
	METRIC_REDIS_ANSWER_US,
	METRIC_REPLICA_ELECTED, /* now */
	METRIC_REPLICAS_ALIVE, /* now, as the reaper knows */
	METRIC_CREATES_WAITING, /* now: for their turn */
	METRIC_PODS, /* now */
	METRIC_POD_CREATES, /* going on now */
	METRIC_KUBE_USABLE, /* now: pods can be made */
	METRIC_KUBE_REQUESTS, /* to the API server; of them: */
	METRIC_KUBE_RETRIES,
	METRIC_KUBE_REFUSED,
	METRIC_KUBE_THROTTLED,
	METRIC_KUBE_FAILED, /* without an answer */
	METRIC_KUBE_WATCH_RESTARTS,
	METRIC_KUBE_HTTP2,
	METRIC_COUNT
};

struct proc_info {
	struct proc_ref ref;
	enum proc_role role;
	enum proc_state state;
	pid_t pid;
	uint64_t start_time;
	double started_at; /* wall clock */
	uint64_t restarts; /* how often it took the place of one that died */
	int64_t metrics[METRIC_COUNT];
};

/* Master only. Claims a free slot before the fork; ERR_NO_CAPACITY when all are taken. */
int scoreboard_claim(
	struct shm_scoreboard *board, enum proc_role role, struct proc_ref *ret_ref, struct err *err) MUSTCHECK;
void scoreboard_set_pid(struct shm_scoreboard *board, struct proc_ref ref, pid_t pid, uint64_t start_time);
/* Master only. Of a new one it is 0. */
void scoreboard_set_restarts(struct shm_scoreboard *board, struct proc_ref ref, uint64_t restarts);
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
