/*
 * guard.h - the files that a patch may touch, as they were, until it is known how it ended.
 *
 * Both tools replace a file and never write into it, so a second link to it is the whole of it: content, owner, mode
 * and times, without any room on the disk. Where no link may be made it is a copy. Links lie in a private directory
 * of the working directory, or, where that is another filesystem or not writable, beside the file.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_PATCH_GUARD_H
#define ORCHARD_AGENT_PATCH_GUARD_H

#include "base/cleanup.h"

#include <stddef.h>
#include <sys/stat.h>

struct patch_names;

struct guard_entry {
	const char *path; /* the names' */
	char *keep; /* the link or copy; NULL: none */
	struct stat before; /* st_nlink 0: it was not there */
	mode_t parent_mode; /* of the directory it is in */
	size_t base_len; /* of a missing one: that much of its path was there */
};

struct guard {
	char *dir; /* absolute; NULL: none could be made */
	char tag[17];
	struct guard_entry *list;
	size_t count;
};

/* 0, or -1 with errno, and nothing has changed. names must live as long. */
int guard_take(struct guard *guard, const struct patch_names *names) MUSTCHECK;
/*
 * A name that is still missing because its directories cannot be made, with errno; NULL: none. git leaves such a file
 * out and says that all is well.
 */
const char *guard_find_left_out(const struct guard *guard);
/*
 * One of the files that git says it has changed (targets, exact), which is a directory, or was one and is gone: git
 * takes it for a submodule, does nothing to it and says that all is well. NULL: none.
 */
const char *guard_find_directory(const struct guard *guard, const struct patch_names *targets);
/* The patch is applied: what was kept goes. */
void guard_release(struct guard *guard);
/* It is not: everything is as it was. How many files could not be put back; each of them is told on stderr. */
size_t guard_roll_back(struct guard *guard);

#endif
