/*
 * http_pool.h - the insides of the client, private to src/http.
 *
 * A link is a connection; it belongs to one call or stands in the pool's idle
 * list. User callbacks are always the last thing a function does, so they may
 * start and cancel calls and free the pool.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_HTTP_HTTP_POOL_H
#define ORCHARD_HTTP_HTTP_POOL_H

#include "base/err.h"
#include "http/http_client.h"
#include "http/http_parse.h"

#include <sys/queue.h>
#include <sys/socket.h>

struct bufferevent;
struct event;

struct http_link {
	TAILQ_ENTRY(http_link) entry; /* of the idle list */
	struct http_pool *pool;
	struct bufferevent *bev; /* writes; reading is ours */
	struct evbuffer *in;
	struct event *readable;
	struct http_call *call; /* NULL: idle */
	int64_t idle_until;
};

struct http_pool {
	struct event_base *base;
	struct sockaddr_storage addr;
	socklen_t addr_len;
	char *endpoint;
	const char *host; /* what the Host header says; inside endpoint, or a literal */
	uint32_t max_idle;
	int64_t idle_timeout_ms;
	int64_t connect_timeout_ms;
	TAILQ_HEAD(http_idle_list, http_link) idle; /* the latest used first */
	uint32_t idle_count;
	TAILQ_HEAD(, http_call) calls;
	uint32_t call_count;
	struct event *timer; /* for the nearest of all deadlines */
	int64_t timer_at; /* 0: not pending */
	uint32_t depth;
	bool dead;
};

struct http_call {
	TAILQ_ENTRY(http_call) entry;
	struct http_pool *pool;
	struct http_link *link; /* NULL until connected */
	struct event *event; /* connecting: the socket is writable, or it is time to try again */
	int fd; /* connecting, or -1 */
	int64_t backoff_ms;
	int64_t connect_deadline; /* 0: connected */
	int64_t deadline; /* 0: none */
	struct evbuffer *request; /* NULL: it went to the socket or its queue, and is not sent again */
	size_t request_len;
	bool idempotent;
	bool bodiless; /* HEAD */
	bool reused; /* the link had served before */
	bool answered; /* a byte of an answer came */
	uint32_t interim;
	size_t max_body;
	struct http_parser parser;
	struct http_head *head;
	struct evbuffer *body;
	/* Of a streamed one. */
	bool streams;
	struct http_stream stream;
	bool wanted, sent_all, throttled; /* of the body */
	bool paused, over; /* of the answer: the user takes nothing; all of it has come */
	bool dead; /* gone, but for the memory: one of its callbacks runs */
	uint32_t depth; /* callbacks of a stream on the stack */
	struct err why; /* of a failure that is told from the loop */
	void (*done)(const struct http_head *head, struct evbuffer *body, void *arg);
	void (*failed)(const struct err *why, enum http_sent sent, void *arg);
	void *arg;
};

/* --- http_pool.c --- */
/* An idle connection that is still open, or NULL. */
struct http_link *http_pool_take(struct http_pool *pool);
void http_pool_keep(struct http_pool *pool, struct http_link *link);
/* Makes sure that the pool looks at its deadlines at `at`. */
void http_pool_schedule(struct http_pool *pool, int64_t at);

/* --- http_link.c --- */
struct http_link *http_link_create(struct http_pool *pool, int fd); /* takes fd */
void http_link_close(struct http_link *link);
bool http_link_is_fresh(const struct http_link *link); /* open, nothing to read */

/* --- http_client.c --- */
void http_call_connected(struct http_call *call, struct http_link *link);
void http_call_on_bytes(struct http_call *call, struct evbuffer *in);
void http_call_on_eof(struct http_call *call, int errnum);
/* Ends the call: it is gone when this returns, and so may be the pool. */
void http_call_fail(struct http_call *call, enum http_sent sent, enum err_code code, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
int64_t http_call_next_deadline(const struct http_call *call); /* 0: none */
void http_call_expire(struct http_call *call);

/* 1: a final head has come. 0: not yet. -1: the call is gone. */
int http_call_read_head(struct http_call *call, struct evbuffer *in) MUSTCHECK;
/* The connection goes back if it may. Frees the call; its head is the caller's. */
struct http_head *http_call_finish(struct http_call *call, bool keep);

/* --- http_stream.c --- */
void http_stream_joined(struct http_call *call); /* it has a connection */
void http_stream_on_bytes(struct http_call *call, struct evbuffer *in);
void http_stream_on_written(struct http_call *call);
/* False: the other side waits for us, so it is not late. */
bool http_stream_is_owed(const struct http_call *call);
void http_stream_progress(struct http_call *call);

/* --- http_connect.c --- */
void http_connect_start(struct http_call *call);
void http_connect_stop(struct http_call *call);
/* Fails from the loop with call->why: starting never calls back. */
void http_connect_fail_later(struct http_call *call);

#endif
