/*
 * imager.h - a child that reads one OCI image layout and unpacks what is missing.
 *
 * Layout and layers may come from anybody. It has no network; each layer is
 * unpacked by a child of its own that is caged in the layer's directory and
 * keeps only the rights to own files (unpack.h).
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_IMAGER_H
#define ORCHARD_SPAWNER_IMAGER_H

#include "base/cleanup.h"
#include "base/err.h"
#include "spawner/image.h"

enum imager_kind { IMAGER_PROGRESS, IMAGER_DONE, IMAGER_FAILED };

/* What it says on its socket, one packet each; DONE or FAILED is the last. */
struct imager_word {
	enum imager_kind kind;
	char digest[IMAGE_DIGEST_SIZE];
	struct err why; /* PROGRESS: msg only */
};

/* In the forked child; does not return. */
_Noreturn void imager_main(int images_fd, const struct image_name *name, int fd);

#endif
