/*
 * pool.h - a few processes that do what blocks, so that the dispatcher never does.
 *
 * Each does one order at a time; orders wait in one queue. A helper that dies is
 * replaced, and its order answered ERR_UNAVAILABLE with what it had started, for
 * the caller to clean up.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_POOL_H
#define ORCHARD_SPAWNER_POOL_H

#include "base/cleanup.h"
#include "base/err.h"
#include "spawner/make.h"

#include <stdbool.h>
#include <sys/types.h>

struct event_base;
struct pool;
struct site;

struct pool_answer {
	const struct err *why; /* NULL: done */
	struct make_result made; /* of a make; after a failure: what may still be there (pid 0: nothing) */
	bool lost; /* the helper died: nothing was taken back */
};
typedef void pool_done_f(const struct pool_answer *answer, void *arg);

int pool_create(struct event_base *base, const struct site *site, unsigned helpers, struct pool **ret_pool,
	struct err *err) MUSTCHECK;
void pool_free(struct pool *pool);

/* order is taken over (free). done comes once, never before the return. */
void pool_make(struct pool *pool, struct make_order *order, pool_done_f *done, void *arg);
void pool_unmake(struct pool *pool, const struct unmake_order *order, pool_done_f *done, void *arg);
/* Empties the trash; asks for one more round if it is under way already. */
void pool_sweep(struct pool *pool);

/* Begins nothing more; what is under way goes on. */
void pool_stop(struct pool *pool);
bool pool_is_busy(const struct pool *pool);

/* A child was reaped; true when it was one of ours. */
bool pool_reaped(struct pool *pool, pid_t pid);

#endif
