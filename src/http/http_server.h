/*
 * http_server.h - HTTP/1.1 server connections on libevent, streaming both ways.
 *
 * One struct http_exchange is one request and its answer. The user gets it when
 * the head is parsed, chooses how to take the body, and answers exactly once,
 * now or later. Whatever happens to the connection, `on_gone` (if set) is called
 * at most once, and the exchange must not be touched after it or after the
 * answer was ended. Deadlines are absolute: head, progress of a body, progress of
 * an answer, idle. A client that leaves while its answer is pending is noticed at
 * once, even with unread pipelined bytes; but see half_closed_ms.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_HTTP_HTTP_SERVER_H
#define ORCHARD_HTTP_HTTP_SERVER_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct evbuffer;
struct event_base;
struct http_exchange;
struct http_head;
struct http_server;

enum { HTTP_ERROR_HEADERS_SIZE = 256 };

struct http_server_options {
	size_t max_header_bytes;
	uint32_t max_connections;
	int64_t header_timeout_ms;
	int64_t body_timeout_ms; /* without progress, in or out */
	int64_t keepalive_timeout_ms;
	/*
	 * How long a client that sends no more, but may still read, gets to see its answer, or more of it. 0: it has
	 * left, which is right where no client does that.
	 */
	int64_t half_closed_ms;
	/* A request's head has arrived. Must end in exactly one answer, now or later. */
	void (*on_request)(struct http_exchange *exchange, void *arg);
	/*
	 * The codec itself refuses (400, 408, 413, 414, 417, 431, 501, 505): returns the body (malloc'ed JSON),
	 * and may put header lines, each with its CRLF, into ret_headers ("" before). exchange: whose body it
	 * was, to look at only; NULL when there is no head yet. NULL: a plain JSON {"detail","code"}.
	 */
	char *(*format_error)(struct http_exchange *exchange, int status, const char *detail,
		char ret_headers[HTTP_ERROR_HEADERS_SIZE], void *arg);
	/* Connections opened (+1) and closed (-1), refused (0). May be NULL. */
	void (*on_count)(int change, void *arg);
	void *arg;
};

/*
 * Listens on an inherited, bound and listening socket (TCP or unix); the descriptor stays the caller's.
 * EMFILE pauses accepting for a moment; at max_connections accepting stops until one closes.
 */
int http_server_create(struct event_base *base, int listen_fd, const struct http_server_options *options,
	struct http_server **ret_server, struct err *err) MUSTCHECK;
/*
 * Stops accepting; every answer that begins from now on says Connection: close. With patience, idle connections get a
 * second to bring a request that may be on its way; without, they are closed. One that has not brought any yet gets it
 * in both cases.
 */
void http_server_drain(struct http_server *server, bool patience);
/* Connections that may still bring a request, once it drains. */
uint32_t http_server_hears(const struct http_server *server);
uint32_t http_server_connections(const struct http_server *server);
uint32_t http_server_exchanges(const struct http_server *server); /* requests not answered yet */
void http_server_free(struct http_server *server); /* closes everything at once */

/* --- the request --- */
const struct http_head *http_exchange_head(const struct http_exchange *exchange);
/* Content-Length, 0 for none, or -1 for a chunked body. */
int64_t http_exchange_length(const struct http_exchange *exchange);
/*
 * Called when the client has left, the connection broke, or the codec itself answered (408, 413, 400 for a
 * chunk) before the answer was ended; never from inside a call of this header but http_server_free. NULL to clear.
 */
void http_exchange_on_gone(struct http_exchange *exchange, void (*on_gone)(void *arg), void *arg);
/* From now on a client that sends no more has left at once: what its leaving must end waits for nobody. */
void http_exchange_need_client(struct http_exchange *exchange);
/* A place for the caller's per-request data. */
void http_exchange_set_data(struct http_exchange *exchange, void *data);
void *http_exchange_data(const struct http_exchange *exchange);

/*
 * Collects the whole body, then calls done(exchange, body, arg); the evbuffer is the callee's to drain, and
 * is gone when done returns. A body over max is answered 413 (before it is read when Content-Length
 * says so; "Expect: 100-continue" is answered only when the body is wanted) and done is not called.
 */
void http_exchange_collect(struct http_exchange *exchange, size_t max,
	void (*done)(struct http_exchange *exchange, struct evbuffer *body, void *arg), void *arg);
/*
 * Streams the body: on_data gets each piece (drain what you take; leave the rest and reading pauses until
 * http_exchange_resume), on_end when all has come. An answer given early makes the rest be discarded.
 */
void http_exchange_stream(struct http_exchange *exchange,
	void (*on_data)(struct http_exchange *exchange, struct evbuffer *piece, void *arg),
	void (*on_end)(struct http_exchange *exchange, void *arg), void *arg);
void http_exchange_resume(struct http_exchange *exchange);

/* A connection that is the caller's now: close, http_head_free and evbuffer_free are too. */
struct http_taken {
	int fd; /* non-blocking, close-on-exec; nothing of the answer is written */
	struct http_head *head; /* of the request */
	struct evbuffer *read; /* what came behind the head */
};
/*
 * Instead of an answer, to a request that http_head_upgrade names a protocol of, now or later: the server forgets the
 * connection (on_count -1, no on_gone), and the exchange is gone. On failure nothing has changed and the exchange
 * waits for its answer: ERR_INVALID for other requests, ERR_BUSY when the client has not taken earlier answers yet.
 */
int http_exchange_take(struct http_exchange *exchange, struct http_taken *ret_taken, struct err *err) MUSTCHECK;

/* --- the answer --- */
/* Adds a header line to the answer; before http_exchange_respond/start. Value must have no CR, LF, NUL. */
void http_exchange_add_header(struct http_exchange *exchange, const char *name, const char *value);
/* The whole answer. body may be NULL; its bytes are taken (moved). HEAD, 204 and 304 send no body. */
void
http_exchange_respond(struct http_exchange *exchange, int status, const char *content_type, struct evbuffer *body);
void http_exchange_respond_text(
	struct http_exchange *exchange, int status, const char *content_type, const char *body, size_t len);
/*
 * A streamed answer: start, then pieces, then end. length -1: chunked (HTTP/1.0: until close). send returns
 * how many bytes are queued now; over 256 KiB stop and wait for on_drain. abort breaks the connection, so
 * that a client sees a cut answer as cut.
 */
void http_exchange_start(struct http_exchange *exchange, int status, const char *content_type, int64_t length,
	void (*on_drain)(struct http_exchange *exchange, void *arg), void *arg);
size_t http_exchange_send(struct http_exchange *exchange, struct evbuffer *piece);
/* The client may take its time: nothing but its leaving breaks the connection before the end. */
void http_exchange_be_patient(struct http_exchange *exchange);
void http_exchange_end(struct http_exchange *exchange);
void http_exchange_abort(struct http_exchange *exchange);

const char *http_status_reason(int status);
/* The word for a refusal by the codec itself; NULL: it has none for this status. */
const char *http_status_code(int status);

#endif
