/* json_scan.h - the grammar of RFC 8259, checked to the letter without building anything. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_BASE_JSON_SCAN_H
#define ORCHARD_BASE_JSON_SCAN_H

#include "base/cleanup.h"

#include <stddef.h>

struct err;

/* Fails with ERR_INVALID and the offset; *ret_members counts the members of all objects. */
int json_scan_check(const char *text, size_t len, size_t *ret_members, struct err *err) MUSTCHECK;
/* The same pass, slower, that also fails at the first key an object has twice. */
int json_scan_find_duplicate(const char *text, size_t len, struct err *err) MUSTCHECK;

#endif
