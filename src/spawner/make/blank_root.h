/*
 * blank_root.h - a root filesystem that is made ahead: of the image that the next create most likely asks for.
 *
 * It fits a sandbox of the very same layers, by what lies there and not by name. One that does not fit is thrown
 * away, and costs the create nothing that it would have saved.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_BLANK_ROOT_H
#define ORCHARD_SPAWNER_BLANK_ROOT_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>

struct blank_order;
struct err;
struct image;
struct layer_id;
struct site;

struct blank_root {
	bool made; /* so is its directory, which has the blank's name */
	struct layer_id *layers;
	size_t layer_count;
};

/* order->image, seen through userns. *ret_mount hangs nowhere yet. On failure nothing is left. */
int blank_root_make(const struct site *site, const struct blank_order *order, int userns,
	struct blank_root *ret_root, int *ret_mount, struct err *err) MUSTCHECK;
bool blank_root_fits(const struct blank_root *root, const struct image *image);
/* Its directory, too, if it still has one. */
void blank_root_discard(const struct site *site, const char *name, struct blank_root *root);
/* What of it is only here. */
void blank_root_free(struct blank_root *root);

#endif
