/*
 * kube_yaml.c - builds JSON values from the events of libyaml.
 *
 * Aliases are refused: they make small texts large, and nobody needs them in files of this size.
 */
/* SPDX-License-Identifier: MIT */
#include "kube/kube_yaml.h"

#include "base/err.h"
#include "base/json.h"

#include <errno.h>
#include <json-c/json.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <yaml.h>

enum { DEPTH_MAX = JSON_MAX_DEPTH };

struct level {
	struct json_object *value; /* an object or an array; its owner is the level below it, or the builder */
	char *key; /* waits for its value */
};

struct builder {
	struct level levels[DEPTH_MAX];
	size_t depth;
	struct json_object *root; /* owned */
	bool has_root;
	size_t line;
};

static int
refuse(const struct builder *builder, struct err *err, const char *what)
{
	return err_set(err, ERR_INVALID, "line %zu: %s", builder->line, what);
}

/* Takes the value, also when it fails. */
static int
put_value(struct builder *builder, struct json_object *value, struct err *err)
{
	struct level *level = builder->depth > 0 ? &builder->levels[builder->depth - 1] : NULL;

	if (level == NULL) {
		builder->root = value;
		builder->has_root = true;
		return 0;
	}
	if (json_object_is_type(level->value, json_type_array)) {
		json_object_array_add(level->value, value);
		return 0;
	}
	if (level->key == NULL) {
		json_object_put(value);
		return refuse(builder, err, "a key must be a string");
	}
	json_object_object_add(level->value, level->key, value);
	free(STEAL_PTR(level->key));
	return 0;
}

static int
open_level(struct builder *builder, struct json_object *value, struct err *err)
{
	if (builder->depth == DEPTH_MAX) {
		json_object_put(value);
		return refuse(builder, err, "too deep");
	}
	if (put_value(builder, value, err) != 0)
		return -1;
	builder->levels[builder->depth++] = (struct level){ .value = value };
	return 0;
}

/* The core schema's numbers, as far as JSON has them: no octal, no hexadecimal, no infinities. */
static struct json_object *
number_of(const char *text)
{
	const char *digits = text[0] == '-' || text[0] == '+' ? text + 1 : text;
	char *end;
	double real;
	long long whole;

	if (strspn(digits, "0123456789.eE+-") != strlen(digits) || strpbrk(digits, "0123456789") == NULL ||
		(digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9'))
		return NULL;
	errno = 0;
	whole = strtoll(text, &end, 10);
	if (*end == '\0' && errno == 0)
		return json_object_new_int64(whole);
	real = strtod(text, &end);
	return *end == '\0' && isfinite(real) ? json_object_new_double(real) : NULL;
}

static bool
is_one_of(const char *text, const char *const names[3])
{
	return strcmp(text, names[0]) == 0 || strcmp(text, names[1]) == 0 || strcmp(text, names[2]) == 0;
}

static struct json_object *
plain_value(const char *text, bool *ret_null)
{
	static const char *const null_names[] = { "null", "Null", "NULL" };
	static const char *const true_names[] = { "true", "True", "TRUE" };
	static const char *const false_names[] = { "false", "False", "FALSE" };
	struct json_object *number;

	*ret_null = text[0] == '\0' || strcmp(text, "~") == 0 || is_one_of(text, null_names);
	if (*ret_null)
		return NULL;
	if (is_one_of(text, true_names))
		return json_object_new_boolean(true);
	if (is_one_of(text, false_names))
		return json_object_new_boolean(false);
	number = number_of(text);
	return number != NULL ? number : json_object_new_string(text);
}

static int
take_key(struct builder *builder, struct level *level, const char *text, struct err *err)
{
	if (json_object_object_get_ex(level->value, text, NULL))
		return err_set(err, ERR_INVALID, "line %zu: '%.100s' comes twice", builder->line, text);
	level->key = must_alloc(strdup(text));
	return 0;
}

static int
on_scalar(struct builder *builder, const yaml_event_t *event, struct err *err)
{
	struct level *level = builder->depth > 0 ? &builder->levels[builder->depth - 1] : NULL;
	const char *text = (const char *)event->data.scalar.value, *tag = (const char *)event->data.scalar.tag;
	size_t len = event->data.scalar.length;
	bool null = false;
	struct json_object *value;

	if (strlen(text) != len)
		return refuse(builder, err, "a NUL in a text");
	if (tag != NULL && strcmp(tag, YAML_STR_TAG) != 0 && strcmp(tag, "!") != 0)
		return err_set(err, ERR_INVALID, "line %zu: the tag %.100s is not understood", builder->line, tag);
	if (level != NULL && level->key == NULL && json_object_is_type(level->value, json_type_object))
		return take_key(builder, level, text, err);
	value = event->data.scalar.plain_implicit && tag == NULL ? plain_value(text, &null)
								 : json_object_new_string(text);
	if (value == NULL && !null)
		abort();
	return put_value(builder, value, err);
}

static int
on_event(struct builder *builder, const yaml_event_t *event, struct err *err)
{
	builder->line = event->start_mark.line + 1;
	switch (event->type) {
	case YAML_DOCUMENT_START_EVENT:
		return builder->has_root ? refuse(builder, err, "a second document begins") : 0;
	case YAML_SCALAR_EVENT:
		return on_scalar(builder, event, err);
	case YAML_MAPPING_START_EVENT:
		return open_level(builder, json_object_new_object(), err);
	case YAML_SEQUENCE_START_EVENT:
		return open_level(builder, json_object_new_array(), err);
	case YAML_MAPPING_END_EVENT:
	case YAML_SEQUENCE_END_EVENT:
		builder->depth--;
		return 0;
	case YAML_ALIAS_EVENT:
		return refuse(builder, err, "aliases are not understood; write it out");
	default:
		return 0;
	}
}

static int
run_events(struct builder *builder, yaml_parser_t *parser, struct err *err)
{
	bool over = false;

	while (!over) {
		yaml_event_t event;
		int result;

		if (yaml_parser_parse(parser, &event) == 0)
			return err_set(err, ERR_INVALID, "line %zu: %s", parser->problem_mark.line + 1,
				parser->problem != NULL ? parser->problem : "no YAML");
		over = event.type == YAML_STREAM_END_EVENT;
		result = on_event(builder, &event, err);
		yaml_event_delete(&event);
		if (result != 0)
			return -1;
	}
	return 0;
}

int
kube_yaml_parse(const char *text, size_t len, struct json_object **ret_value, struct err *err)
{
	struct builder builder = { 0 };
	yaml_parser_t parser;
	int result;

	if (len > KUBE_YAML_MAX_BYTES)
		return err_set(err, ERR_INVALID, "it has more than %d bytes", KUBE_YAML_MAX_BYTES);
	if (yaml_parser_initialize(&parser) == 0)
		abort();
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
	result = run_events(&builder, &parser, err);
	yaml_parser_delete(&parser);
	for (size_t i = 0; i < DEPTH_MAX; i++)
		free(builder.levels[i].key);
	if (result == 0 && builder.root == NULL)
		result = err_set(err, ERR_INVALID, "it is empty");
	if (result != 0)
		json_object_put(builder.root);
	else
		*ret_value = builder.root;
	return result;
}
