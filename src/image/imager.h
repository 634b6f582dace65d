/*
 * imager.h - a child that looks after one image: fetches it where needed, and unpacks what is missing.
 *
 * Layouts, archives and what registries send may come from anybody. The imager has no network: what fetches images is
 * a program of its own without rights (puller.h). Each archive is unpacked by a child that is caged in one directory
 * and keeps only the rights to own files (unpack.h).
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_IMAGE_IMAGER_H
#define ORCHARD_IMAGE_IMAGER_H

#include "base/cleanup.h"
#include "base/err.h"
#include "image/image.h"

#include <stdbool.h>
#include <stdint.h>

struct config;

enum imager_kind { IMAGER_PROGRESS, IMAGER_DONE, IMAGER_FAILED };

/* What it says on its socket, one packet each; DONE or FAILED is the last. */
struct imager_word {
	enum imager_kind kind;
	char digest[IMAGE_DIGEST_SIZE];
	bool pulled; /* DONE, FAILED: a registry was asked to send layers */
	bool is_new; /* DONE: something was unpacked */
	bool stale; /* DONE: the registry does not answer; this is what the name stood for last time */
	struct err why; /* PROGRESS: msg only */
};

struct imager_order {
	const struct config *config;
	int images_fd;
	const char *text; /* the name as it was given */
	const struct image_name *name;
	const char *known; /* what the name stood for the last time; "" */
};

/* In the forked child; does not return. */
_Noreturn void imager_main(const struct imager_order *order, int fd);

#endif
