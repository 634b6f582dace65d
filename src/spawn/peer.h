/*
 * peer.h - the connections of those who may ask, and the messages on them.
 *
 * A peer is named by a number that is never used again, so an answer to one that
 * has left goes nowhere. What a peer does not read is queued up to a bound; one
 * that stops reading is dropped.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWN_PEER_H
#define ORCHARD_SPAWN_PEER_H

#include "base/cleanup.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct event_base;
struct peers;

/* One packet. Returns -1 when it is none that a right-minded peer sends: it is dropped then. */
typedef int peer_message_f(uint64_t peer, const void *data, size_t len, void *arg);

struct peers_options {
	int listen_fd; /* not closed */
	uid_t user; /* who may connect, besides root */
	size_t message_max;
	peer_message_f *on_message;
	void *arg;
};
int peers_create(struct event_base *base, const struct peers_options *options, struct peers **ret_peers,
	struct err *err) MUSTCHECK;
void peers_free(struct peers *peers);

void peers_send(struct peers *peers, uint64_t peer, const void *data, size_t len);
/* That peer gets what peers_broadcast sends. */
void peers_watch(struct peers *peers, uint64_t peer);
void peers_broadcast(struct peers *peers, const void *data, size_t len);

#endif
