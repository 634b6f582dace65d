/* pod_read.h - members of JSON that anybody may have written: of the right type, or not there. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CONTROLLER_POD_READ_H
#define ORCHARD_CONTROLLER_POD_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_object;

/* Borrowed; NULL when object is none, has no such member, or one of another type. */
struct json_object *pod_read_object(struct json_object *object, const char *name);
struct json_object *pod_read_array(struct json_object *object, const char *name);
/* "" then. */
const char *pod_read_text(struct json_object *object, const char *name);
bool pod_read_bool(struct json_object *object, const char *name); /* false then */
/* Cut to size if it is longer, between characters. */
void pod_read_copy(struct json_object *object, const char *name, char *ret_text, size_t size);
/* The element with that text as its member; NULL: none. */
struct json_object *pod_read_find(struct json_object *array, const char *member, const char *text);
/* "2006-01-02T15:04:05Z" in ms of the wall clock, to the second; 0 when it is nothing like that. */
int64_t pod_read_time(struct json_object *object, const char *name);

#endif
