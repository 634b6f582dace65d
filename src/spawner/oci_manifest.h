/* oci_manifest.h - what one manifest says: its layers, and the settings in its configuration. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_OCI_MANIFEST_H
#define ORCHARD_SPAWNER_OCI_MANIFEST_H

#include "base/cleanup.h"

struct err;
struct json_object;
struct oci_image;

/* Fills layers and config, which belong to *image also when it fails. */
int
oci_manifest_read(int layout_fd, struct json_object *manifest, struct oci_image *image, struct err *err) MUSTCHECK;
/* {"layers", "env", "user", "working_dir"}: what image.h reads; owned by the caller, NULL: *err says why. */
struct json_object *oci_image_summary(const struct oci_image *image, struct err *err) MUSTCHECK;

#endif
