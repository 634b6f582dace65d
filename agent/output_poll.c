/* output_poll.c - on the job's two lists, on the exchange's on_gone, on a timer; the first of them ends it. */
/* SPDX-License-Identifier: MIT */
#include "agent/output_poll.h"

#include "base/alloc.h"
#include "agent/answer.h"
#include "agent/job.h"
#include "agent/query.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "http/http_server.h"

#include <event2/buffer.h>
#include <event2/event.h>
#include <inttypes.h>
#include <stdlib.h>

enum { POLL_LIMIT = 64 << 10, POLL_MAX_LIMIT = 1 << 20, POLL_MAX_WAIT_MS = 60 * 1000 };

struct poll_query {
	int64_t out_offset, err_offset; /* -1: not asked for */
	int64_t limit, wait_ms;
	int64_t reader; /* not 0: it has what is before the offsets, and may be waited for */
};

struct output_poll {
	struct job_waiter on_end;
	struct job_watcher on_output;
	struct http_exchange *exchange;
	struct job *job;
	struct poll_query query;
	struct event *timer;
};

static void
poll_write_stream(const char *name, struct output *output, const struct poll_query *query, int64_t offset,
	struct evbuffer *out)
{
	AUTO_FREE uint8_t *data = alloc_bytes((size_t)query->limit + 1);
	struct evbuffer_iovec space;
	uint64_t at;
	size_t len = output_read(output, (uint64_t)offset, data, (size_t)query->limit, &at);
	size_t size = text_base64_size(len);

	evbuffer_add_printf(out, ",\"%s\":{\"offset\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"base64\":\"", name, at,
		output->total);
	if (evbuffer_reserve_space(out, (ev_ssize_t)(size + 1), &space, 1) != 1)
		abort();
	text_base64_encode(data, len, space.iov_base);
	space.iov_len = size;
	evbuffer_commit_space(out, &space, 1);
	evbuffer_add_printf(out, "\"}");
}

static void
poll_answer(struct http_exchange *exchange, struct job *job, const struct poll_query *query)
{
	struct evbuffer *body = evbuffer_new();

	if (body == NULL)
		abort();
	evbuffer_add_printf(body, "{\"state\":\"%s\"", job->ended ? "ended" : "running");
	if (query->out_offset >= 0)
		poll_write_stream("stdout", &job->out, query, query->out_offset, body);
	if (query->err_offset >= 0)
		poll_write_stream("stderr", &job->err, query, query->err_offset, body);
	if (query->reader != 0 && job->hold.grace_ms > 0)
		evbuffer_add_printf(body, ",\"hold_ms\":%" PRId64, job->hold.grace_ms);
	evbuffer_add_printf(body, "}");
	if (query->reader != 0)
		hold_hear(&job->hold);
	answer_body(exchange, body);
}

/* No more than wanted is held in memory, and a small rest does not need a large buffer. */
static void
poll_bound_limit(struct poll_query *query, const struct job *job)
{
	uint64_t most = job->out.total > job->err.total ? job->out.total : job->err.total;

	if ((uint64_t)query->limit > most)
		query->limit = (int64_t)most;
}

static bool
poll_is_due(const struct job *job, const struct poll_query *query)
{
	return job->ended || (query->out_offset >= 0 && job->out.total > (uint64_t)query->out_offset) ||
		(query->err_offset >= 0 && job->err.total > (uint64_t)query->err_offset);
}

static void
poll_take(struct job *job, const struct poll_query *query)
{
	hold_hear(&job->hold);
	if (query->out_offset > 0)
		output_take(&job->out, (uint64_t)query->out_offset);
	if (query->err_offset > 0)
		output_take(&job->err, (uint64_t)query->err_offset);
}

static void
poll_release(struct output_poll *poll)
{
	event_free(poll->timer);
	free(poll);
}

static void
poll_finish(struct output_poll *poll)
{
	struct http_exchange *exchange = poll->exchange;
	struct poll_query query = poll->query;
	struct job *job = poll->job;

	job_unwatch(job, &poll->on_output);
	poll_release(poll);
	poll_bound_limit(&query, job);
	poll_answer(exchange, job, &query);
}

static void
poll_on_end(struct job *job, void *arg)
{
	(void)job;
	poll_finish(arg);
}

static void
poll_on_output(struct job *job, void *arg)
{
	struct output_poll *poll = arg;

	if (!poll_is_due(job, &poll->query))
		return;
	job_unwait(job, &poll->on_end);
	poll_finish(poll);
}

static void
poll_on_limit(evutil_socket_t fd, short what, void *arg)
{
	struct output_poll *poll = arg;

	(void)fd;
	(void)what;
	job_unwait(poll->job, &poll->on_end);
	poll_finish(poll);
}

static void
poll_on_gone(void *arg)
{
	struct output_poll *poll = arg;

	job_unwait(poll->job, &poll->on_end);
	job_unwatch(poll->job, &poll->on_output);
	poll_release(poll);
}

static void
poll_wait(struct event_base *base, struct http_exchange *exchange, struct job *job, const struct poll_query *query)
{
	struct output_poll *poll = alloc_zero(1, sizeof *poll);
	struct timeval limit = clock_tv(query->wait_ms);

	*poll = (struct output_poll){
		.on_end = { .on_end = poll_on_end, .arg = poll },
		.on_output = { .on_output = poll_on_output, .arg = poll },
		.exchange = exchange,
		.job = job,
		.query = *query,
		.timer = evtimer_new(base, poll_on_limit, poll),
	};
	if (poll->timer == NULL)
		abort();
	event_add(poll->timer, &limit);
	job_wait(job, &poll->on_end);
	job_watch(job, &poll->on_output);
	http_exchange_on_gone(exchange, poll_on_gone, poll);
}

void
output_poll_attach(struct event_base *base, struct http_exchange *exchange, struct job *job)
{
	struct poll_query query = { .out_offset = -1, .err_offset = -1, .limit = POLL_LIMIT };

	if (!query_int(exchange, "stdout_offset", INT64_MAX, &query.out_offset) ||
		!query_int(exchange, "stderr_offset", INT64_MAX, &query.err_offset) ||
		!query_int(exchange, "limit", POLL_MAX_LIMIT, &query.limit) ||
		!query_int(exchange, "wait_ms", POLL_MAX_WAIT_MS, &query.wait_ms) ||
		!query_int(exchange, "reader", 1, &query.reader))
		return;
	if (query.reader != 0)
		poll_take(job, &query);
	if (query.wait_ms > 0 && !poll_is_due(job, &query)) {
		poll_wait(base, exchange, job, &query);
		return;
	}
	poll_bound_limit(&query, job);
	poll_answer(exchange, job, &query);
}
