/* env_spec.c - the rule for environment variables, the same for sandboxes and commands. */
/* SPDX-License-Identifier: MIT */
#include "domain/env_spec.h"
#include "base/json.h"

#include <json-c/json.h>
#include <string.h>

void
env_spec_read(struct json_reader *reader, const char *field, size_t max, struct json_object **ret_env)
{
	struct json_object *env = NULL;
	size_t total = 0;

	*ret_env = NULL;
	if (!json_reader_string_map(reader, field, &env) || json_object_object_length(env) == 0)
		return;
	json_object_object_foreach(env, name, value)
	{
		const char *text = json_object_get_string(value);
		size_t len = (size_t)json_object_get_string_len(value);

		if (name[0] == '\0' || strchr(name, '=') != NULL) {
			json_reader_fault(reader, field, "value_error",
				"\"%.64s\" cannot be the name of a variable: it must not be empty or hold '='",
				name);
			return;
		}
		if (memchr(text, '\0', len) != NULL) {
			json_reader_fault(
				reader, field, "value_error", "the value of \"%.64s\" must not hold NUL", name);
			return;
		}
		total += strlen(name) + len + 2;
	}
	if (total > max) {
		json_reader_fault(reader, field, "value_error", "must not be more than %zu bytes in all", max);
		return;
	}
	*ret_env = env;
}
