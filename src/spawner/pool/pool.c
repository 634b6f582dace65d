/* pool.c - helpers over socketpairs, and the queue of orders before them. */
/* SPDX-License-Identifier: MIT */
#include "spawner/pool/pool.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "spawn/turns.h"
#include "spawner/pool/child.h"
#include "spawner/pool/pool_impl.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>

enum { REFORK_MS = 1000 };

static void helper_start(struct helper *helper);

static void
order_free(struct pool_order *order)
{
	free(order->make);
	free(order);
}

static void
order_finish(struct pool_order *order, const struct pool_answer *answer)
{
	if (order->done != NULL)
		order->done(answer, order->arg);
	order_free(order);
}

/* reaped: its pid may be somebody else's by now. */
static void
helper_lost(struct helper *helper, bool reaped)
{
	struct pool_order *order = helper->order;
	struct err why;

	log_error("helper %d has died; it is replaced", (int)helper->pid);
	if (helper->pid > 0 && !reaped)
		(void)kill(helper->pid, SIGKILL);
	event_free(helper->readable);
	helper->readable = NULL;
	close(helper->fd);
	helper->fd = -1;
	helper->pid = 0;
	helper->order = NULL;
	helper->settling = false;
	helper_start(helper);
	held_lost(helper, order);
	if (order != NULL && order != &helper->own) {
		err_set(&why, ERR_UNAVAILABLE, "the process that was at work on it has died; try again");
		order_finish(order, &(struct pool_answer){ .why = &why, .made = order->started, .lost = true });
	}
	pool_run(helper->pool);
}

enum heard { HEARD_NOTHING, HEARD_WORD, HEARD_END };

/* Takes one word of the helper. */
static enum heard
helper_hear(struct helper *helper)
{
	struct pool_order *order = helper->order;
	struct helper_word word;
	ssize_t n;

	do
		n = recv(helper->fd, &word, sizeof word, MSG_DONTWAIT);
	while (n < 0 && (errno == EINTR || errno == ECONNRESET)); /* a reset stands before what was said */
	if (n < 0 && errno == EAGAIN)
		return HEARD_NOTHING;
	if (n != (ssize_t)sizeof word || (order == NULL) != (word.state == HELPER_RESTED))
		return HEARD_END;
	if (word.state == HELPER_RESTED) {
		helper->settling = false;
		return HEARD_WORD;
	}
	if (word.state == HELPER_STARTED) {
		order->started = word.made;
		return HEARD_WORD;
	}
	helper->order = NULL;
	if (order == &helper->own) {
		held_finish(helper, word.failed ? &word.why : NULL, &word.made);
		return HEARD_WORD;
	}
	pool_stir(helper->pool);
	helper->settling = order->kind == ORDER_MAKE;
	order_finish(order, &(struct pool_answer){ .why = word.failed ? &word.why : NULL, .made = word.made });
	return HEARD_WORD;
}

static void
helper_on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct helper *helper = arg;

	(void)fd;
	(void)what;
	switch (helper_hear(helper)) {
	case HEARD_END:
		helper_lost(helper, false);
		break;
	case HEARD_WORD:
		pool_run(helper->pool);
		break;
	case HEARD_NOTHING:
		break;
	}
}

static void
helper_on_again(evutil_socket_t fd, short what, void *arg)
{
	struct helper *helper = arg;

	(void)fd;
	(void)what;
	if (helper->pid == 0)
		helper_start(helper);
	pool_run(helper->pool);
}

static int
helper_fork(struct helper *helper, struct err *err)
{
	int ends[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return err_set_errno(err, errno, "socketpair of a helper");
	pid = child_fork(helper->pool->site, ends[1], err);
	if (pid == 0) {
		log_init("spawner", LOG_LEVEL_INFO);
		helper_main(helper->pool->site, ends[1]);
	}
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		return -1;
	}
	helper->fd = ends[0];
	helper->pid = pid;
	helper->readable = event_new(helper->pool->base, ends[0], EV_READ | EV_PERSIST, helper_on_readable, helper);
	if (helper->readable == NULL || event_add(helper->readable, NULL) != 0)
		abort();
	return 0;
}

static void
helper_start(struct helper *helper)
{
	struct timeval pause = clock_tv(REFORK_MS);
	struct err err;

	if (helper_fork(helper, &err) == 0)
		return;
	log_error("no new helper: %s", err.msg);
	helper->pid = 0;
	event_add(helper->again, &pause);
}

