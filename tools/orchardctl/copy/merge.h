/* merge.h - a complete tree moved into a directory that has something already. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARDCTL_COPY_MERGE_H
#define ORCHARDCTL_COPY_MERGE_H

#include "base/cleanup.h"

struct err;

/*
 * Moves all that is in from into to, both directories of one file system. Files and links replace what has their name;
 * directories are joined, and never through a link that lies in to. What can't be moved ends it.
 */
int merge_run(int from, int to, struct err *err) MUSTCHECK;

#endif
