/*
 * handle_stream.c - GET /jobs/{id}/stream: a job followed live, as Server-Sent Events.
 *
 * The head goes out with the first event, so what is refused is refused with a status. A stream that
 * this process can't go on with ends without `exit`: its client comes again with the last id.
 */
/* SPDX-License-Identifier: MIT */
#include "worker/routes.h"

#include "base/alloc.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text.h"
#include "domain/job/job.h"
#include "domain/job/job_feed.h"
#include "http/http_server.h"
#include "worker/api.h"
#include "worker/piece.h"
#include "worker/query.h"
#include "worker/request.h"
#include "worker/respond.h"

#include <event2/buffer.h>
#include <stdlib.h>
#include <string.h>

enum { QUEUED_MAX = 256 * 1024 }; /* over which the client must read first */

static const char media_type_events[] = "text/event-stream";

struct stream {
	struct request *request;
	struct job_feed *feed;
	struct evbuffer *events; /* not sent yet */
	bool throttled; /* the client must read first */
};

static void
stream_free(struct stream *stream)
{
	evbuffer_free(stream->events);
	free(stream);
}

static void
on_drain(struct http_exchange *exchange, void *arg)
{
	struct request *request = arg;
	struct stream *stream = request->wait;

	(void)exchange;
	stream->throttled = false;
	job_feed_more(stream->feed);
}

static void
stream_send(struct stream *stream)
{
	struct request *request = stream->request;

	if (!request->started) {
		http_exchange_add_header(request->exchange, "Cache-Control", "no-store");
		http_exchange_add_header(
			request->exchange, "X-Accel-Buffering", "no"); /* proxies must not hold it */
		respond_start(request, 200, media_type_events, -1, on_drain);
	}
	stream->throttled = http_exchange_send(request->exchange, stream->events) > QUEUED_MAX;
}

/* --- events --- */

static void
on_status(const char *status, uint32_t queue_position, void *arg)
{
	struct stream *stream = arg;

	evbuffer_add_printf(stream->events, "event: status\ndata: {\"status\":\"%s\"", status);
	if (queue_position != UINT32_MAX)
		evbuffer_add_printf(stream->events, ",\"queue_position\":%u", queue_position);
	evbuffer_add_printf(stream->events, "}\n\n");
	stream_send(stream);
}

static void
add_base64(struct evbuffer *out, const void *data, size_t len)
{
	size_t size = text_base64_size(len);
	char *text = alloc_bytes(size + 1);

	text_base64_encode(data, len, text);
	piece_add(out, text, size);
}

static void
on_piece(const struct job_feed_piece *piece, void *arg)
{
	struct stream *stream = arg;

	evbuffer_add_printf(stream->events, "event: %s\nid: %lld:%lld\ndata: {\"offset\":%lld,\"data\":\"",
		piece->stream == JOB_STDOUT ? "stdout" : "stderr", (long long)piece->next[JOB_STDOUT],
		(long long)piece->next[JOB_STDERR], (long long)piece->offset);
	add_base64(stream->events, piece->data, piece->len);
	evbuffer_add_printf(stream->events, "\"}\n\n");
}

static void
on_pause(void *arg)
{
	struct stream *stream = arg;
	struct request *request = stream->request;

	if (job_feed_holds(stream->feed) && request->started)
		http_exchange_be_patient(request->exchange);
	stream_send(stream);
	if (stream->throttled)
		job_feed_rest(stream->feed);
	else
		job_feed_more(stream->feed);
}

static void
on_quiet(void *arg)
{
	struct stream *stream = arg;

	if (stream->throttled)
		return;
	evbuffer_add_printf(stream->events, ": ping\n\n");
	stream_send(stream);
}

static void
on_end(struct json_object *job, const struct err *why, void *arg)
{
	struct stream *stream = arg;
	struct request *request = stream->request;

	request_wait_done(request);
	if (job != NULL) {
		evbuffer_add_printf(stream->events, "event: exit\ndata: %s\n\n", json_text(job, NULL));
		stream_send(stream);
	}
	if (request->started)
		respond_end(request);
	else
		respond_err(request, why);
	stream_free(stream);
}

static const struct job_feed_ops feed_ops = {
	.status = on_status, .piece = on_piece, .pause = on_pause, .quiet = on_quiet, .end = on_end
};

/* --- the request --- */

static void
wait_cancel(void *wait)
{
	struct stream *stream = wait;

	job_feed_close(stream->feed);
	stream_free(stream);
}

static void
wait_expire(struct request *request)
{
	if (request->started)
		respond_end(request);
	else
		respond_problem(request, PROBLEM_UNAVAILABLE, "this worker process is stopping; ask again");
}

static const struct request_wait_ops wait_ops = { .cancel = wait_cancel, .expire = wait_expire, .at_drain = true };

static void
on_head_job(struct json_object *job, const struct err *why, void *arg)
{
	struct request *request = request_ref_take(arg);

	(void)job;
	if (request == NULL)
		return;
	if (why != NULL) {
		respond_err(request, why);
		return;
	}
	respond_start(request, 200, media_type_events, -1, NULL);
	respond_end(request);
}

/* Last-Event-ID: the position after the last event that came, STDOUT:STDERR. */
static bool
read_last_id(struct request *request, int64_t ret_offset[JOB_STREAMS])
{
	static const struct respond_fault fault = { PROBLEM_INVALID_REQUEST, "header", "Last-Event-ID",
		"value_error" };
	const char *id = http_head_header(http_exchange_head(request->exchange), "Last-Event-ID");
	AUTO_FREE char *text = NULL;
	char *colon;

	if (id == NULL || *id == '\0')
		return true;
	text = alloc_string(id);
	colon = strchr(text, ':');
	if (colon != NULL) {
		*colon = '\0';
		if (query_parse_count(text, 0, &ret_offset[JOB_STDOUT]) &&
			query_parse_count(colon + 1, 0, &ret_offset[JOB_STDERR]))
			return true;
	}
	respond_fault(request, &fault, "must be the id of an event of such a stream");
	return false;
}

static void
stream_start(struct request *request, const int64_t offset[JOB_STREAMS])
{
	struct stream *stream = alloc_zero(1, sizeof *stream);
	struct err err;

	stream->request = request;
	stream->events = evbuffer_new();
	if (stream->events == NULL)
		abort();
	if (job_feed_start(request->api->service, request->tenant, request->match.id, offset, &feed_ops, stream,
		    &stream->feed, &err) != 0) {
		stream_free(stream);
		respond_err(request, &err);
		return;
	}
	request_wait(request, stream, &wait_ops);
}

void
handle_job_stream(struct request *request)
{
	int64_t offset[JOB_STREAMS] = { 0 };

	if (!read_last_id(request, offset) || !query_offset(request, "stdout_offset", &offset[JOB_STDOUT]) ||
		!query_offset(request, "stderr_offset", &offset[JOB_STDERR]))
		return;
	if (http_head_method(http_exchange_head(request->exchange)) == HTTP_HEAD)
		job_get(request->api->service, request->tenant, request->match.id, on_head_job,
			request_ref(request));
	else
		stream_start(request, offset);
}
