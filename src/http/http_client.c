/*
 * http_client.c - one call: its request out, its answer in, its single end.
 *
 * Whether a failed call may have been received is judged by what the kernel
 * took: as long as all of the request still stands in our buffer, nothing was
 * sent.
 */
/* SPDX-License-Identifier: MIT */
#include "http/http_pool.h"

#include "base/clock.h"
#include "http/http_send.h"
#include "http/http_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

enum { MAX_ANSWER_HEAD = 64 * 1024, MAX_ANSWER = 16 * 1024 * 1024, MAX_INTERIM = 16 };

/* --- the request --- */

static int
request_check(const struct http_call_options *options, struct err *err)
{
	if (!http_text_is_token(options->method, strlen(options->method)))
		return err_set(err, ERR_INVALID, "HTTP method is malformed");
	for (const char *p = options->target; *p != '\0'; p++)
		if ((unsigned char)*p <= ' ' || (unsigned char)*p >= 0x7f)
			return err_set(err, ERR_INVALID, "HTTP target must be percent-encoded");
	if (options->target[0] != '/')
		return err_set(err, ERR_INVALID, "HTTP target must begin with /");
	if (options->content_type != NULL &&
		!http_text_is_value(options->content_type, strlen(options->content_type)))
		return err_set(err, ERR_INVALID, "HTTP content type is malformed");
	for (const char *const *h = options->headers; h != NULL && *h != NULL; h += 2)
		if (!http_text_is_token(h[0], strlen(h[0])) || !http_text_is_value(h[1], strlen(h[1])))
			return err_set(err, ERR_INVALID, "HTTP header %s is malformed", h[0]);
	return 0;
}

static bool
request_has_header(const struct http_call_options *options, const char *name)
{
	for (const char *const *h = options->headers; h != NULL && *h != NULL; h += 2)
		if (strcasecmp(h[0], name) == 0)
			return true;
	return false;
}

static void
request_add_header(struct http_text *text, const char *name, const char *value)
{
	http_text_add(text, name);
	http_text_add(text, ": ");
	http_text_add(text, value);
	http_text_add(text, "\r\n");
}

static void
request_build(const struct http_pool *pool, const struct http_call_options *options, struct http_text *text)
{
	http_text_init(text);
	http_text_add(text, options->method);
	http_text_add(text, " ");
	http_text_add(text, options->target);
	http_text_add(text, " HTTP/1.1\r\n");
	if (!request_has_header(options, "Host"))
		request_add_header(text, "Host", pool->host);
	for (const char *const *h = options->headers; h != NULL && *h != NULL; h += 2)
		request_add_header(text, h[0], h[1]);
	if (options->content_type != NULL)
		request_add_header(text, "Content-Type", options->content_type);
	if (options->stream != NULL && options->stream->length < 0)
		request_add_header(text, "Transfer-Encoding", "chunked");
	if (options->stream != NULL && options->stream->ask_first)
		request_add_header(text, "Expect", "100-continue");
	if (options->stream != NULL
			? options->stream->length > 0 || (options->stream->length == 0 && options->method[0] == 'P')
			: options->body != NULL || options->method[0] == 'P') {
		http_text_add(text, "Content-Length: ");
		http_text_add_number(
			text, options->stream != NULL ? (size_t)options->stream->length : options->body_len);
		http_text_add(text, "\r\n");
	}
	http_text_add(text, "\r\n");
	http_text_add_bytes(text, options->body, options->body_len);
}

static void
call_join(struct http_call *call, struct http_link *link)
{
	link->call = call;
	call->link = link;
	http_parser_init(&call->parser, HTTP_SIDE_RESPONSE, MAX_ANSWER_HEAD);
}

void
http_call_connected(struct http_call *call, struct http_link *link)
{
	call->reused = false;
	call_join(call, link);
	http_send(link->bev, call->request);
	if (call->streams)
		http_stream_joined(call);
}

