/*
 * ws_conn.h - one WebSocket on an accepted socket: reading, writing, pings, the closing handshake.
 *
 * Backpressure both ways: nothing is read while the owner has paused it or while
 * much waits to be sent, so neither pings nor messages of a peer make memory grow.
 * Output that the peer leaves unread does not keep it from being heard: that stops
 * at WS_CONN_HIGH, and reading only at WS_CONN_FULL.
 *
 * A peer is pinged when it was silent for ping_ms. It is gone when it took that
 * ping and stays silent. One that leaves what was sent to it unread is slow, not
 * gone; a host that has vanished is found by TCP itself (keepalive, user timeout).
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_WS_CONN_H
#define ORCHARD_AGENT_WS_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct evbuffer;
struct event_base;
struct ws_conn;

enum {
	WS_CONN_HIGH = 64 << 10, /* queued output over which nothing more should be sent */
	WS_CONN_FULL = 128 << 10, /* and over which nothing is read: those are answers to what was */
	WS_CONN_LOW = 16 << 10 /* under which on_room is called */
};

struct ws_conn_options {
	struct event_base *base;
	int fd; /* non-blocking; the connection's */
	struct evbuffer *read; /* what was read of it already; the connection's */
	struct evbuffer *first; /* written before any frame, emptied */
	size_t max_text; /* bytes of a text message */
	int64_t ping_ms;
	/* text has a NUL behind it. */
	void (*on_text)(const char *text, size_t len, void *arg);
	/* Drain what you take: all of it, now. */
	void (*on_binary)(struct evbuffer *piece, void *arg);
	void (*on_room)(void *arg);
	/*
	 * The peer says no more: it left, is closing, or broke the protocol. What is sent from now on goes nowhere.
	 * Not called after ws_conn_close().
	 */
	void (*on_left)(void *arg);
	/* Last of all calls: the connection is gone. answered: the peer has read all, and our close. */
	void (*on_gone)(bool answered, void *arg);
	void *arg;
};

/* Calls back from the loop only. */
struct ws_conn *ws_conn_create(const struct ws_conn_options *options);
/* Closes at once; no callback comes any more. */
void ws_conn_free(struct ws_conn *conn);
void ws_conn_send_text(struct ws_conn *conn, const char *text, size_t len);
void ws_conn_send_binary(struct ws_conn *conn, const void *bytes, size_t len);
bool ws_conn_has_room(const struct ws_conn *conn);
/* Input is left where it is. */
void ws_conn_pause(struct ws_conn *conn, bool paused);
/* Behind what is queued. reason is UTF-8. on_gone follows. */
void ws_conn_close(struct ws_conn *conn, int code, const char *reason);

#endif
