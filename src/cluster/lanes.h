/*
 * lanes.h - commands on their way through a lane that several servers share.
 *
 * Behind the queue of this server (ipc/exec_lock.h): who is at its head enters the lane, which is at once while this
 * server has the lane's lease and nobody else asks; else Redis is asked, and the command told when it is its turn.
 * All processes of a server share its leases. One struct lanes per process.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CLUSTER_LANES_H
#define ORCHARD_CLUSTER_LANES_H

#include "base/cleanup.h"
#include "ipc/lane_table.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct err;
struct event;
struct event_base;
struct lane_ask;
struct lanes;
struct notify;
struct redis;
struct shm_exec_lock;
struct shm_lanes;

/* All borrowed, as long as the lanes. */
struct lanes_options {
	struct event_base *base;
	struct redis *redis;
	struct shm_lanes *table;
	struct shm_exec_lock *lock;
	struct notify *notify;
	const char *prefix; /* of keys in Redis */
	const char *replica; /* this server's name among the others */
	uint32_t lease_ms; /* 0: 10,000 */
	uint32_t deadline_ms; /* of a question; 0: 2000 */
};
struct lanes *lanes_new(const struct lanes_options *options);
/* Every pass has been left. */
void lanes_free(struct lanes *lanes);

/* Redis can be written to, or not any more: whoever waits asks again. */
void lanes_on_redis(struct lanes *lanes, bool up);
/*
 * Reaper: the stream of changes has told this server of that lane, as it is named there. Somebody else waits for it, or
 * it is this server's turn now.
 */
void lanes_heard(struct lanes *lanes, const char *key);

/* A lane, as it is named in Redis, and where it may stand in the table. */
struct lane_ref {
	char key[LANE_KEY_SIZE];
	uint32_t slot;
	uint32_t sandbox_slot;
	uint64_t lane; /* as the exec lock names it */
};

/* What a lane stands in the way of a command's next step. */
enum lane_wish {
	LANE_WISH_NONE,
	LANE_WISH_TURN, /* others go first */
	LANE_WISH_LEASE
};

/* One command; embedded in whoever drives it, who is told by on_turn() to enter again. */
struct lane_pass {
	LIST_ENTRY(lane_pass) link;
	struct lanes *lanes; /* NULL: it is in no lane */
	struct lane_ref ref;
	bool asked; /* it came while others waited */
	bool queued; /* an entry in the lane's queue in Redis, or a turn that came of it, is its own */
	bool waits; /* to be told of its turn */
	bool again; /* something has changed since it asked */
	bool inside; /* the lease is renewed for it */
	bool answered; /* on_turn() comes from an answer: what it wished for then is not asked again at once */
	enum lane_wish wish; /* what was asked last */
	struct lane_ask *ask; /* on its way */
	struct event *timer;
	void (*on_turn)(void *arg);
	void *arg;
};

struct lane_name {
	const char *sandbox_uid;
	uint32_t sandbox_slot;
	uint64_t lane; /* as the exec lock names it */
};
/*
 * It has a place in this server's queue. ERR_UNAVAILABLE: Redis is away, and this server has not had the lane last;
 * ERR_BUSY: too many lanes. Nothing is left to be undone then.
 */
int lane_pass_join(struct lanes *lanes, struct lane_pass *pass, const struct lane_name *name,
	void (*on_turn)(void *arg), void *arg, struct err *err) MUSTCHECK;
/* The same for one that is promised already, and waits as long as it takes. inside: it runs, as another process left it. */
void lane_pass_rejoin(struct lanes *lanes, struct lane_pass *pass, const struct lane_name *name, bool inside,
	void (*on_turn)(void *arg), void *arg);
/* It is at the head of this server's queue. True: it may go, with that fence; false: on_turn() comes later. */
bool lane_pass_enter(struct lane_pass *pass, uint64_t *ret_fence) MUSTCHECK;
/* Would it go? It takes nothing; false: on_turn() comes later. */
bool lane_pass_may_enter(struct lane_pass *pass) MUSTCHECK;
/* Something about its sandbox has changed: perhaps it is its turn. May call on_turn(). */
void lane_pass_hint(struct lane_pass *pass);
/* The agent has refused its fence for that one; it enters again. */
void lane_pass_overtaken(struct lane_pass *pass, uint64_t newest_fence);
/* It has no place in this server's queue any more. Without effect on one in no lane. */
void lane_pass_leave(struct lane_pass *pass);

#endif
