/* driver_env.c - writes an environment as the spawner takes it. */
/* SPDX-License-Identifier: MIT */
#include "backend/driver_env.h"

#include <json-c/json.h>
#include <string.h>

size_t
driver_env_size(struct json_object *env)
{
	size_t size = 0;

	if (env == NULL)
		return 0;
	json_object_object_foreach(env, name, value)
		size += strlen(name) + 1 + strlen(json_object_get_string(value)) + 1;
	return size;
}

void
driver_env_write(struct json_object *env, char *out)
{
	if (env == NULL)
		return;
	json_object_object_foreach(env, name, value)
	{
		out = stpcpy(out, name);
		*out++ = '=';
		out = stpcpy(out, json_object_get_string(value)) + 1;
	}
}
