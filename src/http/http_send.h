/*
 * http_send.h - a message goes to the socket at once; the loop gets only what does not fit.
 *
 * Most messages fit into an idle socket's buffer. Written at once they cost one
 * system call and none of the watching that a write from the loop needs.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_HTTP_HTTP_SEND_H
#define ORCHARD_HTTP_HTTP_SEND_H

struct bufferevent;
struct evbuffer;

/* Empties message. A failed write is met again, and reported, by the loop. Calls nobody. */
void http_send(struct bufferevent *bev, struct evbuffer *message);

#endif
