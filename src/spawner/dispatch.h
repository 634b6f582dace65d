/*
 * dispatch.h - the life of every sandbox on this host, as requests and deaths drive it.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_DISPATCH_H
#define ORCHARD_SPAWNER_DISPATCH_H

#include "base/cleanup.h"
#include "ipc/scoreboard.h"
#include "ipc/spawn_msg.h"
#include "spawner/box.h"
#include "spawner/early.h"
#include "spawner/net_keeper.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct config;
struct destroyed;
struct err;
struct event_base;
struct image_cache;
struct image_sweep_order;
struct peers;
struct pool;
struct site;

/* "": none. */
struct blanks_image {
	char image[sizeof((struct spawn_create *)NULL)->image];
	char digest[IMAGE_DIGEST_SIZE];
};

struct dispatch {
	struct event_base *base;
	const struct config *config;
	struct site *site;
	struct boxes *boxes;
	struct destroyed *destroyed;
	struct pool *pool; /* makes and removes */
	struct pool *janitor; /* empties the trash */
	struct image_cache *images;
	struct net_keeper net;
	struct peers *peers;
	bool usable;
	char problem[512];
	uint32_t creating;
	int64_t blanks_rest_until; /* clock_boot_us() */
	unsigned blanks_failed; /* in a row */
	struct blanks_image asked_image, blanks_image; /* of the last create; of the next, as far as one can know */
	struct shm_scoreboard *board; /* NULL: nothing is counted */
	struct proc_ref self;
	struct early_deaths early;
};

/* dispatch.c: what happens to a box. */
void dispatch_create(struct dispatch *d, struct make_order *order, uint64_t peer, uint64_t seq);
void dispatch_destroy(struct dispatch *d, const char *id, const char *uid, uint64_t peer, uint64_t seq);
/* Removes one that nobody asked for (left by an earlier spawner). */
void dispatch_remove(struct dispatch *d, struct box *box);
/* The process of that pid and start time has ended: a child (status as of waitpid), or an adopted one (-1). */
void dispatch_ended(struct dispatch *d, pid_t pid, uint64_t pid_start, int status);
/* What those in line are told; for pool_create(). */
void dispatch_tell_place(void *box, uint32_t place, void *arg);
void dispatch_image_progress(const char *image, const char *message, void *arg);
void dispatch_image_ready(const char *image, const char *digest, const struct err *why, void *arg);
void dispatch_disk_measured(const char *uid, int64_t bytes, void *arg);
void dispatch_list_images(struct image_sweep_order *order, void *arg);
void dispatch_reply(struct dispatch *d, uint64_t peer, uint64_t seq, const struct err *why);

/* request.c: a packet of a peer; calls the above. arg: the dispatch. */
int request_on_message(uint64_t peer, const void *data, size_t len, void *arg);

/* adopt.c: finds what an earlier spawner has left: goes on with the living, removes the rest. */
int adopt_sandboxes(struct dispatch *d, struct err *err) MUSTCHECK;
/* Directories and control groups of no sandbox go, and what the trash still holds. */
void adopt_sweep(struct dispatch *d);

#endif
