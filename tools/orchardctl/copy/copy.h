/*
 * copy.h - files and directories between here and a sandbox.
 *
 * Whatever is copied out is there whole or not at all. Into a sandbox that goes for each file; a directory whose copy breaks
 * off may have some of them.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARDCTL_COPY_COPY_H
#define ORCHARDCTL_COPY_COPY_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ctl;
struct err;
struct place;

struct copy {
	struct ctl *ctl; /* with a client, and signals caught */
	const char *sandbox;
	const char *user; /* in the sandbox; NULL: the image's */
	bool any_links; /* up: links that lead out of the directory are made, too */
	bool skip_unreadable; /* down: what may not be read is left out */
};

/* What is at a path in the sandbox. */
enum remote_kind { REMOTE_NOTHING, REMOTE_FILE, REMOTE_DIRECTORY };
struct remote {
	enum remote_kind kind;
	int64_t size; /* -1: not known before it is read */
	mode_t mode;
};
/* Fails when the sandbox, not the path, is what is missing. */
int remote_look(const struct copy *copy, const char *path, struct remote *ret_remote, struct err *err) MUSTCHECK;
/* About how many bytes a directory's tar has; -1: not known, or not soon. */
int64_t remote_sum(const struct copy *copy, const char *directory);
/* "/sandboxes/ID/WHAT?path=PATH", and the user; malloc'ed. */
char *remote_path(const struct copy *copy, const char *what, const char *path);

/* The error is for the user; a signal breaks off. */
int
upload_run(const struct copy *copy, const struct place *from, const struct place *to, struct err *err) MUSTCHECK;
int
download_run(const struct copy *copy, const struct place *from, const struct place *to, struct err *err) MUSTCHECK;

/* write(2) to a pipe or file that may block for ever, until a signal comes. 0, or -1 with errno (EINTR: the signal). */
int stream_write(const struct ctl *ctl, int fd, const void *data, size_t len) MUSTCHECK;
/* read(2) likewise. */
ssize_t stream_read(const struct ctl *ctl, int fd, void *buf, size_t size) MUSTCHECK;

#endif
