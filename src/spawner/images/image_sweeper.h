/* image_sweeper.h - the child that keeps images/ within its budget: one at a time, started when somebody asks. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_IMAGE_SWEEPER_H
#define ORCHARD_SPAWNER_IMAGE_SWEEPER_H

#include "base/cleanup.h"
#include "image/image_sweep.h"

#include <sys/types.h>

struct event_base;
struct image_sweeper;
struct site;

struct image_sweeper_options {
	const struct site *site;
	/* Fills in which images are in use; asked when a sweep begins. */
	void (*list_used)(struct image_sweep_order *order, void *arg);
	/* It is decided what goes; what is there now stays. */
	void (*decided)(void *arg);
	/* result NULL: the child has died. */
	void (*done)(const struct image_sweep_result *result, void *arg);
	void *arg;
};

struct image_sweeper *image_sweeper_create(struct event_base *base, const struct image_sweeper_options *options);
void image_sweeper_free(struct image_sweeper *sweeper);
/* A sweep down to budget bytes, after the one that is under way. */
void image_sweeper_ask(struct image_sweeper *sweeper, int64_t budget);
/* Whether one more sweep is to come. */
bool image_sweeper_is_asked(const struct image_sweeper *sweeper);
/* While this is true, an image that is not in use may vanish. */
bool image_sweeper_decides(const struct image_sweeper *sweeper);

/* Adds a manifest to those in use. */
void image_sweep_use(struct image_sweep_order *order, const char *digest);

#endif