/* The request is kept only where it may have to be sent, or sent again, later. */
static void
call_begin(struct http_call *call, struct http_text *text)
{
	/* A body cannot be sent twice, so it goes only where nothing can have closed meanwhile. */
	bool fresh = call->streams && call->stream.length != 0;
	struct http_link *link = fresh ? NULL : http_pool_take(call->pool);

	call->reused = link != NULL;
	if (link == NULL || call->idempotent)
		call->request = http_text_take(text);
	if (link == NULL) {
		http_connect_start(call);
		return;
	}
	call_join(call, link);
	if (call->idempotent)
		evbuffer_add(
			bufferevent_get_output(link->bev), evbuffer_pullup(call->request, -1), call->request_len);
	else
		http_text_send(text, link->bev);
	if (call->streams)
		http_stream_joined(call);
}

static void
call_set_stream(struct http_call *call, const struct http_stream *stream)
{
	call->streams = stream != NULL;
	if (stream == NULL)
		return;
	call->stream = *stream;
	call->wanted = !stream->ask_first;
	call->sent_all = stream->length == 0;
	http_stream_progress(call);
}

int
http_call_start(struct http_pool *pool, const struct http_call_options *options, struct http_call **ret_call,
	struct err *err)
{
	struct http_call *call;
	struct http_text text;

	if (pool->dead)
		return err_set(err, ERR_UNAVAILABLE, "%s: the connections to it were closed", pool->endpoint);
	if (request_check(options, err) < 0)
		return -1;
	call = calloc(1, sizeof *call);
	if (call == NULL || (call->body = evbuffer_new()) == NULL)
		abort();
	call->pool = pool;
	call->fd = -1;
	request_build(pool, options, &text);
	call->request_len = http_text_length(&text);
	call->idempotent = options->idempotent;
	call->bodiless = strcmp(options->method, "HEAD") == 0;
	call->max_body = options->max_response_bytes > 0 ? options->max_response_bytes : MAX_ANSWER;
	call->done = options->done;
	call->failed = options->failed;
	call->arg = options->arg;
	call_set_stream(call, options->stream);
	TAILQ_INSERT_TAIL(&pool->calls, call, entry);
	pool->call_count++;
	if (options->timeout_ms > 0)
		call->deadline = clock_boot_ms() + options->timeout_ms;
	http_pool_schedule(pool, call->deadline);
	call_begin(call, &text);
	*ret_call = call;
	return 0;
}

/* --- the end --- */

static void
call_free(struct http_call *call)
{
	TAILQ_REMOVE(&call->pool->calls, call, entry);
	call->pool->call_count--;
	http_connect_stop(call);
	if (call->link != NULL)
		http_link_close(call->link);
	if (call->request != NULL)
		evbuffer_free(call->request);
	if (call->body != NULL)
		evbuffer_free(call->body);
	http_head_free(call->head);
	call->dead = true;
	if (call->depth == 0)
		free(call);
}

void
http_call_cancel(struct http_call *call)
{
	call_free(call);
}

void
http_call_fail(struct http_call *call, enum http_sent sent, enum err_code code, const char *fmt, ...)
{
	void (*failed)(const struct err *, enum http_sent, void *) = call->failed;
	void *arg = call->arg;
	struct err why = { .code = code };
	va_list args;

	va_start(args, fmt);
	vsnprintf(why.msg, sizeof why.msg, fmt, args);
	va_end(args);
	call_free(call);
	failed(&why, sent, arg);
}

static enum http_sent
call_sent(const struct http_call *call)
{
	if (call->link == NULL)
		return HTTP_NOT_SENT;
	if (call->streams && call->stream.length != 0)
		return HTTP_MAYBE_SENT;
	return evbuffer_get_length(bufferevent_get_output(call->link->bev)) >= call->request_len ? HTTP_NOT_SENT
												 : HTTP_MAYBE_SENT;
}

struct http_head *
http_call_finish(struct http_call *call, bool keep)
{
	struct http_head *head = STEAL_PTR(call->head);
	struct bufferevent *bev = call->link->bev;

	if (keep && head->keep_alive && evbuffer_get_length(bufferevent_get_output(bev)) == 0 &&
		evbuffer_get_length(call->link->in) == 0) {
		bufferevent_setwatermark(bev, EV_WRITE, 0, 0);
		http_pool_keep(call->pool, STEAL_PTR(call->link));
	}
	call_free(call);
	return head;
}

