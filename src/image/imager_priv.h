/* imager_priv.h - what the parts of an imager share. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_IMAGE_IMAGER_PRIV_H
#define ORCHARD_IMAGE_IMAGER_PRIV_H

#include "image/imager.h"
#include "image/oci_layout.h"
#include "image/puller.h"

struct imager {
	const struct imager_order *order;
	int images_fd; /* the order's */
	int layout_fd; /* where the blobs of missing layers are; -1 */
	int work_fd; /* tmp/work-...: this image's own directory, made when needed; -1 */
	int fd; /* its socket */
	int64_t bytes_left; /* that the image may still take */
	struct oci_image image;
	int *locks; /* one per layer: shared once it is there; -1 */
	int turn_fd; /* held while the image is fetched and unpacked; -1 */
	struct puller puller;
	struct imager_word word;
};

void imager_tell(struct imager *im, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* An empty directory for this image alone, gone with the imager. */
int imager_open_work(struct imager *im, struct err *err) MUSTCHECK;
/* Keeps those layers that are there from being removed; *ret_missing: how many are not. */
int imager_hold_layers(struct imager *im, size_t *ret_missing, struct err *err) MUSTCHECK;
bool imager_holds(const struct imager *im, size_t number);

/* imager_archive.c: opens the archive as a layout, and finds the image in it. */
int imager_open_archive(struct imager *im, struct err *err) MUSTCHECK;
/* imager_registry.c: finds the image, holds what is there and fetches the rest into a layout. */
int imager_pull(struct imager *im, struct err *err) MUSTCHECK;

#endif