static bool
helper_write(struct helper *helper, const struct pool_order *order, const void *data, size_t len)
{
	struct iovec iov[2] = { { (void *)(uintptr_t)&order->kind, sizeof order->kind },
		{ (void *)(uintptr_t)data, len } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };

	return sendmsg(helper->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) > 0;
}

/* The last blank of the helper becomes it, if there is one. */
static bool
helper_send_make(struct helper *helper, struct pool_order *order)
{
	struct make_order *make = order->make, before = *make;

	held_offer(helper, make);
	if (!helper_write(helper, order, make, sizeof *make + make->spec.env_len)) {
		*make = before;
		return false;
	}
	if (make->use_blank)
		held_use(helper, order);
	return true;
}

static bool
helper_send(struct helper *helper, struct pool_order *order)
{
	struct unmake_share share = { (unsigned)(helper - helper->pool->helpers), helper->pool->count };

	switch (order->kind) {
	case ORDER_MAKE:
		return helper_send_make(helper, order);
	case ORDER_SWEEP:
		return helper_write(helper, order, &share, sizeof share);
	case ORDER_BLANK:
		return helper_write(
			helper, order, &helper->held[helper->held_count].order, sizeof helper->held[0].order);
	default:
		return helper_write(helper, order, &order->unmake, sizeof order->unmake);
	}
}

static struct pool_order *
next_making(const struct pool *pool)
{
	struct turn *turn = pool->turns != NULL ? turns_next(pool->turns) : NULL;

	return (struct pool_order *)(void *)turn;
}

/* Of what others wait for; NULL: nothing. */
static struct pool_order *
pool_next(const struct pool *pool)
{
	struct pool_order *making = next_making(pool), *other = TAILQ_FIRST(&pool->waiting);

	return making != NULL && (other == NULL || !pool->made_last) ? making : other;
}

/* What it does next: its share of the trash and blanks come after what others wait for. False: nothing. */
static bool
helper_next(struct helper *helper, struct pool_order **ret_order)
{
	const struct pool *pool = helper->pool;
	struct pool_order *waits = pool_next(pool);

	*ret_order = &helper->own;
	if (pool->stopped && helper->held_count > 0) {
		helper->own.kind = ORDER_DISCARD;
	} else if (pool->stopped) {
		return false;
	} else if (waits != NULL) {
		*ret_order = waits;
	} else if (helper->sweep_waits) {
		helper->own.kind = ORDER_SWEEP;
	} else if (held_begin(helper)) {
		helper->own.kind = ORDER_BLANK;
	} else {
		return false;
	}
	return true;
}

static void
helper_take(struct helper *helper, struct pool_order *order)
{
	struct pool *pool = helper->pool;

	if (order->kind == ORDER_MAKE)
		turns_take(pool->turns, &order->turn);
	else if (order != &helper->own)
		TAILQ_REMOVE(&pool->waiting, order, link);
	else if (order->kind == ORDER_SWEEP)
		helper->sweep_waits = false;
	pool->made_last = order->kind == ORDER_MAKE;
	helper->order = order;
}

/* A helper that can't be sent to is as good as dead: its end of file comes, or already waits to be read. */
static void
helper_give(struct helper *helper)
{
	struct pool *pool = helper->pool;
	struct pool_order *order;

	if (helper->pid == 0 || helper->order != NULL || helper->settling || !helper_next(helper, &order))
		return;
	if (!helper_send(helper, order)) {
		if (order == &helper->own && order->kind == ORDER_BLANK)
			pool->blanks.lost(helper->held[helper->held_count].blank, NULL, pool->blanks.arg);
		return;
	}
	helper_take(helper, order);
}

/* What is to be made goes to those that have a blank, if one of them is free. */
void
pool_run(struct pool *pool)
{
	const struct pool_order *next = pool_next(pool);

	for (unsigned i = 0; i < pool->count && next != NULL && next->kind == ORDER_MAKE; i++) {
		if (pool->helpers[i].held_count > 0)
			helper_give(&pool->helpers[i]);
		next = pool_next(pool);
	}
	for (unsigned i = 0; i < pool->count; i++)
		helper_give(&pool->helpers[i]);
}

static struct pool_order *
pool_add(struct pool *pool, enum order_kind kind, struct make_order *make, const struct unmake_order *unmake,
	pool_done_f *done, void *arg)
{
	struct pool_order *order = alloc_zero(1, sizeof *order);

	order->kind = kind;
	order->make = make;
	if (unmake != NULL)
		order->unmake = *unmake;
	order->done = done;
	order->arg = arg;
	if (kind == ORDER_MAKE)
		turns_join(pool->turns, &order->turn, make->spec.line, arg);
	else
		TAILQ_INSERT_TAIL(&pool->waiting, order, link);
	pool_stir(pool);
	pool_run(pool);
	return order;
}

