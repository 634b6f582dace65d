/* waiter.c - on the job's list, on the exchange's on_gone, perhaps on a timer; the first of them ends it. */
/* SPDX-License-Identifier: MIT */
#include "agent/waiter.h"

#include "base/alloc.h"
#include "agent/answer.h"
#include "agent/job.h"
#include "base/clock.h"
#include "http/http_server.h"

#include <event2/event.h>
#include <stdlib.h>

struct waiter {
	struct job_waiter on_job;
	struct http_exchange *exchange;
	struct job *job;
	struct event *timer; /* NULL: no limit */
};

static void
waiter_free(struct waiter *waiter)
{
	if (waiter->timer != NULL)
		event_free(waiter->timer);
	free(waiter);
}

static void
waiter_on_end(struct job *job, void *arg)
{
	struct waiter *waiter = arg;
	struct http_exchange *exchange = waiter->exchange;

	waiter_free(waiter);
	answer_job(exchange, job);
}

static void
waiter_on_gone(void *arg)
{
	struct waiter *waiter = arg;

	job_unwait(waiter->job, &waiter->on_job);
	waiter_free(waiter);
}

static void
waiter_on_limit(evutil_socket_t fd, short what, void *arg)
{
	struct waiter *waiter = arg;

	(void)fd;
	(void)what;
	job_unwait(waiter->job, &waiter->on_job);
	waiter_on_end(waiter->job, waiter);
}

void
waiter_attach(struct event_base *base, struct http_exchange *exchange, struct job *job, int64_t limit_ms)
{
	struct waiter *waiter;
	struct timeval limit = clock_tv(limit_ms == WAITER_NO_LIMIT ? 0 : limit_ms);

	if (job->ended || limit_ms <= 0) {
		answer_job(exchange, job);
		return;
	}
	waiter = alloc_zero(1, sizeof *waiter);
	*waiter = (struct waiter){
		.on_job = { .on_end = waiter_on_end, .arg = waiter },
		.exchange = exchange,
		.job = job,
	};
	if (limit_ms != WAITER_NO_LIMIT) {
		waiter->timer = evtimer_new(base, waiter_on_limit, waiter);
		if (waiter->timer == NULL)
			abort();
		event_add(waiter->timer, &limit);
	}
	job_wait(job, &waiter->on_job);
	http_exchange_on_gone(exchange, waiter_on_gone, waiter);
}
