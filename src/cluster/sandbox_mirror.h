/*
 * sandbox_mirror.h - what Redis says of sandboxes, put into the shared table.
 *
 * Any process may apply what it has read, in any order: an older version never replaces a newer one. A
 * sandbox of this server is judged here, so only what a client may change anywhere is taken over for it; of another replica's
 * sandbox everything is.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CLUSTER_SANDBOX_MIRROR_H
#define ORCHARD_CLUSTER_SANDBOX_MIRROR_H

#include "base/cleanup.h"
#include "ipc/sandbox_table.h"

#include <stdbool.h>
#include <stdint.h>

struct shared_sandbox;

struct sandbox_mirror {
	struct shm_sandboxes *table;
	const char *replica, *host; /* this one */
	/* Sandboxes outlive their server: what Redis has as ours is ours, and another's becomes ours when that is gone. */
	bool adopts;
	bool takes_deleting; /* whoever adopts must know of these, too */
};

enum mirror_outcome {
	MIRROR_SAME, /* nothing is new */
	MIRROR_MADE,
	MIRROR_CHANGED,
	MIRROR_FAILED, /* another replica's: it has just failed */
	MIRROR_ENDS, /* another replica's: it is being deleted from now on */
	MIRROR_UNWANTED, /* ours, and somebody deleted it: it is still as it was */
	MIRROR_UNKNOWN, /* ours, it says, but there is no such thing here; not where they are adopted */
	MIRROR_IN_PLACE, /* an older life of the id is in its place: forget that first */
	MIRROR_NO_ROOM, /* the table is full */
	MIRROR_GONE /* another replica's: it is not in the table any more (sandbox_mirror_forget) */
};

struct mirror_place {
	uint32_t slot;
	struct sandbox_record record; /* as it is now; of the older life for MIRROR_IN_PLACE */
};

/* place is set for all but MIRROR_SAME, MIRROR_UNKNOWN and MIRROR_NO_ROOM. */
enum mirror_outcome sandbox_mirror_apply(const struct sandbox_mirror *mirror, const struct shared_sandbox *theirs,
	struct mirror_place *ret_place) MUSTCHECK;
/*
 * Redis has no record of that life of another replica's sandbox. True when it was in the table and no longer is, in
 * which case ret_place says what it was.
 */
bool sandbox_mirror_forget(const struct sandbox_mirror *mirror, const char *id, const char *uid,
	struct mirror_place *ret_place) MUSTCHECK;
/* This server is its home now, and nobody here its owner. True: the table has it so. */
bool sandbox_mirror_adopt(const struct sandbox_mirror *mirror, const struct shared_sandbox *theirs,
	struct mirror_place *ret_place) MUSTCHECK;
/* It was used elsewhere; ages of the boot clock. False: not in the table, or nothing new. */
bool sandbox_mirror_sign(
	const struct sandbox_mirror *mirror, const struct sandbox_record *sign, uint32_t *ret_slot) MUSTCHECK;

#endif
