/*
 * dispatch.h - the life of every sandbox on this host, as requests and deaths drive it.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_DISPATCH_H
#define ORCHARD_SPAWNER_DISPATCH_H

#include "base/cleanup.h"
#include "spawner/box.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct config;
struct err;
struct event_base;
struct image_cache;
struct peers;
struct pool;
struct site;

enum { EARLY_DEATHS = 64 };

struct dispatch {
	struct event_base *base;
	const struct config *config;
	struct site *site;
	struct boxes *boxes;
	struct pool *pool; /* makes and removes */
	struct pool *janitor; /* empties the trash */
	struct image_cache *images;
	struct peers *peers;
	bool usable;
	char problem[512];
	uint32_t creating;
	/* Children that ended before their helper had told of them. */
	struct {
		pid_t pid;
		int status;
	} early[EARLY_DEATHS];
	unsigned next_early;
};

/* dispatch.c: what happens to a box. */
void dispatch_create(struct dispatch *d, struct make_order *order, uint64_t peer, uint64_t seq);
void dispatch_destroy(struct dispatch *d, const char *id, const char *uid, uint64_t peer, uint64_t seq);
/* Removes one that nobody asked for (left by an earlier spawner). */
void dispatch_remove(struct dispatch *d, struct box *box);
/* A child ended (status as of waitpid), or an adopted one did (-1). */
void dispatch_ended(struct dispatch *d, pid_t pid, int status);
void dispatch_image_progress(const char *image, const char *message, void *arg);
void dispatch_image_ready(const char *image, const char *digest, const struct err *why, void *arg);
void dispatch_reply(struct dispatch *d, uint64_t peer, uint64_t seq, const struct err *why);

/* request.c: checks a packet and calls the above. arg: the dispatch. */
int request_on_message(uint64_t peer, const void *data, size_t len, void *arg);
/* The largest packet that request_on_message takes. */
size_t request_message_max(void);

/* adopt.c: finds what an earlier spawner has left: goes on with the living, removes the rest. */
int adopt_sandboxes(struct dispatch *d, struct err *err) MUSTCHECK;

#endif
