/* json_write.h - a value as compact text. Private to json.c. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_BASE_JSON_WRITE_H
#define ORCHARD_BASE_JSON_WRITE_H

#include <stddef.h>

struct json_object;

/* malloc'ed, a NUL behind. */
char *json_write(struct json_object *value, size_t *ret_len);

#endif
