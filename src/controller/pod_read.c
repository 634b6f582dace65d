/* pod_read.c - JSON of the cluster, taken as it is. */
/* SPDX-License-Identifier: MIT */
#include "controller/pod_read.h"

#include "base/text.h"

#include <json-c/json.h>
#include <string.h>
#include <time.h>

static struct json_object *
pod_read_typed(struct json_object *object, const char *name, enum json_type type)
{
	struct json_object *value = NULL;

	if (!json_object_is_type(object, json_type_object) || !json_object_object_get_ex(object, name, &value))
		return NULL;
	return json_object_is_type(value, type) ? value : NULL;
}

struct json_object *
pod_read_object(struct json_object *object, const char *name)
{
	return pod_read_typed(object, name, json_type_object);
}

struct json_object *
pod_read_array(struct json_object *object, const char *name)
{
	return pod_read_typed(object, name, json_type_array);
}

const char *
pod_read_text(struct json_object *object, const char *name)
{
	struct json_object *value = pod_read_typed(object, name, json_type_string);

	return value == NULL ? "" : json_object_get_string(value);
}

bool
pod_read_bool(struct json_object *object, const char *name)
{
	return json_object_get_boolean(pod_read_typed(object, name, json_type_boolean));
}

void
pod_read_copy(struct json_object *object, const char *name, char *ret_text, size_t size)
{
	const char *text = pod_read_text(object, name);
	size_t len = strlen(text);

	if (len >= size)
		len = text_utf8_whole(text, size - 1);
	memcpy(ret_text, text, len);
	ret_text[len] = '\0';
}

struct json_object *
pod_read_find(struct json_object *array, const char *member, const char *text)
{
	for (size_t i = 0; array != NULL && i < json_object_array_length(array); i++) {
		struct json_object *item = json_object_array_get_idx(array, i);

		if (strcmp(pod_read_text(item, member), text) == 0)
			return item;
	}
	return NULL;
}

int64_t
pod_read_time(struct json_object *object, const char *name)
{
	const char *text = pod_read_text(object, name), *end;
	struct tm when = { 0 };

	end = strptime(text, "%Y-%m-%dT%H:%M:%S", &when);
	if (end == NULL || (*end != 'Z' && *end != '.'))
		return 0;
	return (int64_t)timegm(&when) * 1000;
}
