/*
 * spawn_request.h - the serving side of spawn_msg.h: every length, string and number is checked before it is believed.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWN_REQUEST_H
#define ORCHARD_SPAWN_REQUEST_H

#include "base/cleanup.h"
#include "ipc/spawn_msg.h"

#include <stddef.h>
#include <stdint.h>

struct err;

/* What is asked, borrowed during the call; each answers by the seq of its head. */
typedef void spawn_plain_f(uint64_t peer, uint64_t seq, void *arg);
typedef void spawn_target_f(const struct spawn_target *target, uint64_t peer, void *arg);

struct spawn_server {
	void (*create)(const struct spawn_create *spec, const char *env, uint64_t peer, void *arg);
	spawn_target_f *destroy;
	spawn_target_f *stat; /* NULL: nobody may ask */
	spawn_plain_f *list, *host;
	spawn_plain_f *watch; /* seq: nobody waits for an answer */
	spawn_plain_f *resources; /* NULL: nobody may ask */
	void (*prefetch)(const struct spawn_prefetch *order, uint64_t peer, void *arg);
	/* A create that makes no sense: tell its peer. */
	void (*refuse)(uint64_t peer, uint64_t seq, const struct err *why, void *arg);
};

/* One packet of a peer. -1: it is none that a right-minded peer sends. */
int spawn_request_read(
	const struct spawn_server *server, uint64_t peer, const void *data, size_t len, void *arg) MUSTCHECK;
/* The largest packet that it takes. */
size_t spawn_request_max(void);

/* why NULL: fine. */
void spawn_reply_fill(struct spawn_reply *reply, enum spawn_op op, uint64_t seq, const struct err *why);

#endif
