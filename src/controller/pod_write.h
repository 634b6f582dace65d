/* pod_write.h - JSON for the cluster, built without a check after each step: without memory the process ends. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CONTROLLER_POD_WRITE_H
#define ORCHARD_CONTROLLER_POD_WRITE_H

#include <stdbool.h>
#include <stdint.h>

struct json_object;

struct json_object *pod_write_object(void);
struct json_object *pod_write_array(void);
/* Take the place of a member that is there. The object is returned, so that calls can stand in each other. */
struct json_object *pod_write_text(struct json_object *object, const char *name, const char *text);
struct json_object *pod_write_int(struct json_object *object, const char *name, int64_t value);
struct json_object *pod_write_bool(struct json_object *object, const char *name, bool value);
/* value becomes the object's; it is returned. */
struct json_object *pod_write_in(struct json_object *object, const char *name, struct json_object *value);
/* item becomes the array's; it is returned. */
struct json_object *pod_write_item(struct json_object *array, struct json_object *item);
struct json_object *pod_write_item_text(struct json_object *array, const char *text);
/* A copy that shares nothing with value. */
struct json_object *pod_write_copy(struct json_object *value);

#endif
