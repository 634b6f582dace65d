/* pool_impl.h - the pool from inside: its queue, its helpers, and which blanks those hold. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_POOL_IMPL_H
#define ORCHARD_SPAWNER_POOL_IMPL_H

#include "spawn/turns.h"
#include "spawner/pool/helper.h"
#include "spawner/pool/pool.h"

#include <sys/queue.h>

struct event;

struct pool_order {
	struct turn turn; /* first; ORDER_MAKE */
	TAILQ_ENTRY(pool_order) link;
	enum order_kind kind;
	struct make_order *make;
	struct unmake_order unmake; /* also of ORDER_SETTLE, without a uid */
	struct make_result started;
	pool_done_f *done;
	void *arg;
};
TAILQ_HEAD(order_list, pool_order);

struct held {
	void *blank;
	struct blank_order order;
	struct make_result made;
};

struct helper {
	struct pool *pool;
	pid_t pid; /* 0: none (fork failed; tried again by timer) */
	int fd;
	struct event *readable;
	struct event *again;
	struct pool_order *order;
	bool settling; /* its order was answered, it is still at what nobody waits for */
	bool sweep_waits; /* its share of the trash is to be emptied, as soon as it has time */
	struct pool_order
		own; /* what it is told when nobody's order waits: ORDER_SWEEP, ORDER_BLANK, ORDER_DISCARD */
	struct held held[HELPER_BLANKS]; /* the one that is being made is behind the last */
	unsigned held_count;
};

struct pool {
	struct event_base *base;
	const struct site *site;
	struct turns *turns; /* of makings; NULL: none come */
	struct order_list waiting; /* all else */
	bool made_last; /* what was begun last is a making */
	struct pool_blanks blanks;
	struct event *quiet; /* nobody has asked for anything for a moment */
	bool is_quiet;
	bool stopped;
	unsigned count;
	struct helper helpers[];
};

/* pool.c: gives work to all that have none. */
void pool_run(struct pool *pool);

/* pool_held.c. Something was asked for, or done: blanks have to wait. */
void pool_stir(struct pool *pool);
/* The order of the helper's own is done. */
void held_finish(struct helper *helper, const struct err *why, const struct make_result *made);
/* The helper has died at that order (NULL: none), and with it its blanks. */
void held_lost(struct helper *helper, const struct pool_order *order);
/* Whether it should make one now; then helper->held[held_count].order says which. */
bool held_begin(struct helper *helper);
/* Writes into the order which blank it is made of, if the helper has one; once that is sent, it is used. */
void held_offer(const struct helper *helper, struct make_order *make);
void held_use(struct helper *helper, struct pool_order *order);

#endif
