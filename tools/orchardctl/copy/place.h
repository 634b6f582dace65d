/* place.h - the two ends of a copy: SANDBOX:PATH, a path here, or "-". Pure. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARDCTL_COPY_PLACE_H
#define ORCHARDCTL_COPY_PLACE_H

#include <stdbool.h>

struct place {
	char *sandbox; /* owned; NULL: here */
	const char *path; /* of what was given; in a sandbox never empty: "." is its directory */
	bool stream; /* "-": stdin or stdout */
};

/*
 * What stands before the first colon is a sandbox if it could be one; "./a:b" and "/a:b" are paths here.
 * The text is borrowed.
 */
void place_read(struct place *place, const char *text);
void place_fini(struct place *place);

/* The name that something has in the directory it is copied into; malloc'ed, NULL: it has none ("/", "..", "."). */
char *place_name(const char *path);
/* DIRECTORY/NAME with one slash; malloc'ed. */
char *place_join(const char *directory, const char *name);
bool place_is_contents(const char *path); /* "DIR/.": not the directory, but what is in it */
bool place_wants_directory(const char *path); /* ends with a slash */

#endif
