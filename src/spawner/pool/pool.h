/*
 * pool.h - a few processes that do what blocks, so that the dispatcher never does.
 *
 * Each does one order at a time. Makings wait for their turn (spawn/turns.h), and all else in one queue; helpers take of
 * both alternately, so that neither many creates nor many removals make the others wait long. A helper that dies is
 * replaced, and its order answered ERR_UNAVAILABLE with what it had started, for
 * the caller to clean up.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_POOL_H
#define ORCHARD_SPAWNER_POOL_H

#include "base/cleanup.h"
#include "base/err.h"
#include "spawner/make/make.h"

#include <stdbool.h>
#include <sys/types.h>

struct event_base;
struct pool;
struct pool_order;
struct site;
struct turns_options;

struct pool_answer {
	const struct err *why; /* NULL: done */
	struct make_result made; /* of a make; after a failure: what may still be there */
	bool lost; /* the helper died: nothing was taken back */
};
typedef void pool_done_f(const struct pool_answer *answer, void *arg);

/* turns: of makings, each named by its arg; NULL: there are none. */
int pool_create(struct event_base *base, const struct site *site, unsigned helpers,
	const struct turns_options *turns, struct pool **ret_pool, struct err *err) MUSTCHECK;
void pool_free(struct pool *pool);

/* order is taken over (free). done comes once, never before the return; what was returned is valid until then. */
struct pool_order *pool_make(struct pool *pool, struct make_order *order, pool_done_f *done, void *arg);
/* True: it had not begun, and is forgotten without a word. False: its end will come. */
bool pool_withdraw(struct pool *pool, struct pool_order *making) MUSTCHECK;
void pool_unmake(struct pool *pool, const struct unmake_order *order, pool_done_f *done, void *arg);
/* Does what an earlier spawner has left open of one that it made; nobody is told the end. */
void pool_settle(struct pool *pool, const char *group, pid_t pid, uint64_t pid_start);
/* Whether the network of sandboxes is as we made it; why says what is not. */
void pool_check_net(struct pool *pool, pool_done_f *done, void *arg);
/*
 * Empties the trash of what was the sandbox of that uid, or all of it (NULL): each helper its own share of the uids,
 * so that none waits for another's disk. Asks for one more round if it is under way already.
 */
void pool_sweep(struct pool *pool, const char *uid);

/* Who keeps account of blanks: what is made ahead, one at a time, when there is nothing else to do. */
struct pool_blanks {
	unsigned most;
	/* False: not now. *ret_blank is what the account calls it. */
	bool (*begin)(struct blank_order *ret_order, void **ret_blank, void *arg);
	void (*made)(void *blank, const struct make_result *made, void *arg);
	/* It becomes what was ordered with that arg. */
	void (*used)(void *blank, void *order_arg, void *arg);
	/* It could not be made; or (why NULL) its helper has died. */
	void (*lost)(void *blank, const struct err *why, void *arg);
	void *arg;
};
void pool_hold_blanks(struct pool *pool, const struct pool_blanks *blanks);

/* Begins nothing more, and takes blanks away; what is under way goes on. */
void pool_stop(struct pool *pool);
bool pool_is_busy(const struct pool *pool);

/* A child was reaped; true when it was one of ours. */
bool pool_reaped(struct pool *pool, pid_t pid);

#endif
