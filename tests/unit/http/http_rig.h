/*
 * http_rig.h - a server and raw clients in one event loop, on an abstract unix socket or loopback.
 *
 * The handlers: /now answers at once, /body collects at most 64 bytes and echoes
 * them, /wait keeps the exchange for the test, /up counts a streamed body,
 * /hold takes nothing of its body until resumed, /down?n streams n bytes,
 * /echo streams both ways, /other is on_other's.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_TESTS_HTTP_RIG_H
#define ORCHARD_TESTS_HTTP_RIG_H

#include "http/http_server.h"

#include <stdio.h>

struct rig {
	struct event_base *base;
	struct http_server *server;
	struct http_server_options options;
	int listen_fd;
	bool tcp;
	struct http_exchange *exchange; /* of /wait, /hold and /down */
	int gone;
	int requests;
	int opened;
	size_t up_bytes; /* of /up and /hold */
	size_t down_left;
	bool patient; /* /down may be read slowly */
	size_t down_queued; /* the most that was queued */
	int collected;
	bool take; /* /hold takes its body */
	void (*on_other)(struct http_exchange *exchange, void *arg); /* /other */
	char reply[1 << 20]; /* what rig_read got */
	size_t reply_len;
};

void rig_start(struct rig *rig);
void rig_stop(struct rig *rig);
/* A connected, non-blocking client. */
int rig_connect(struct rig *rig);
/* Turns the loop until nothing is ready. */
void rig_spin(struct rig *rig);
void rig_send(struct rig *rig, int fd, const char *text);
/* Reads until `until` is in reply (NULL: until end of file); false after 5 s, or at the end of file without it. */
bool rig_read(struct rig *rig, int fd, const char *until);
/* One connection: sends text, reads to the end of file; returns the first status. */
int rig_once(struct rig *rig, const char *text);
/* Turns the loop until *counter is at least value, at most 5 s. */
bool rig_wait(struct rig *rig, const int *counter, int value);
int rig_count(const struct rig *rig, const char *needle); /* in reply */

#endif
