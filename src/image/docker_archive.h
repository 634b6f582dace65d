/* docker_archive.h - what "docker save" has written, unpacked: which image is meant, and what it is made of. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_IMAGE_DOCKER_ARCHIVE_H
#define ORCHARD_IMAGE_DOCKER_ARCHIVE_H

#include "base/cleanup.h"

struct err;
struct oci_image;

/*
 * archive_fd: the archive's files, as strangers made them. blobs_fd: a directory of the caller's own, where each layer
 * is linked under its digest. name: one of the archive's names, "" : the only image there is. *ret_image is to be freed
 * also when it fails. A layer that is not compressed is verified by the configuration's digests later, when it is read.
 */
int docker_archive_find(
	int archive_fd, int blobs_fd, const char *name, struct oci_image *ret_image, struct err *err) MUSTCHECK;

#endif
