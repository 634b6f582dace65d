/* oci_manifest.h - what one manifest says: its layers, and the settings in its configuration. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_IMAGE_OCI_MANIFEST_H
#define ORCHARD_IMAGE_OCI_MANIFEST_H

#include "base/cleanup.h"

struct err;
struct json_object;
struct oci_descriptor;
struct oci_image;

/* Fills layers, which belong to *image also when it fails. */
int oci_manifest_layers(struct json_object *manifest, struct oci_image *image, struct err *err) MUSTCHECK;
/* Puts a layer on top; there must be room for it. One that lies below already moves up. */
void oci_image_add_layer(struct oci_image *image, const struct oci_descriptor *layer);
/* The blob of its configuration. */
int oci_manifest_config(struct json_object *manifest, struct oci_descriptor *ret_blob, struct err *err) MUSTCHECK;
/* Takes from a configuration what counts; ERR_UNSUPPORTED when it is of another platform. */
int oci_image_configure(struct oci_image *image, struct json_object *config, struct err *err) MUSTCHECK;
/* All of that from the blobs of a layout. */
int
oci_manifest_read(int layout_fd, struct json_object *manifest, struct oci_image *image, struct err *err) MUSTCHECK;
/* {"layers", "env", "user", "working_dir"}: what image.h reads; owned by the caller, NULL: *err says why. */
struct json_object *oci_image_summary(const struct oci_image *image, struct err *err) MUSTCHECK;

#endif
