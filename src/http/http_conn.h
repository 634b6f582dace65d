/*
 * http_conn.h - the insides of the server, private to src/http.
 *
 * A connection owns at most one exchange. It is closed in one place
 * (http_conn_close); while one of its callbacks runs (depth > 0) it only turns
 * dead then and is freed when the callback is left, so user code may end
 * anything from anywhere.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_HTTP_HTTP_CONN_H
#define ORCHARD_HTTP_HTTP_CONN_H

#include "http/http_parse.h"
#include "http/http_server.h"

#include <sys/queue.h>

struct bufferevent;
struct event;
struct evconnlistener;

enum {
	HTTP_READ_HIGH = 128 * 1024, /* input kept unread */
	HTTP_PIECE = 64 * 1024, /* body handed over at once */
	HTTP_OUT_HIGH = 256 * 1024, /* output over which nothing more is begun */
	HTTP_OUT_LOW = 64 * 1024, /* output under which on_drain is called */
	HTTP_PROGRESS = 16 * 1024, /* bytes that renew a body's or an answer's deadline */
	HTTP_LINGER_MS = 2000, /* how long a closing connection is read to nowhere */
	HTTP_TICK_MS = 200,
	HTTP_DRAIN_GRACE_MS = 1000 /* a request that is on its way has so long to come */
};

struct http_server {
	struct event_base *base;
	struct http_server_options options;
	struct evconnlistener *listener; /* NULL while draining */
	struct event *accept_pause;
	struct event *tick; /* pending only while there are connections */
	TAILQ_HEAD(, http_conn) conns;
	uint32_t conn_count;
	uint32_t exchange_count;
	uint32_t depth; /* callbacks on the stack */
	bool draining, patience;
	bool dead;
	int64_t date_second;
	char date[32];
};

enum http_conn_state {
	HTTP_CONN_HEAD, /* idle or inside a head */
	HTTP_CONN_BODY, /* an exchange whose body has not ended */
	HTTP_CONN_BUSY, /* an exchange whose answer is awaited */
	HTTP_CONN_CLOSING /* flush, shut down, read to nowhere, close */
};

struct http_conn {
	TAILQ_ENTRY(http_conn) link;
	struct http_server *server;
	struct bufferevent *bev; /* writes; reading is ours */
	struct evbuffer *in;
	struct event *readable;
	struct http_exchange *exchange;
	enum http_conn_state state;
	uint32_t depth;
	bool dead;
	bool close_after;
	bool eof; /* the client sends no more */
	bool stopped; /* input stands at its mark and is not read */
	bool shut; /* our side is shut down */
	bool head_started;
	bool served; /* had a request already */
	int64_t deadline; /* for input; 0: none */
	int64_t left_deadline; /* after eof: when a client that gets nothing has left */
	uint64_t progress; /* body bytes since the deadline was set */
	int64_t out_deadline;
	uint64_t out_sent;
	uint64_t out_mark;
	struct http_parser parser;
};

enum http_body_mode { HTTP_BODY_UNASKED, HTTP_BODY_COLLECT, HTTP_BODY_STREAM };

struct http_exchange {
	struct http_conn *conn;
	struct http_head *head;
	void *data;
	void (*on_gone)(void *arg);
	void *gone_arg;

	enum http_body_mode mode;
	struct evbuffer *body;
	size_t max;
	int refuse; /* a status to answer instead of reading the body */
	bool body_ended;
	bool needs_client; /* it is over when the client sends no more */
	bool continue_sent;
	void (*done)(struct http_exchange *exchange, struct evbuffer *body, void *arg);
	void (*on_data)(struct http_exchange *exchange, struct evbuffer *piece, void *arg);
	void (*on_end)(struct http_exchange *exchange, void *arg);
	void *body_arg;

	char *headers; /* lines of the answer, or NULL */
	size_t headers_len;
	bool started;
	bool chunked;
	bool bodiless;
	bool counted; /* its Content-Length was told */
	bool throttled; /* the user was told to wait for on_drain */
	bool patient; /* the client may be slow */
	uint64_t left; /* of a counted answer */
	void (*on_drain)(struct http_exchange *exchange, void *arg);
	void *drain_arg;
};

/* --- http_server.c --- */
void http_server_enter(struct http_server *server);
void http_server_leave(struct http_server *server); /* may free it */
void http_server_count_conn(struct http_server *server, int change);
const char *http_server_date(struct http_server *server);

/* --- http_conn.c --- */
int http_conn_open(struct http_server *server, int fd, bool tcp) MUSTCHECK; /* takes fd, on failure too */
/* Closes at once; a pending exchange's user is told. */
void http_conn_close(struct http_conn *conn);
/* Ends it without closing the socket, which is the caller's now, with what was read of it; so is its exchange. */
int http_conn_release(struct http_conn *conn, struct evbuffer **ret_read);
/* Reset, so that the client cannot take what it got for a whole answer. */
void http_conn_break(struct http_conn *conn);
void http_conn_tick(struct http_conn *conn, int64_t now);
/* The exchange's answer is complete. */
void http_conn_answered(struct http_conn *conn);
/* An error answer stands in the output: the pending exchange is over, its user is told. */
void http_conn_refused(struct http_conn *conn);
struct evbuffer *http_conn_input(const struct http_conn *conn);
/* How much output wakes on_drain. */
void http_conn_watch_output(struct http_conn *conn, size_t low);
/* Soon, from the loop: look at the input again. */
void http_conn_kick(struct http_conn *conn);
bool http_conn_is_idle(const struct http_conn *conn);
struct evbuffer *http_conn_output(const struct http_conn *conn);
size_t http_conn_unsent(const struct http_conn *conn);

/* --- http_leave.c --- */
/* Its end of input need not be its end. */
bool http_conn_may_be_half_closed(const struct http_conn *conn);
/* Of one that sends no more: its body is not whole, with what still lies in the socket. Of chunks it is a guess. */
bool http_conn_lacks_body(const struct http_conn *conn);
/* Of one whose input has ended, or is not read now: nobody waits for what it has asked for. */
bool http_conn_has_left(const struct http_conn *conn, int64_t now);

/* --- http_exchange.c --- */
struct http_exchange *http_exchange_create(struct http_conn *conn, struct http_head *head);
void http_exchange_free(struct http_exchange *exchange);
/* Takes one step with the body; false: nothing more can be done now. */
bool http_exchange_step(struct http_exchange *exchange, struct evbuffer *in);

/* --- http_answer.c --- */
/* The codec's own answer; the connection closes behind it. */
void http_conn_refuse(struct http_conn *conn, int status, const char *detail);

#endif
