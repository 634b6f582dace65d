/*
 * place.h - where an entry may go: below one directory, whatever its name says and whatever links are there.
 *
 * Names are checked as text, and then every way is walked by the kernel with RESOLVE_BENEATH, or, where that is
 * unknown, part by part without following a link.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_TAR_PLACE_H
#define ORCHARD_AGENT_TAR_PLACE_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <sys/types.h>

struct err;

struct place {
	int root_fd;
	const char *root; /* as it was asked for */
	bool any_link; /* links may lead out */
	char *parent; /* of the last entry; NULL: none yet */
	int parent_fd;
	gid_t parent_gid; /* what is made there gets it, when parent_sets_gid */
	bool parent_sets_gid;
};

void place_init(struct place *place, int root_fd, const char *root, bool any_link);
void place_fini(struct place *place);
/*
 * The name without `.` and double slashes, malloc'ed; "" is the root itself. NULL with ERR_DENIED: it is absolute,
 * or leads upwards.
 */
char *place_name(const char *name, struct err *err);
/*
 * The directory that name is in, made with its parents where missing; *ret_base is its last part. The descriptor is
 * the place's until the next call. -1 with errno.
 */
int place_open_parent(struct place *place, const char *name, const char **ret_base) MUSTCHECK;
/*
 * A link in that directory: 0, or -1 with ERR_DENIED: it leads out, or may do so once a name in it is a link itself.
 */
int place_check_link(const struct place *place, const char *target, struct err *err) MUSTCHECK;
/* A directory below the root, following links that stay there; -1 with errno, EXDEV: one does not. */
int place_open_dir(const struct place *place, const char *name) MUSTCHECK;

#endif
