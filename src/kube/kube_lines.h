/* kube_lines.h - lines out of a stream that is cut anywhere. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_KUBE_KUBE_LINES_H
#define ORCHARD_KUBE_KUBE_LINES_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>

struct err;

/* Zero it and set max. */
struct kube_lines {
	size_t max; /* bytes of one line */
	char *data; /* the beginning of a line */
	size_t len, room;
};

/* A line without its end; not NUL-ended. False: no more of them. */
typedef bool kube_line_f(void *arg, const char *line, size_t len);

/* Empty lines are left out. ERR_TOO_LARGE: a line is longer than max. */
int kube_lines_feed(struct kube_lines *lines, const char *data, size_t len, kube_line_f *fn, void *arg,
	struct err *err) MUSTCHECK;
/* Forgets the beginning of a line; true: there was one. */
bool kube_lines_clear(struct kube_lines *lines);

#endif