static void
call_complete(struct http_call *call, bool keep)
{
	void (*done)(const struct http_head *, struct evbuffer *, void *) = call->done;
	void *arg = call->arg;
	struct evbuffer *body = STEAL_PTR(call->body);
	struct http_head *head = http_call_finish(call, keep);

	done(head, body, arg);
	evbuffer_free(body);
	http_head_free(head);
}

/* --- the answer --- */

/* The other side wants the body. False: the call is gone. */
static bool
call_on_continue(struct http_call *call)
{
	if (!call->streams || call->wanted)
		return true;
	call->wanted = true;
	call->stream.wanted(call->arg);
	return !call->dead;
}

int
http_call_read_head(struct http_call *call, struct evbuffer *in)
{
	struct http_head *head;

	for (;;) {
		int rc = http_parser_head(&call->parser, in, &head);

		if (rc == 0)
			return 0;
		if (rc < 0) {
			http_call_fail(call, HTTP_MAYBE_SENT, ERR_UNAVAILABLE, "%s answered no valid HTTP: %s",
				call->pool->endpoint, call->parser.detail);
			return -1;
		}
		if (head->status >= 200)
			break;

		int status = head->status;

		http_head_free(head);
		if (status == 101 || ++call->interim > MAX_INTERIM) {
			http_call_fail(call, HTTP_MAYBE_SENT, ERR_UNAVAILABLE, "%s answered %d unasked",
				call->pool->endpoint, status);
			return -1;
		}
		http_parser_next(&call->parser);
		if (status == 100 && !call_on_continue(call))
			return -1;
	}
	call->head = head;
	if (call->bodiless)
		http_parser_no_body(&call->parser);
	return 1;
}

void
http_call_on_bytes(struct http_call *call, struct evbuffer *in)
{
	call->answered = true;
	if (call->streams) {
		http_stream_on_bytes(call, in);
		return;
	}
	if (call->head == NULL && http_call_read_head(call, in) <= 0)
		return;

	size_t room = call->max_body - evbuffer_get_length(call->body);
	int rc = http_parser_body(&call->parser, in, call->body, room < SIZE_MAX ? room + 1 : room);

	if (rc < 0)
		http_call_fail(call, HTTP_MAYBE_SENT, ERR_UNAVAILABLE, "%s answered no valid HTTP: %s",
			call->pool->endpoint, call->parser.detail);
	else if (evbuffer_get_length(call->body) > call->max_body)
		http_call_fail(call, HTTP_MAYBE_SENT, ERR_TOO_LARGE, "the answer of %s is larger than %zu bytes",
			call->pool->endpoint, call->max_body);
	else if (rc > 0)
		call_complete(call, true);
}

void
http_call_on_eof(struct http_call *call, int errnum)
{
	bool until_close = call->head != NULL && call->head->length == HTTP_LENGTH_UNTIL_CLOSE && !call->bodiless;

	if (until_close && errnum == 0 && !call->streams) {
		call_complete(call, false);
	} else if (call->reused && call->idempotent && !call->answered) {
		http_link_close(STEAL_PTR(call->link));
		call->reused = false;
		http_connect_start(call);
	} else {
		http_call_fail(call, call_sent(call), ERR_UNAVAILABLE, "%s %s%s%s", call->pool->endpoint,
			call->answered ? "cut its answer off" : "closed the connection without an answer",
			errnum != 0 ? ": " : "", errnum != 0 ? strerror(errnum) : "");
	}
}

int64_t
http_call_next_deadline(const struct http_call *call)
{
	if (call->connect_deadline == 0)
		return call->deadline;
	if (call->deadline == 0 || call->connect_deadline < call->deadline)
		return call->connect_deadline;
	return call->deadline;
}

void
http_call_expire(struct http_call *call)
{
	if (call->streams && call->connect_deadline == 0 && !http_stream_is_owed(call)) {
		http_stream_progress(call);
		return;
	}
	http_call_fail(call, call_sent(call), ERR_TIMEOUT, "%s %s in time", call->pool->endpoint,
		call->connect_deadline != 0 ? "took no connection" : "did not answer");
}
