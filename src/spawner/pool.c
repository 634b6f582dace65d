/* pool.c - helpers over socketpairs, and the queue of orders before them. */
/* SPDX-License-Identifier: MIT */
#include "spawner/pool.h"

#include "base/log.h"
#include "base/clock.h"
#include "conf/config.h"
#include "spawner/child.h"
#include "spawner/site.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/resource.h>
#include <sys/socket.h>

enum order_kind { ORDER_MAKE, ORDER_UNMAKE, ORDER_SWEEP };
enum { REFORK_MS = 1000, SWEEP_NICE = 10 };

struct order {
	TAILQ_ENTRY(order) link;
	enum order_kind kind;
	struct make_order *make;
	struct unmake_order unmake;
	struct make_result started;
	pool_done_f *done;
	void *arg;
};
TAILQ_HEAD(order_list, order);

/* What a helper says: a process was started, or the order is done. */
struct helper_word {
	bool finished;
	bool failed;
	struct make_result made;
	struct err why;
};

struct helper {
	struct pool *pool;
	pid_t pid; /* 0: none (fork failed; tried again by timer) */
	int fd;
	struct event *readable;
	struct event *again;
	struct order *order;
};

struct pool {
	struct event_base *base;
	const struct site *site;
	struct order_list waiting;
	bool sweep_waits, stopped;
	unsigned count;
	struct helper helpers[];
};

/* --- in the helper --- */

static void
say(int fd, const struct helper_word *word)
{
	if (send(fd, word, sizeof *word, MSG_NOSIGNAL) != (ssize_t)sizeof *word)
		_exit(1);
}

static void
on_started(const struct make_result *init, void *arg)
{
	struct helper_word word = { .made = *init };

	say(*(const int *)arg, &word);
}

static _Noreturn void
helper_main(const struct site *site, int fd)
{
	static struct {
		enum order_kind kind;
		union {
			struct make_order make;
			struct unmake_order unmake;
		};
	} order;

	for (;;) {
		struct iovec iov[] = { { &order.kind, sizeof order.kind }, { &order.make, sizeof order.make } };
		struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
		struct helper_word word = { .finished = true };
		ssize_t n = recvmsg(fd, &msg, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			_exit(0);
		if (order.kind == ORDER_MAKE)
			word.failed = make_sandbox(site, &order.make, on_started, &fd, &word.made, &word.why) != 0;
		else if (order.kind == ORDER_UNMAKE)
			word.failed = unmake_sandbox(site, &order.unmake, &word.why) != 0;
		else {
			(void)setpriority(PRIO_PROCESS, 0, SWEEP_NICE);
			unmake_sweep_trash(site);
		}
		say(fd, &word);
	}
}

/* --- in the dispatcher --- */

static void helper_start(struct helper *helper);
static void pool_run(struct pool *pool);

static void
order_finish(struct order *order, const struct pool_answer *answer)
{
	if (order->done != NULL)
		order->done(answer, order->arg);
	free(order->make);
	free(order);
}

/* reaped: its pid may be somebody else's by now. */
static void
helper_lost(struct helper *helper, bool reaped)
{
	struct order *order = helper->order;
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
	helper_start(helper);
	if (order != NULL) {
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
	struct order *order = helper->order;
	struct helper_word word;
	ssize_t n;

	do
		n = recv(helper->fd, &word, sizeof word, MSG_DONTWAIT);
	while (n < 0 && (errno == EINTR || errno == ECONNRESET)); /* a reset stands before what was said */
	if (n < 0 && errno == EAGAIN)
		return HEARD_NOTHING;
	if (n != (ssize_t)sizeof word || order == NULL)
		return HEARD_END;
	if (!word.finished) {
		order->started = word.made;
		return HEARD_WORD;
	}
	helper->order = NULL;
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
helper_send(struct helper *helper, struct order *order)
{
	struct iovec iov[2] = { { &order->kind, sizeof order->kind } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };

	if (order->kind == ORDER_MAKE)
		iov[1] = (struct iovec){ order->make, sizeof *order->make };
	else
		iov[1] = (struct iovec){ &order->unmake, sizeof order->unmake };
	return sendmsg(helper->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) > 0;
}

/* A helper that can't be sent to is as good as dead: its end of file comes, or already waits to be read. */
static void
pool_run(struct pool *pool)
{
	struct order *order;

	if (pool->stopped)
		return;
	for (unsigned i = 0; i < pool->count && (order = TAILQ_FIRST(&pool->waiting)) != NULL; i++) {
		struct helper *helper = &pool->helpers[i];

		if (helper->pid == 0 || helper->order != NULL || !helper_send(helper, order))
			continue;
		TAILQ_REMOVE(&pool->waiting, order, link);
		if (order->kind == ORDER_SWEEP)
			pool->sweep_waits = false;
		helper->order = order;
	}
}

static void
pool_add(struct pool *pool, enum order_kind kind, struct make_order *make, const struct unmake_order *unmake,
	pool_done_f *done, void *arg)
{
	struct order *order = calloc(1, sizeof *order);

	if (order == NULL)
		abort();
	order->kind = kind;
	order->make = make;
	if (unmake != NULL)
		order->unmake = *unmake;
	order->done = done;
	order->arg = arg;
	TAILQ_INSERT_TAIL(&pool->waiting, order, link);
	pool_run(pool);
}

void
pool_make(struct pool *pool, struct make_order *order, pool_done_f *done, void *arg)
{
	pool_add(pool, ORDER_MAKE, order, NULL, done, arg);
}

void
pool_unmake(struct pool *pool, const struct unmake_order *order, pool_done_f *done, void *arg)
{
	pool_add(pool, ORDER_UNMAKE, NULL, order, done, arg);
}

void
pool_sweep(struct pool *pool)
{
	if (pool->sweep_waits)
		return;
	pool->sweep_waits = true;
	pool_add(pool, ORDER_SWEEP, NULL, NULL, NULL, NULL);
}

void
pool_stop(struct pool *pool)
{
	pool->stopped = true;
}

bool
pool_is_busy(const struct pool *pool)
{
	for (unsigned i = 0; i < pool->count; i++) {
		if (pool->helpers[i].order != NULL)
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
pool_create(
	struct event_base *base, const struct site *site, unsigned helpers, struct pool **ret_pool, struct err *err)
{
	struct pool *pool = calloc(1, sizeof *pool + helpers * sizeof pool->helpers[0]);

	if (pool == NULL)
		abort();
	pool->base = base;
	pool->site = site;
	pool->count = helpers;
	TAILQ_INIT(&pool->waiting);
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
	struct order *order;

	if (pool == NULL)
		return;
	for (unsigned i = 0; i < pool->count; i++) {
		struct helper *helper = &pool->helpers[i];

		if (helper->readable != NULL)
			event_free(helper->readable);
		event_free(helper->again);
		cleanup_fd(&helper->fd); /* its end of file is the helper's end */
		if (helper->order != NULL)
			TAILQ_INSERT_TAIL(&pool->waiting, helper->order, link);
	}
	while ((order = TAILQ_FIRST(&pool->waiting)) != NULL) {
		TAILQ_REMOVE(&pool->waiting, order, link);
		free(order->make);
		free(order);
	}
	free(pool);
}
