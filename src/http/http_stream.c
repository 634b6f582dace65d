/*
 * http_stream.c - a call whose body and answer pass through piece by piece.
 *
 * What the user does not take stays in the call, then in the socket: the connection is not read until he goes on. What
 * he sends waits in the output, and he is told when it has gone.
 */
/* SPDX-License-Identifier: MIT */
#include "http/http_pool.h"

#include "base/clock.h"
#include "http/http_send.h"

#include <stdlib.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

enum { STREAM_PIECE = 64 * 1024, STREAM_LOW = 64 * 1024 };

void
http_stream_progress(struct http_call *call)
{
	if (call->stream.stall_ms > 0)
		call->deadline = clock_boot_ms() + call->stream.stall_ms;
}

bool
http_stream_is_owed(const struct http_call *call)
{
	if (call->paused)
		return false;
	return !call->wanted || call->sent_all || call->head != NULL || call->link == NULL ||
		evbuffer_get_length(bufferevent_get_output(call->link->bev)) > 0;
}

/* --- the body --- */

void
http_stream_joined(struct http_call *call)
{
	bufferevent_setwatermark(call->link->bev, EV_WRITE, STREAM_LOW, 0);
	http_stream_progress(call);
	if (call->throttled)
		bufferevent_trigger(call->link->bev, EV_WRITE, BEV_TRIG_DEFER_CALLBACKS);
}

/* Before there is a connection all waits with the head of the request. */
static size_t
stream_put(struct http_call *call, struct evbuffer *bytes)
{
	struct evbuffer *out = call->request;

	if (call->link != NULL) {
		out = bufferevent_get_output(call->link->bev);
		http_send(call->link->bev, bytes);
	} else {
		evbuffer_add_buffer(out, bytes);
	}
	return evbuffer_get_length(out);
}

size_t
http_call_send(struct http_call *call, struct evbuffer *piece)
{
	size_t len = evbuffer_get_length(piece), queued = 0;
	struct evbuffer *framed;

	if (len == 0 || call->sent_all)
		return 0;
	if (call->stream.length >= 0) {
		queued = stream_put(call, piece);
	} else {
		framed = evbuffer_new();
		if (framed == NULL)
			abort();
		evbuffer_add_printf(framed, "%zx\r\n", len);
		evbuffer_add_buffer(framed, piece);
		evbuffer_add(framed, "\r\n", 2);
		queued = stream_put(call, framed);
		evbuffer_free(framed);
	}
	http_stream_progress(call);
	call->throttled = queued > HTTP_CALL_HIGH;
	return queued;
}

void
http_call_send_end(struct http_call *call)
{
	struct evbuffer *last;

	if (call->sent_all)
		return;
	call->sent_all = true;
	http_stream_progress(call);
	if (call->stream.length >= 0)
		return;
	last = evbuffer_new();
	if (last == NULL)
		abort();
	evbuffer_add(last, "0\r\n\r\n", 5);
	stream_put(call, last);
	evbuffer_free(last);
}

void
http_stream_on_written(struct http_call *call)
{
	http_stream_progress(call);
	if (!call->throttled)
		return;
	call->throttled = false;
	call->stream.drained(call->arg);
}

/* --- the answer --- */

void
http_call_resume(struct http_call *call)
{
	if (!call->paused)
		return;
	call->paused = false;
	http_stream_progress(call);
	event_add(call->link->readable, NULL);
	event_active(call->link->readable, EV_TIMEOUT, 0);
}

/* Its connection is kept only if the other side has nothing more to expect on it. */
static void
stream_complete(struct http_call *call)
{
	void (*end)(void *) = call->stream.end;
	void *arg = call->arg;

	http_head_free(http_call_finish(call, call->sent_all));
	end(arg);
}

/* False: more bytes are needed, the user takes no more, or the call is gone. */
static bool
stream_step(struct http_call *call, struct evbuffer *in)
{
	if (evbuffer_get_length(call->body) == 0 && !call->over) {
		int rc = http_parser_body(&call->parser, in, call->body, STREAM_PIECE);

		if (rc < 0) {
			http_call_fail(call, HTTP_MAYBE_SENT, ERR_UNAVAILABLE, "%s answered no valid HTTP: %s",
				call->pool->endpoint, call->parser.detail);
			return false;
		}
		call->over = rc > 0;
		if (rc == 0 && evbuffer_get_length(call->body) == 0)
			return false;
	}
	if (evbuffer_get_length(call->body) == 0) {
		stream_complete(call);
		return false;
	}
	call->stream.data(call->body, call->arg);
	if (call->dead)
		return false;
	call->paused = evbuffer_get_length(call->body) > 0;
	if (call->paused)
		event_del(call->link->readable);
	return !call->paused;
}

static bool
stream_head(struct http_call *call, struct evbuffer *in)
{
	if (http_call_read_head(call, in) <= 0)
		return false;
	call->stream.head(call->head, call->arg);
	return !call->dead;
}

void
http_stream_on_bytes(struct http_call *call, struct evbuffer *in)
{
	call->depth++;
	http_stream_progress(call);
	if (!call->paused && (call->head != NULL || stream_head(call, in)))
		while (stream_step(call, in)) {
		}
	call->depth--;
	if (call->dead)
		free(call);
}
