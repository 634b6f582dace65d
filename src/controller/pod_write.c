/* pod_write.c - json-c, with the check that every one of its makers needs. */
/* SPDX-License-Identifier: MIT */
#include "controller/pod_write.h"

#include <json-c/json.h>
#include <stdlib.h>

static struct json_object *
pod_write_sure(struct json_object *value)
{
	if (value == NULL)
		abort();
	return value;
}

struct json_object *
pod_write_object(void)
{
	return pod_write_sure(json_object_new_object());
}

struct json_object *
pod_write_array(void)
{
	return pod_write_sure(json_object_new_array());
}

struct json_object *
pod_write_in(struct json_object *object, const char *name, struct json_object *value)
{
	if (json_object_object_add(object, name, value) != 0)
		abort();
	return value;
}

struct json_object *
pod_write_text(struct json_object *object, const char *name, const char *text)
{
	pod_write_in(object, name, pod_write_sure(json_object_new_string(text)));
	return object;
}

struct json_object *
pod_write_int(struct json_object *object, const char *name, int64_t value)
{
	pod_write_in(object, name, pod_write_sure(json_object_new_int64(value)));
	return object;
}

struct json_object *
pod_write_bool(struct json_object *object, const char *name, bool value)
{
	pod_write_in(object, name, pod_write_sure(json_object_new_boolean(value)));
	return object;
}

struct json_object *
pod_write_item(struct json_object *array, struct json_object *item)
{
	if (json_object_array_add(array, item) != 0)
		abort();
	return item;
}

struct json_object *
pod_write_item_text(struct json_object *array, const char *text)
{
	return pod_write_item(array, pod_write_sure(json_object_new_string(text)));
}

struct json_object *
pod_write_copy(struct json_object *value)
{
	struct json_object *copy = NULL;

	if (value != NULL && json_object_deep_copy(value, &copy, NULL) != 0)
		abort();
	return copy;
}
