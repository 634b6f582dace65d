/*
 * cell.h - values as people read them.
 *
 * What comes from a sandbox may hold anything, so control characters are shown as \n, \t, \x1b and never reach the
 * terminal. All strings returned are malloc'ed.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARDCTL_OUTPUT_CELL_H
#define ORCHARDCTL_OUTPUT_CELL_H

#include <stddef.h>

char *cell_line(const char *text); /* one line */
char *cell_lines(const char *text); /* line ends and tabs stay */
char *cell_duration(double seconds); /* "0.25s" "42s" "3m12s" "5h7m" "2d3h" */
char *cell_bytes(double bytes); /* "512" "1.5Ki" "20Gi" */
/* Characters it takes on the terminal, each as wide as one. */
size_t cell_width(const char *text);

#endif
