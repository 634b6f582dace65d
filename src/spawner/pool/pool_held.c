/* pool_held.c - which helper holds which blanks, and when one more is made. */
/* SPDX-License-Identifier: MIT */
#include "spawner/pool/pool_impl.h"

#include "base/clock.h"

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

enum { QUIET_MS = 2, AGAIN_MS = 1000 };

void
pool_stir(struct pool *pool)
{
	struct timeval pause = clock_tv(QUIET_MS);

	pool->is_quiet = false;
	if (pool->quiet != NULL)
		event_add(pool->quiet, &pause);
}

void
held_finish(struct helper *helper, const struct err *why, const struct make_result *made)
{
	struct pool *pool = helper->pool;
	struct held *held = &helper->held[helper->held_count];

	if (helper->own.kind == ORDER_DISCARD) {
		helper->held_count = 0;
	} else if (helper->own.kind == ORDER_BLANK && why != NULL) {
		pool->blanks.lost(held->blank, why, pool->blanks.arg);
	} else if (helper->own.kind == ORDER_BLANK) {
		held->made = *made;
		helper->held_count++;
		pool->blanks.made(held->blank, made, pool->blanks.arg);
	}
}

/* The next helper may be at work when the first of them is told. */
void
held_lost(struct helper *helper, const struct pool_order *order)
{
	const struct pool_blanks *blanks = &helper->pool->blanks;
	struct held lost[HELPER_BLANKS];
	unsigned count = helper->held_count;

	if (order == &helper->own && order->kind == ORDER_SWEEP)
		helper->sweep_waits = true;
	if (order == &helper->own && order->kind == ORDER_BLANK)
		count++;
	memcpy(lost, helper->held, count * sizeof *lost);
	helper->held_count = 0;
	for (unsigned i = 0; i < count; i++)
		blanks->lost(lost[i].blank, NULL, blanks->arg);
}

/* One at a time, where the fewest are. */
static bool
may_make_blank(const struct helper *helper)
{
	const struct pool *pool = helper->pool;
	unsigned all = 0;

	if (!pool->is_quiet || helper->held_count == HELPER_BLANKS)
		return false;
	for (unsigned i = 0; i < pool->count; i++) {
		const struct helper *other = &pool->helpers[i];

		if (other->held_count < helper->held_count ||
			(other->order == &other->own && other->own.kind == ORDER_BLANK))
			return false;
		all += other->held_count;
	}
	return all < pool->blanks.most;
}

bool
held_begin(struct helper *helper)
{
	struct pool *pool = helper->pool;
	struct held *held = &helper->held[helper->held_count];
	struct timeval again = clock_tv(AGAIN_MS);

	if (!may_make_blank(helper))
		return false;
	pool->is_quiet = pool->blanks.begin(&held->order, &held->blank, pool->blanks.arg);
	if (!pool->is_quiet)
		event_add(pool->quiet, &again);
	return pool->is_quiet;
}

void
held_offer(const struct helper *helper, struct make_order *make)
{
	const struct held *last;

	if (helper->held_count == 0)
		return;
	last = &helper->held[helper->held_count - 1];
	make->use_blank = true;
	make->slot = last->order.slot;
	memcpy(make->group, last->order.name, sizeof make->group);
}

void
held_use(struct helper *helper, struct pool_order *order)
{
	const struct pool_blanks *blanks = &helper->pool->blanks;
	const struct held *used = &helper->held[--helper->held_count];

	order->started = used->made;
	blanks->used(used->blank, order->arg, blanks->arg);
}

static void
on_quiet(evutil_socket_t fd, short what, void *arg)
{
	struct pool *pool = arg;

	(void)fd;
	(void)what;
	pool->is_quiet = true;
	pool_run(pool);
}

void
pool_hold_blanks(struct pool *pool, const struct pool_blanks *blanks)
{
	pool->blanks = *blanks;
	if (blanks->most == 0)
		return;
	pool->quiet = evtimer_new(pool->base, on_quiet, pool);
	if (pool->quiet == NULL)
		abort();
	pool_stir(pool);
}
