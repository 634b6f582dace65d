/*
 * oci_layout.h - which image of an OCI layout is meant, and what it is made of.
 *
 * From the tag by index.json, and further indexes by platform, to one manifest,
 * its configuration and its layers. Everything but index.json is verified by digest.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_IMAGE_OCI_LAYOUT_H
#define ORCHARD_IMAGE_OCI_LAYOUT_H

#include "base/cleanup.h"
#include "image/oci_blob.h"

#include <stdbool.h>

struct err;
struct json_object;

enum { OCI_INDEX_DEPTH_MAX = 4 }; /* indexes within indexes */

struct oci_image {
	char digest[IMAGE_DIGEST_SIZE]; /* of the manifest */
	struct oci_descriptor *layers; /* lowest first, none twice */
	size_t layer_count;
	struct json_object *config; /* the "config" of the configuration, owned; NULL: none */
	bool is_known; /* its summary is written and its layers are there */
};

int oci_layout_open(const char *path, int *ret_fd, struct err *err) MUSTCHECK;
/* tag "": "latest", else the only one there is. */
int oci_image_find(int layout_fd, const char *tag, struct oci_image *ret_image, struct err *err) MUSTCHECK;
void oci_image_free(struct oci_image *image);
/* What an index has for this machine. *ret_is_index false: the object is none, but a manifest itself. */
int oci_index_pick(
	struct json_object *object, bool *ret_is_index, struct oci_descriptor *ret_at, struct err *err) MUSTCHECK;

/* What images call this machine's processor ("amd64", "arm64"...). */
const char *oci_this_architecture(void);

#endif
