/*
 * image_cache.h - which manifest a name stands for, and the imagers that find out.
 *
 * What was found for a file stands as long as that is the same file (of a layout: its index.json), what was found for
 * a tag of a registry for image_refresh_seconds, and for a digest for ever. Otherwise an imager, a child for one
 * image, looks again and fetches and unpacks what is not there yet; requests for the same image wait for the same imager.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_IMAGE_CACHE_H
#define ORCHARD_SPAWNER_IMAGE_CACHE_H

#include "base/cleanup.h"
#include "ipc/scoreboard.h"
#include "image/image.h"

#include <stdbool.h>
#include <sys/types.h>

struct err;
struct event_base;
struct image_cache;
struct image_sweep_order;
struct shm_scoreboard;
struct site;

struct image_cache_options {
	const struct site *site;
	void (*on_progress)(const char *image, const char *message, void *arg);
	/* why NULL: digest is the manifest. Never called before image_cache_fetch returns. */
	void (*on_ready)(const char *image, const char *digest, const struct err *why, void *arg);
	/* Adds the manifests of all sandboxes to those in use. */
	void (*list_used)(struct image_sweep_order *order, void *arg);
	void *arg;
	struct shm_scoreboard *board; /* what is counted; NULL: nothing is */
	struct proc_ref self;
};
/* Also removes what interrupted imagers have left. */
int image_cache_create(struct event_base *base, const struct image_cache_options *options,
	struct image_cache **ret_cache, struct err *err) MUSTCHECK;
void image_cache_free(struct image_cache *cache);

/* A sandbox is gone: if images take more than they may, its own may go now. */
void image_cache_trim(struct image_cache *cache);
/* *ret_digest is not removed before the loop goes on; be in list_used by then. */
bool image_cache_find(struct image_cache *cache, const char *image, char ret_digest[IMAGE_DIGEST_SIZE]);
void image_cache_fetch(struct image_cache *cache, const char *image);
/* Fetches it if need be and keeps it, whether it is used or not; a failure is only logged. */
void image_cache_pin(struct image_cache *cache, const char *image);
/* A new list of pins begins; what it does not name is kept no longer than until the next one begins. */
void image_cache_begin_pins(struct image_cache *cache);
/* A child was reaped; true when it was an imager. */
bool image_cache_reaped(struct image_cache *cache, pid_t pid);

#endif
