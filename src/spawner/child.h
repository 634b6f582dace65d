/* child.h - what every process the spawner forks does first. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_CHILD_H
#define ORCHARD_SPAWNER_CHILD_H

#include "base/cleanup.h"

#include <stddef.h>
#include <sys/types.h>

struct err;
struct site;

/*
 * Forks from inside the event loop. In the child (returns 0) signals are as at
 * exec, it dies with the spawner, and of all descriptors only 0-2, the site's and
 * `keep` are open, so that nobody waits for an end of file that it would hold back.
 */
pid_t child_fork(const struct site *site, int keep, struct err *err) MUSTCHECK;

/* Closes every descriptor but 0-2 and these; sorts them. Negative ones are none. */
void child_keep_only(int *kept, size_t count);

#endif
