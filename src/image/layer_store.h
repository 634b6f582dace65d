/*
 * layer_store.h - unpacked layers below images/, each made once and kept whole.
 *
 * layers/<digest> is a layer, whole and on disk: it is unpacked below tmp/ and renamed. sizes/<digest> says how much
 * space it takes. tmp/<digest>.lock is locked shared by whoever counts on the layer until a manifest that is on disk
 * names it, and exclusively by whoever makes or removes it. So nobody works twice, and nothing goes that is counted on.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_IMAGE_LAYER_STORE_H
#define ORCHARD_IMAGE_LAYER_STORE_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stdint.h>

struct err;
struct layer_frame;
struct oci_descriptor;

/* Opens the lock of a digest (also of a manifest's) without taking it; closing it gives it back. */
int layer_lock_open(int images_fd, const char *digest, int *ret_fd, struct err *err) MUSTCHECK;
/*
 * Waits until the layer is there (*ret_there, locked shared) or is the caller's to make (locked exclusively). Who holds
 * shared locks may call it: those who hold exclusive ones never wait.
 */
int layer_lock_take(
	int images_fd, const struct oci_descriptor *layer, int lock, bool *ret_there, struct err *err) MUSTCHECK;
bool layer_is_there(int images_fd, const char *digest);
/*
 * Unpacks a blob of a layout. The lock must be held exclusively; take it again afterwards to keep the layer.
 * *bytes_left is what may still be written, and less afterwards.
 */
int layer_store_make(int images_fd, int layout_fd, const struct oci_descriptor *layer, int64_t *bytes_left,
	struct err *err) MUSTCHECK;
/* The same for the layer that is an image's frame. */
int layer_store_make_frame(int images_fd, const struct layer_frame *frame, struct err *err) MUSTCHECK;
/* Space that a layer takes; 0 when nobody has noted it. */
int64_t layer_store_bytes(int images_fd, const char *digest);

#endif
