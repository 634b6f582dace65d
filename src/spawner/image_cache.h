/*
 * image_cache.h - which manifest an "oci:" name stands for, and the imagers that find out.
 *
 * What was found stands as long as the layout's index.json is the same file.
 * Otherwise an imager, a child for one image, looks again and unpacks what is not
 * there yet; requests for the same image wait for the same imager.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_IMAGE_CACHE_H
#define ORCHARD_SPAWNER_IMAGE_CACHE_H

#include "base/cleanup.h"
#include "spawner/image.h"

#include <stdbool.h>
#include <sys/types.h>

struct err;
struct event_base;
struct image_cache;
struct site;

struct image_cache_options {
	const struct site *site;
	void (*on_progress)(const char *image, const char *message, void *arg);
	/* why NULL: digest is the manifest. Never called before image_cache_fetch returns. */
	void (*on_ready)(const char *image, const char *digest, const struct err *why, void *arg);
	void *arg;
};
/* Also removes what interrupted imagers have left. */
int image_cache_create(struct event_base *base, const struct image_cache_options *options,
	struct image_cache **ret_cache, struct err *err) MUSTCHECK;
void image_cache_free(struct image_cache *cache);

bool image_cache_find(struct image_cache *cache, const char *image, char ret_digest[IMAGE_DIGEST_SIZE]);
void image_cache_fetch(struct image_cache *cache, const char *image);
/* A child was reaped; true when it was an imager. */
bool image_cache_reaped(struct image_cache *cache, pid_t pid);

#endif
