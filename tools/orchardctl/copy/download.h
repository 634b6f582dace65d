/* download.h - what download.c and download_tree.c say to each other. Private to copy/. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARDCTL_COPY_DOWNLOAD_H
#define ORCHARDCTL_COPY_DOWNLOAD_H

#include "base/cleanup.h"

struct copy;
struct err;

/* The path in the sandbox of a directory, with the wishes of the copy; malloc'ed. */
char *download_archive_path(const struct copy *copy, const char *from);
/* A directory into this one, which may be there. */
int download_tree(const struct copy *copy, const char *from, const char *to, struct err *err) MUSTCHECK;

#endif
