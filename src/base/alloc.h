/*
 * alloc.h - memory that is there, or the process is not.
 *
 * For sizes that are bounded by their callers only: a process that finds no memory for its own records can't
 * keep its promises, so it ends and is replaced. What clients make large is bounded by settings and checked.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_BASE_ALLOC_H
#define ORCHARD_BASE_ALLOC_H

#include <stddef.h>

void *alloc_bytes(size_t size);
void *alloc_zero(size_t count, size_t size);
void *alloc_resize(void *memory, size_t size);
char *alloc_string(const char *text);
char *alloc_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