struct pool_order *
pool_make(struct pool *pool, struct make_order *order, pool_done_f *done, void *arg)
{
	return pool_add(pool, ORDER_MAKE, order, NULL, done, arg);
}

bool
pool_withdraw(struct pool *pool, struct pool_order *making)
{
	if (making->turn.line == NULL)
		return false;
	turns_leave(pool->turns, &making->turn);
	order_free(making);
	return true;
}

void
pool_unmake(struct pool *pool, const struct unmake_order *order, pool_done_f *done, void *arg)
{
	pool_add(pool, ORDER_UNMAKE, NULL, order, done, arg);
}

void
pool_settle(struct pool *pool, const char *group, pid_t pid, uint64_t pid_start)
{
	struct unmake_order order = { .pid = pid, .pid_start = pid_start };

	snprintf(order.group, sizeof order.group, "%s", group);
	pool_add(pool, ORDER_SETTLE, NULL, &order, NULL, NULL);
}

void
pool_check_net(struct pool *pool, pool_done_f *done, void *arg)
{
	pool_add(pool, ORDER_CHECK_NET, NULL, NULL, done, arg);
}

void
pool_sweep(struct pool *pool, const char *uid)
{
	for (unsigned i = 0; i < pool->count; i++) {
		if (uid == NULL || unmake_share_of(uid, pool->count) == i)
			pool->helpers[i].sweep_waits = true;
	}
	pool_run(pool);
}

void
pool_stop(struct pool *pool)
{
	pool->stopped = true;
	pool_run(pool);
}

bool
pool_is_busy(const struct pool *pool)
{
	for (unsigned i = 0; i < pool->count; i++) {
		if (pool->helpers[i].order != NULL || pool->helpers[i].settling || pool->helpers[i].held_count > 0)
			return true;
	}
	return false;
}

bool
pool_reaped(struct pool *pool, pid_t pid)
{
	for (unsigned i = 0; i < pool->count; i++) {
		if (pool->helpers[i].pid != pid)
			continue;
		/* what it said before it died still counts, above all which process it had started */
		while (helper_hear(&pool->helpers[i]) == HEARD_WORD)
			;
		helper_lost(&pool->helpers[i], true);
		return true;
	}
	return false;
}

int
pool_create(struct event_base *base, const struct site *site, unsigned helpers, const struct turns_options *turns,
	struct pool **ret_pool, struct err *err)
{
	struct pool *pool = alloc_zero(1, sizeof *pool + helpers * sizeof pool->helpers[0]);

	pool->base = base;
	pool->site = site;
	pool->count = helpers;
	TAILQ_INIT(&pool->waiting);
	pool->turns = turns != NULL ? turns_create(base, turns) : NULL;
	for (unsigned i = 0; i < helpers; i++) {
		pool->helpers[i].pool = pool;
		pool->helpers[i].fd = -1;
		pool->helpers[i].again = event_new(base, -1, 0, helper_on_again, &pool->helpers[i]);
		if (pool->helpers[i].again == NULL)
			abort();
	}
	for (unsigned i = 0; i < helpers; i++) {
		if (helper_fork(&pool->helpers[i], err) != 0) {
			pool_free(pool);
			return -1;
		}
	}
	*ret_pool = pool;
	return 0;
}

void
pool_free(struct pool *pool)
{
	struct pool_order *order;

	if (pool == NULL)
		return;
	if (pool->quiet != NULL)
		event_free(pool->quiet);
	for (unsigned i = 0; i < pool->count; i++) {
		struct helper *helper = &pool->helpers[i];

		if (helper->readable != NULL)
			event_free(helper->readable);
		event_free(helper->again);
		cleanup_fd(&helper->fd); /* its end of file is the helper's end */
		if (helper->order != NULL && helper->order != &helper->own)
			TAILQ_INSERT_TAIL(&pool->waiting, helper->order, link);
	}
	while ((order = TAILQ_FIRST(&pool->waiting)) != NULL) {
		TAILQ_REMOVE(&pool->waiting, order, link);
		order_free(order);
	}
	while ((order = next_making(pool)) != NULL) {
		turns_leave(pool->turns, &order->turn);
		order_free(order);
	}
	turns_free(pool->turns);
	free(pool);
}
