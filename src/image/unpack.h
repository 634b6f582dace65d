/*
 * unpack.h - one layer: a tar, perhaps compressed, becomes a directory for overlayfs.
 *
 * Two processes share the work. The caller reads the blob, computes its sha256 and
 * passes the bytes on through a pipe; a child, caged in the layer's directory, makes
 * files of them (unpack_cage.h). So whoever takes over the parser can neither reach
 * other files nor give a layer a digest it does not have.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_IMAGE_UNPACK_H
#define ORCHARD_IMAGE_UNPACK_H

#include "base/cleanup.h"
#include "base/err.h"

#include <limits.h>
#include <stdint.h>

struct oci_descriptor;

struct unpack_limit {
	int64_t bytes_max; /* that may be written; more is ERR_TOO_LARGE */
	int64_t bytes; /* that were, roughly */
};

/*
 * dir_fd: an empty directory. When it fails, what is in there is worth nothing. blob NULL: any tar, whatever its digest.
 */
int unpack_layer(int blob_fd, const struct oci_descriptor *blob, int dir_fd, struct unpack_limit *limit,
	struct err *err) MUSTCHECK;

/*
 * An attribute of directories that are in the layer only because something below them is; its top has it when there are
 * any. Overlayfs keeps the names of this family to itself.
 */
#define UNPACK_IMPLIED_XATTR "trusted.overlay.orchard_implied"

enum unpack_kind { UNPACK_OPAQUE, UNPACK_IMPLIED, UNPACK_DONE, UNPACK_FAILED };

/* What the child says on its socket, one packet each; DONE or FAILED is the last. */
struct unpack_word {
	enum unpack_kind kind;
	struct err why;
	int64_t bytes; /* DONE */
	char path
		[PATH_MAX]; /* OPAQUE: a directory that hides what lies below it; IMPLIED: one that only has members */
};

/* In the child: unpacks what pipe_fd brings into the directory layer_fd, and says how it went. */
void unpack_tar(int pipe_fd, int layer_fd, int64_t bytes_max, int report_fd);

#endif
