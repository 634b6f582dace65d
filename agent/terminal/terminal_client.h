/*
 * terminal_client.h - a WebSocket that opens a session or attaches to one, and views it.
 *
 * Exactly one of the two sides is left to decide when it ends: as long as the
 * peer is there the session's end closes it, afterwards its end is the session's
 * business (terminal_leave).
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_TERMINAL_CLIENT_H
#define ORCHARD_AGENT_TERMINAL_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

struct evbuffer;
struct event_base;
struct terminal;
struct terminal_client;
struct terminal_set;

struct terminal_client_options {
	struct event_base *base;
	struct terminal_set *set;
	struct terminal *terminal; /* to attach to; NULL: the first message opens one */
	uint64_t offset; /* of the output, where to begin */
	bool counted; /* the peer sends no more input than it is told there is room for */
	int64_t ping_ms;
	int fd; /* the client's, as are the two that follow */
	struct evbuffer *read;
	struct evbuffer *first; /* the answer of the handshake; stays the caller's, emptied */
	void (*on_gone)(struct terminal_client *client, void *arg); /* it is freed when this returns */
	void *arg;
};

struct terminal_client *terminal_client_create(const struct terminal_client_options *options);
/* Without on_gone; its session goes on as if it had left. */
void terminal_client_free(struct terminal_client *client);

#endif
