/*
 * unpack.h - a tar stream into an empty directory here. The stream comes from a sandbox, so nothing in it is trusted: no name
 * leads out of the directory, no link is followed, no owner, no set-id bit and no device is taken over.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARDCTL_COPY_UNPACK_H
#define ORCHARDCTL_COPY_UNPACK_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct err;

struct unpack {
	/* The next bytes of the stream, at least one; 0 at its end, -1 after a failure that the caller knows. */
	ssize_t (*read)(const void **ret_data, void *arg);
	void *arg;
	mode_t mode; /* out: of the directory itself, 0 when the stream does not tell */
	unsigned skipped; /* out: devices, fifos and sockets that were left out */
};

/* dirfd: an empty directory, which holds halves after a failure. The working directory changes meanwhile. */
int unpack_run(struct unpack *unpack, int dirfd, struct err *err) MUSTCHECK;
/* Whether a name or a target of a hard link stays inside. Pure. */
bool unpack_is_inside(const char *name);

#endif
