/*
 * image_name.h - what an image is called, and what kind of thing that name means.
 *
 * dir:/path                       a directory, used as it is
 * oci:/path[:tag]                 an OCI layout
 * oci-archive:/file[:tag]         one in a tar
 * docker-archive:/file[:name:tag] what "docker save" writes
 * docker://host/path:tag          in a registry; or docker://host/path@sha256:hex
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_IMAGE_IMAGE_NAME_H
#define ORCHARD_IMAGE_IMAGE_NAME_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <sys/stat.h>

struct err;

enum { IMAGE_NAME_SIZE = 512 };

enum image_form { IMAGE_DIR, IMAGE_OCI, IMAGE_OCI_ARCHIVE, IMAGE_DOCKER_ARCHIVE, IMAGE_REGISTRY };

struct image_name {
	enum image_form form;
	char path[IMAGE_NAME_SIZE]; /* IMAGE_REGISTRY: the reference, host/path:tag */
	char tag[IMAGE_NAME_SIZE]; /* "" : the only one, or "latest" */
	bool fixed; /* IMAGE_REGISTRY: a digest; it can't come to mean something else */
};

int image_name_parse(const char *text, struct image_name *ret_name, struct err *err) MUSTCHECK;
/* For people: "python:3.11-slim" for docker://docker.io/library/python:3.11-slim, others as they are. */
const char *image_name_short(const char *text);

/* Looks at the file by whose change one knows that the name may mean another image. Not for registries. */
bool image_name_stat(const struct image_name *name, struct stat *ret_st);
bool image_same_file(const struct stat *a, const struct stat *b);

#endif
