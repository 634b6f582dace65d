/*
 * exec_lock.h - who may run a command in a sandbox's lane, and how many run at all.
 *
 * Nobody ever blocks on it. A request joins the queue of its key (sandbox slot +
 * lane); the head of a key's queue is *eligible*; eligible requests of all keys
 * form one FIFO for the global running limit, so that no sandbox starves others.
 * A grant is ownership: it is put on the owner's grant list and the owner is
 * kicked through notify. One short robust mutex guards the node table, which is
 * the only truth: every list is rebuilt from it after a death. The ticket of a
 * node is its fence: it only grows, over all keys.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_IPC_EXEC_LOCK_H
#define ORCHARD_IPC_EXEC_LOCK_H

#include "base/cleanup.h"
#include "ipc/scoreboard.h"

#include <stdbool.h>
#include <stdint.h>

struct err;
struct notify;
struct shm_exec_lock;

struct exec_lock_limits {
	uint32_t running; /* max_concurrent_execs */
	uint32_t per_sandbox; /* queued + running, all lanes of one sandbox */
};

/* Names one place in the queue; stays unique when the node is used again. */
struct exec_ticket {
	uint32_t node;
	uint64_t number; /* also the fence */
};

struct exec_grant {
	struct exec_ticket ticket;
	uint64_t cookie; /* the caller's, from exec_lock_acquire */
};

/*
 * Takes a place. *ret_granted: it may run at once (and is not reported by
 * exec_lock_take). ERR_BUSY when the table or the sandbox's share is full.
 */
int exec_lock_acquire(struct shm_exec_lock *lock, struct notify *notify, const struct exec_lock_limits *limits,
	struct proc_ref self, uint32_t sandbox_slot, uint64_t lane, uint64_t cookie, struct exec_ticket *ret_ticket,
	bool *ret_granted, struct err *err) MUSTCHECK;
/* Gives back a granted or waiting place (also one granted but not yet taken) and grants the next. */
void exec_lock_release(struct shm_exec_lock *lock, struct notify *notify, const struct exec_lock_limits *limits,
	struct exec_ticket ticket);
/*
 * The owner of a granted place waits for what is not in this lock: it keeps the place's lane, and lets another run
 * meanwhile. Unparked, it is granted again in its turn, as exec_lock_take() tells.
 */
void exec_lock_park(struct shm_exec_lock *lock, struct notify *notify, const struct exec_lock_limits *limits,
	struct exec_ticket ticket);
void exec_lock_unpark(struct shm_exec_lock *lock, struct notify *notify, const struct exec_lock_limits *limits,
	struct exec_ticket ticket);
/*
 * The place outlives this process, which has it and has written down for whom: nobody of its lane passes it
 * until a successor has adopted and released it. Without effect on a ticket that names nothing.
 */
void exec_lock_keep(struct shm_exec_lock *lock, struct exec_ticket ticket);
/* A kept place of a dead process becomes self's, where it stands in its queue; false: there is no such place. */
bool exec_lock_adopt(struct shm_exec_lock *lock, struct shm_scoreboard *board, struct proc_ref self,
	struct exec_ticket ticket, uint64_t cookie, bool *ret_granted) MUSTCHECK;
/* The next place of a dead process at or after *at, which moves on; start with 0. False: no more. */
bool exec_lock_next_orphan(struct shm_exec_lock *lock, struct shm_scoreboard *board, uint32_t *at,
	struct exec_ticket *ret_ticket) MUSTCHECK;
/* Places granted to this process since the last call, at most max; call until it returns 0. */
uint32_t
exec_lock_take(struct shm_exec_lock *lock, struct proc_ref self, struct exec_grant *ret_grants, uint32_t max);
/* Requests before this one in its own key's queue; 0: it is the head or runs; UINT32_MAX: gone. */
uint32_t exec_lock_position(struct shm_exec_lock *lock, struct exec_ticket ticket);

/* Tells those behind which job has this place, which is the caller's. */
void exec_lock_name(struct shm_exec_lock *lock, struct exec_ticket ticket, uint32_t job_slot);
/* The slot of the job at the head of its key's queue; UINT32_MAX: it is the head itself, gone, or nobody has told. */
uint32_t exec_lock_blocker(struct shm_exec_lock *lock, struct exec_ticket ticket);

/* Has nobody a place in that lane, at about this moment? */
bool exec_lock_is_idle(struct shm_exec_lock *lock, uint32_t sandbox_slot, uint64_t lane);
/* Places of one sandbox, queued or running, at about this moment. */
uint32_t exec_lock_places(struct shm_exec_lock *lock, uint32_t sandbox_slot);

/*
 * Master, after waitpid() and scoreboard_retire(): drops the dead process's places but the kept ones, passes its
 * locks on, and tells again all that the dead may have granted or changed without living to tell (notify_repair).
 */
void exec_lock_repair(struct shm_exec_lock *lock, struct notify *notify, struct shm_scoreboard *board,
	const struct exec_lock_limits *limits);
/* The counter goes on above `newest` (an agent knew a newer fence). */
void exec_lock_raise(struct shm_exec_lock *lock, uint64_t newest);

struct exec_lock_stats {
	uint32_t nodes_used, nodes_total, running;
};
void exec_lock_stats(struct shm_exec_lock *lock, struct exec_lock_stats *ret_stats);

#endif
