/*
 * oci_blob.h - files of an OCI layout, read by root though others wrote them.
 *
 * A layout is a directory of files named by what they hold. Nothing in it may lead
 * out of it (no link, no "..") or make the reader wait (no fifo, no device), and
 * what a file says counts only when its sha256 is its name.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_IMAGE_OCI_BLOB_H
#define ORCHARD_IMAGE_OCI_BLOB_H

#include "base/cleanup.h"
#include "image/image.h"

#include <stdint.h>

struct err;
struct json_object;

enum { OCI_JSON_MAX = 4 << 20, OCI_NAME_SIZE = 96 };

struct oci_descriptor {
	char digest[IMAGE_DIGEST_SIZE]; /* the hex of a sha256 */
	int64_t size; /* -1: not said */
};

/* A plain file of the layout; ERR_NOT_FOUND when it is not there. */
int oci_file_open(int layout_fd, const char *path, int *ret_fd, struct err *err) MUSTCHECK;
/* All of such a file, at most OCI_JSON_MAX bytes; *ret_text is malloc'ed. */
int oci_file_text(int layout_fd, const char *path, char **ret_text, size_t *ret_len, struct err *err) MUSTCHECK;
/* A JSON file of at most OCI_JSON_MAX bytes; always an object. */
int oci_file_json(int layout_fd, const char *path, struct json_object **ret_object, struct err *err) MUSTCHECK;

/* Reads "digest" and "size" of a descriptor object. */
int oci_descriptor_read(struct json_object *object, struct oci_descriptor *ret, struct err *err) MUSTCHECK;
/* The file of a blob, its size checked, its content not yet. */
int oci_blob_open(int layout_fd, const struct oci_descriptor *blob, int *ret_fd, struct err *err) MUSTCHECK;
int oci_blob_json(int layout_fd, const struct oci_descriptor *blob, struct json_object **ret_object,
	struct err *err) MUSTCHECK;
int oci_blob_corrupt(const struct oci_descriptor *blob, struct err *err);

/* The string a JSON object holds under that name; "" when it has none. */
const char *oci_string(struct json_object *object, const char *name);
/* Text of strangers as it may stand in a message: printable ASCII, cut to the buffer. */
const char *oci_printable(const char *text, char *buf, size_t size);

#endif
