/* pods.h - JSON in tests: written with ' for ", looked at by paths such as "spec/containers/0/name". */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_TESTS_CONTROLLER_PODS_H
#define ORCHARD_TESTS_CONTROLLER_PODS_H

#include "base/err.h"
#include "base/json.h"
#include "conf/config.h"

#include <json-c/json.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static inline struct json_object *
pods_json(const char *text)
{
	AUTO_FREE char *copy = strdup(text);
	struct json_object *value;
	struct err err;

	for (char *p = copy; *p != '\0'; p++)
		if (*p == '\'')
			*p = '"';
	value = json_parse(copy, strlen(copy), &err);
	if (value == NULL)
		fail_msg("%s: %s", text, err.msg);
	return value;
}

/* NULL: nothing is there. */
static inline struct json_object *
pods_at(struct json_object *value, const char *path)
{
	AUTO_FREE char *copy = strdup(path);
	char *rest = copy, *step;

	while (value != NULL && (step = strsep(&rest, "/")) != NULL) {
		if (json_object_is_type(value, json_type_array))
			value = json_object_array_get_idx(value, (size_t)atoi(step));
		else
			value = json_object_object_get(value, step);
	}
	return value;
}

/* Compact JSON of what is there; "" when nothing is. */
static inline const char *
pods_text(struct json_object *value, const char *path)
{
	struct json_object *found = pods_at(value, path);

	if (json_object_is_type(found, json_type_string))
		return json_object_get_string(found);
	return found == NULL ? "" : json_text(found, NULL);
}

/* Pairs of a setting's name in capitals and its value, NULL at the end. */
static inline struct config *
pods_config(const char *const *settings)
{
	struct config *config;
	struct err err;

	setenv("API_KEYS", "test-key-of-the-pods", 1);
	for (size_t i = 0; settings[i] != NULL; i += 2)
		setenv(settings[i], settings[i + 1], 1);
	if (config_load(NULL, &config, &err) != 0)
		fail_msg("%s", err.msg);
	for (size_t i = 0; settings[i] != NULL; i += 2)
		unsetenv(settings[i]);
	return config;
}
#define PODS_CONFIG(...) pods_config((const char *const[]){ __VA_ARGS__ __VA_OPT__(, ) NULL, NULL })

#endif
