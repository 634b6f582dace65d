/*
 * link.h - the WebSocket of a terminal, and the loop that waits for it and for one more descriptor.
 *
 * Everything happens in link_wait(): it calls the events, and returns. No message is dropped: what is sent waits until
 * the connection takes it; while link_rest() is on, nothing is read.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARDCTL_TERMINAL_LINK_H
#define ORCHARDCTL_TERMINAL_LINK_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>

struct err;
struct link;
struct server;

enum { LINK_BROKEN = 1006 };

struct link_events {
	void (*on_open)(void *arg);
	void (*on_text)(const char *text, size_t len, void *arg);
	/* The code of the peer's close frame, LINK_BROKEN without one; status: of a refused handshake, else 0. */
	void (*on_closed)(int code, int status, const char *reason, void *arg);
	void (*on_watched)(void *arg); /* the descriptor is readable */
};

/* watched_fd is polled for reading, not owned. */
struct link *link_create(const struct server *server, int watched_fd, const struct link_events *events, void *arg,
	struct err *err) MUSTCHECK;
void link_free(struct link *link);
/* path: encoded, with its query. At the end there is on_open or on_closed. One connection at a time. */
void link_open(struct link *link, const char *path);
bool link_is_open(const struct link *link);
/* Takes the malloc'ed text; without a connection it is thrown away. */
void link_send(struct link *link, char *text);
size_t link_pending(const struct link *link); /* bytes that wait to be sent */
void link_rest(struct link *link, bool rest);
/* Closes behind what waits to be sent; on_closed tells when the peer has answered or is gone. */
void link_shut(struct link *link);
/* Until something has happened, at most timeout_ms; -1: as long as it takes. */
void link_wait(struct link *link, int timeout_ms);

#endif
