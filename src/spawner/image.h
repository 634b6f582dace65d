/*
 * image.h - images on this host: what one is called, and where its layers lie.
 *
 * "dir:/path" is one layer, that directory. "oci:/path[:tag]" was unpacked by an
 * imager into images/layers/<digest>, and images/manifests/<digest>.json says
 * what belongs together. Everything here reads only what the spawner itself wrote.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_IMAGE_H
#define ORCHARD_SPAWNER_IMAGE_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>

struct err;
struct json_object;

enum { IMAGE_DIGEST_SIZE = 65, IMAGE_PATH_SIZE = 512, IMAGE_TAG_SIZE = 129 };

enum image_form { IMAGE_DIR, IMAGE_OCI };

struct image_name {
	enum image_form form;
	char path[IMAGE_PATH_SIZE];
	char tag[IMAGE_TAG_SIZE]; /* "" : the only one, or "latest" */
};

int image_name_parse(const char *text, struct image_name *ret_name, struct err *err) MUSTCHECK;

struct image {
	int *layers; /* directories, top first */
	size_t layer_count;
	struct json_object *env; /* array of "NAME=value"; owned */
	char *user, *working_dir;
};

/* digest: which manifest an "oci:" name stands for (hex); ignored for "dir:". */
int image_open(int images_fd, const struct image_name *name, const char *digest, struct image *ret_image,
	struct err *err) MUSTCHECK;
void image_close(struct image *image);

#endif
