/* image_reference.h - names of images in registries: what "python:3.11-slim" stands for, and whether it may be had. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_BACKEND_IMAGE_REFERENCE_H
#define ORCHARD_BACKEND_IMAGE_REFERENCE_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>

struct config;
struct err;

enum { IMAGE_REFERENCE_SIZE = 448 };

/*
 * To "docker://registry/path:tag" or "docker://registry/path@sha256:hex", with the default registry, "library/" and
 * "latest" where they are meant; a digest wins over a tag. trusted: the operator's own words, any registry will do.
 * ERR_INVALID: it is no reference. ERR_DENIED: image_registries does not list it.
 */
int image_reference_resolve(const struct config *config, const char *image, bool trusted, char *ret_image,
	size_t size, struct err *err) MUSTCHECK;
/* As it was written, when it is a reference that may be had: the nodes of a cluster know what a short one stands for. */
int image_reference_for_nodes(const struct config *config, const char *image, bool trusted, char *ret_image,
	size_t size, struct err *err) MUSTCHECK;
bool image_tag_is_valid(const char *tag);

#endif
