/*
 * names.h - which files a patch may touch, read from its headers.
 *
 * A superset: a line of a hunk that looks like a header only adds a name. So nothing is decided by it but what
 * is kept to be put back.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_PATCH_NAMES_H
#define ORCHARD_AGENT_PATCH_NAMES_H

#include <stddef.h>

struct patch_names {
	char **list; /* relative paths, sorted, each once, without their first component */
	size_t count, size;
};

void patch_names_read(const char *text, size_t len, struct patch_names *ret_names);
/* Exact: the files that git says it has changed, from what its --numstat -z wrote. */
void patch_names_read_numstat(const char *text, size_t len, struct patch_names *ret_names);
void patch_names_fini(struct patch_names *names);

#endif
