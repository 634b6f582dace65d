/* links.h - links of a directory that the server will not take, found before the first byte is sent. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARDCTL_COPY_LINKS_H
#define ORCHARDCTL_COPY_LINKS_H

#include "base/cleanup.h"

struct err;

/*
 * to: the path in the sandbox. Refuses what is sure to lead out of it, or has a ".." behind a name; where only the
 * server can tell, it does.
 */
int links_check(const char *directory, const char *to, struct err *err) MUSTCHECK;

#endif
