/*
 * json.c - text to values and back. json_scan.c checks the grammar, json-c builds.
 *
 * Duplicate keys cost nothing to rule out: json-c keeps one member of each name,
 * so objects hold as many members as the text has, or a key came twice.
 */
/* SPDX-License-Identifier: MIT */
#include "base/json.h"
#include "base/err.h"
#include "base/json_scan.h"

#include <json-c/json_object.h>
#include <json-c/json_object_iterator.h>
#include <json-c/json_tokener.h>
#include <json-c/json_util.h>
#include <limits.h>

/* Recursion ends at JSON_MAX_DEPTH: the scan saw to that. */
static size_t
json_count_members(struct json_object *value)
{
	size_t count = 0;

	if (json_object_is_type(value, json_type_array)) {
		for (size_t i = 0; i < json_object_array_length(value); i++)
			count += json_count_members(json_object_array_get_idx(value, i));
	} else if (json_object_is_type(value, json_type_object)) {
		struct json_object_iterator it = json_object_iter_begin(value), end = json_object_iter_end(value);

		for (; !json_object_iter_equal(&it, &end); json_object_iter_next(&it))
			count += 1 + json_count_members(json_object_iter_peek_value(&it));
	}
	return count;
}

/* NULL is also the value of the text "null": *ret_error tells. */
static struct json_object *
json_build(const char *text, size_t len, enum json_tokener_error *ret_error)
{
	struct json_tokener *tokener = must_alloc(json_tokener_new_ex(JSON_MAX_DEPTH + 2));
	struct json_object *value;

	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
	value = json_tokener_parse_ex(tokener, text, (int)len);
	/* Only the end of the text ends a number. */
	if (json_tokener_get_error(tokener) == json_tokener_continue)
		value = json_tokener_parse_ex(tokener, "", 1);
	*ret_error = json_tokener_get_error(tokener);
	json_tokener_free(tokener);
	return value;
}

struct json_object *
json_parse(const char *text, size_t len, struct err *err)
{
	AUTO_JSON struct json_object *value = NULL;
	enum json_tokener_error error;
	size_t members;

	if (len >= INT_MAX) {
		err_set(err, ERR_INVALID, "invalid JSON: longer than %d bytes", INT_MAX - 1);
		return NULL;
	}
	if (json_scan_check(text, len, &members, err) < 0)
		return NULL;
	value = json_build(text, len, &error);
	if (error != json_tokener_success) {
		err_set(err, ERR_INVALID, "invalid JSON: %s", json_tokener_error_desc(error));
		return NULL;
	}
	if (value == NULL) {
		err_set(err, ERR_INVALID, "invalid JSON: the whole text is null");
		return NULL;
	}
	if (json_count_members(value) != members) {
		if (json_scan_find_duplicate(text, len, err) == 0)
			err_set(err, ERR_INVALID, "invalid JSON: a key occurs twice");
		return NULL;
	}
	return STEAL_PTR(value);
}

const char *
json_text(struct json_object *value, size_t *ret_len)
{
	static bool format_set;
	size_t len;
	const char *text;

	if (!format_set) {
		/* json-c's own choice writes 0.1 as 0.10000000000000001. */
		json_c_set_serialization_double_format("%.16g", JSON_C_OPTION_GLOBAL);
		format_set = true;
	}
	text = json_object_to_json_string_length(
		value, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &len);
	if (text == NULL)
		abort();
	if (ret_len != NULL)
		*ret_len = len;
	return text;
}

void
cleanup_json(struct json_object **value)
{
	json_object_put(*value);
}
