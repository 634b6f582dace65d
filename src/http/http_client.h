/*
 * http_client.h - HTTP/1.1 requests over pooled keep-alive connections, TCP or unix.
 *
 * A pool belongs to one endpoint. A request that fails says how far it came
 * (`sent`), because only what was never sent may be sent again blindly: the
 * client itself retries nothing but a request whose pooled connection turned
 * out closed before the first byte of it could have arrived, and that only if
 * `idempotent`. Idle connections close before the server's keep-alive ends.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_HTTP_HTTP_CLIENT_H
#define ORCHARD_HTTP_HTTP_CLIENT_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct evbuffer;
struct event_base;
struct http_call;
struct http_head;
struct http_pool;

struct http_pool_options {
	const char *endpoint; /* "unix:/path" or "tcp:a.b.c.d:port" or "tcp:[v6]:port"; no names */
	uint32_t max_idle; /* idle connections kept */
	int64_t idle_timeout_ms;
	int64_t connect_timeout_ms; /* 0: 5000 */
};
int http_pool_create(struct event_base *base, const struct http_pool_options *options, struct http_pool **ret_pool,
	struct err *err) MUSTCHECK;
void http_pool_free(struct http_pool *pool); /* calls in flight end with ERR_UNAVAILABLE */
uint32_t http_pool_calls(const struct http_pool *pool); /* in flight */

/*
 * A call whose body and answer go piece by piece, neither held whole. Any callback may cancel the call; after `end`
 * and `failed` it is gone.
 */
struct http_stream {
	int64_t length; /* of the body; -1: chunked, 0: none */
	bool ask_first; /* "Expect: 100-continue": nothing is to be sent before `wanted` */
	int64_t stall_ms; /* how long the other side may neither take nor send anything when it is its turn; 0: for ever */
	void (*wanted)(void *arg); /* never, if it answers without the body */
	void (*drained)(void *arg); /* what http_call_send() queued has gone out, mostly */
	void (*head)(const struct http_head *head, void *arg); /* as long as the call */
	/* Drain what you take; when something is left, nothing more comes before http_call_resume(). */
	void (*data)(struct evbuffer *data, void *arg);
	void (*end)(void *arg); /* all of the answer has come */
};

enum { HTTP_CALL_HIGH = 256 * 1024 }; /* queued bytes over which to wait for `drained` */

enum http_sent { HTTP_NOT_SENT, HTTP_MAYBE_SENT };

struct http_call_options {
	const char *method; /* "GET"... */
	const char *target; /* path and query, encoded */
	const char *const *headers; /* name, value, name, value, ..., NULL; may be NULL */
	const char *content_type; /* NULL: none */
	const void *body; /* copied; NULL: none */
	size_t body_len;
	bool idempotent;
	const struct http_stream
		*stream; /* copied; instead of body, timeout_ms, max_response_bytes and done; NULL: none */
	int64_t timeout_ms; /* whole call; 0: none */
	size_t max_response_bytes; /* with `done` only: more is ERR_TOO_LARGE; 0: 16 MiB */
	/* The whole answer. Called exactly once unless cancelled; the call is gone afterwards. */
	void (*done)(const struct http_head *head, struct evbuffer *body, void *arg);
	/* It failed: why, and how far it came. Called instead of done. */
	void (*failed)(const struct err *why, enum http_sent sent, void *arg);
	void *arg;
};
/* Starts a call; never calls back before it returns. *ret_call is valid until done, failed or cancel. */
int http_call_start(struct http_pool *pool, const struct http_call_options *options, struct http_call **ret_call,
	struct err *err) MUSTCHECK;
/* Streams: takes the bytes of piece, and says how many are queued now. What comes after an answer is for nobody. */
size_t http_call_send(struct http_call *call, struct evbuffer *piece);
void http_call_send_end(struct http_call *call); /* all of the body was sent */
void http_call_resume(struct http_call *call);
/* Forgets the call: no callback comes, the connection is closed. */
void http_call_cancel(struct http_call *call);

#endif
