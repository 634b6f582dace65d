/*
 * layer_frame.h - directories of an image that its upper layers only imply.
 *
 * A tar may have "tmp/file" without "tmp/". Unpacked by itself that is root's /tmp, and on top of other layers it would
 * cover owner and mode of theirs. The frame of an image is one more layer, on top: those directories, empty, as the
 * layers below have them, and the directories above them.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_IMAGE_LAYER_FRAME_H
#define ORCHARD_IMAGE_LAYER_FRAME_H

#include "base/cleanup.h"
#include "image/oci_blob.h"

#include <stddef.h>

struct err;
struct frame_dir;
struct oci_image;

struct layer_frame {
	struct frame_dir *dirs; /* parents first */
	size_t count; /* 0: the image needs none */
	struct oci_descriptor layer; /* named by what is in it, so images that need the same share it */
};

/* All layers of the image must be there, and stay. */
int
layer_frame_find(int images_fd, const struct oci_image *image, struct layer_frame *ret, struct err *err) MUSTCHECK;
void layer_frame_free(struct layer_frame *frame);
/* Into an empty directory. */
int layer_frame_write(const struct layer_frame *frame, int dir_fd, struct err *err) MUSTCHECK;

#endif
