/*
 * image_sweep.h - what goes when the unpacked images take more space than they may.
 *
 * Layers that no manifest names go first, then the images that were not used for longest, with the layers that no other
 * image has; never an image in use, and never a layer that somebody counts on (layer_store.h). First all that goes is
 * renamed away, which is quick, and only then deleted.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_IMAGE_IMAGE_SWEEP_H
#define ORCHARD_IMAGE_IMAGE_SWEEP_H

#include "base/cleanup.h"
#include "image/image.h"

#include <stdbool.h>
#include <stdint.h>

struct image_sweep_order {
	int images_fd;
	int64_t budget; /* bytes */
	char (*used)[IMAGE_DIGEST_SIZE]; /* manifests in use */
	size_t used_count;
	bool all_used; /* some sandbox does not know its image: none goes, only layers that belong to no image */
};

struct image_sweep_result {
	int64_t bytes, layers; /* that are there afterwards */
	int64_t freed; /* bytes */
};

/* decided is called between the two parts. What can't be removed stays and is logged. */
void image_sweep(const struct image_sweep_order *order, void (*decided)(void *arg), void *arg,
	struct image_sweep_result *ret_result);

#endif
