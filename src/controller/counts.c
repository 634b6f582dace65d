/* counts.c - the difference to what the scoreboard has already, gauges and counters alike. */
/* SPDX-License-Identifier: MIT */
#include "controller/counts.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "controller/answers.h"
#include "controller/order.h"

#include <event2/event.h>
#include <stdlib.h>

enum { TICK_MS = 1000, FIRST = METRIC_PODS, END = METRIC_KUBE_HTTP2 + 1 };

struct counts {
	struct control *control;
	struct shm_scoreboard *board;
	struct proc_ref self;
	struct event *tick;
	int64_t told[END - FIRST];
};

static void
tell(struct counts *counts)
{
	struct control *c = counts->control;
	struct kube_stats stats;
	int64_t now[END] = { 0 };

	kube_client_stats(c->client, &stats);
	now[METRIC_PODS] = (int64_t)id_map_count(c->pods);
	now[METRIC_POD_CREATES] = (int64_t)id_map_count(c->orders);
	now[METRIC_KUBE_USABLE] = answers_problem(c)[0] == '\0';
	now[METRIC_KUBE_REQUESTS] = (int64_t)stats.attempts;
	now[METRIC_KUBE_RETRIES] = (int64_t)stats.retries;
	now[METRIC_KUBE_REFUSED] = (int64_t)stats.refused;
	now[METRIC_KUBE_THROTTLED] = (int64_t)stats.throttled;
	now[METRIC_KUBE_FAILED] = (int64_t)stats.failures;
	now[METRIC_KUBE_WATCH_RESTARTS] = (int64_t)stats.restarts;
	now[METRIC_KUBE_HTTP2] = (int64_t)stats.http2;
	for (int metric = FIRST; metric < END; metric++) {
		int64_t *told = &counts->told[metric - FIRST];

		if (now[metric] != *told)
			scoreboard_add(counts->board, counts->self, (enum metric)metric, now[metric] - *told);
		*told = now[metric];
	}
}

static void
on_tick(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	tell(arg);
}

struct counts *
counts_create(struct control *c, struct shm_scoreboard *board, struct proc_ref self)
{
	struct counts *counts = alloc_zero(1, sizeof *counts);
	struct timeval tick = clock_tv(TICK_MS);

	counts->control = c;
	counts->board = board;
	counts->self = self;
	counts->tick = must_alloc(event_new(c->base, -1, EV_PERSIST, on_tick, counts));
	event_add(counts->tick, &tick);
	return counts;
}

void
counts_free(struct counts *counts)
{
	if (counts == NULL)
		return;
	tell(counts);
	event_free(counts->tick);
	free(counts);
}
