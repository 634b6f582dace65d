/*
 * image.h - images on this host: where the layers of one lie.
 *
 * "dir:/path" is one layer, that directory. Every other image was unpacked by an
 * imager into images/layers/<digest>, and images/manifests/<digest>.json says
 * what belongs together. Everything here reads only what the spawner itself wrote.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_IMAGE_IMAGE_H
#define ORCHARD_IMAGE_IMAGE_H

#include "base/cleanup.h"
#include "image/image_name.h"

#include <stddef.h>

struct err;
struct json_object;

enum { IMAGE_DIGEST_SIZE = 65, IMAGE_LAYERS_MAX = 400 };
#define IMAGE_UNKNOWN "?" /* in place of a digest */

struct image {
	int *layers; /* directories, top first */
	size_t layer_count;
	struct json_object *env; /* array of "NAME=value"; owned */
	char *user, *working_dir;
};

/* digest: which manifest the name stands for (hex), which is noted as used now; ignored for "dir:". */
int image_open(int images_fd, const struct image_name *name, const char *digest, struct image *ret_image,
	struct err *err) MUSTCHECK;
void image_close(struct image *image);

#endif
