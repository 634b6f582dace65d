/* json_reader.c - request bodies field by field; wrong fields are collected, never coerced. */
/* SPDX-License-Identifier: MIT */
#include "base/json.h"
#include "base/text.h"

#include <json-c/json_object.h>
#include <json-c/json_object_iterator.h>
#include <stdarg.h>
#include <string.h>

/* A client cannot make an answer of any size by sending many wrong fields. */
enum { FAULTS_MAX = 64 };

void
json_reader_init(struct json_reader *reader, struct json_object *body)
{
	*reader = (struct json_reader){ .body = body };
}

void
json_reader_fini(struct json_reader *reader)
{
	json_object_put(reader->faults);
	reader->faults = NULL;
}

static struct json_object *
reader_string(const char *text)
{
	return must_alloc(json_object_new_string(text));
}

/* field and key may be NULL: the body itself, the field itself. */
static void
reader_add(struct json_reader *reader, const char *field, const char *key, const char *type, const char *msg)
{
	struct json_object *fault, *loc;

	if (reader->faults == NULL)
		reader->faults = must_alloc(json_object_new_array());
	if (json_object_array_length(reader->faults) >= FAULTS_MAX)
		return;
	fault = must_alloc(json_object_new_object());
	loc = must_alloc(json_object_new_array());
	json_object_array_add(loc, reader_string("body"));
	if (field != NULL)
		json_object_array_add(loc, reader_string(field));
	if (key != NULL)
		json_object_array_add(loc, reader_string(key));
	json_object_object_add(fault, "loc", loc);
	json_object_object_add(fault, "msg", reader_string(msg));
	json_object_object_add(fault, "type", reader_string(type));
	json_object_array_add(reader->faults, fault);
}

void
json_reader_fault(struct json_reader *reader, const char *field, const char *type, const char *fmt, ...)
{
	char msg[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(msg, sizeof msg, fmt, args);
	va_end(args);
	text_utf8_mend(msg);
	reader_add(reader, field, NULL, type, msg);
}

/* NULL when absent or null. */
static struct json_object *
reader_get(struct json_reader *reader, const char *field)
{
	struct json_object *value = NULL;

	return json_object_object_get_ex(reader->body, field, &value) ? value : NULL;
}

bool
json_reader_has(struct json_reader *reader, const char *field)
{
	return reader_get(reader, field) != NULL;
}

bool
json_reader_require(struct json_reader *reader, const char *field)
{
	if (json_reader_has(reader, field))
		return true;
	json_reader_fault(reader, field, "missing", "is required");
	return false;
}

bool
json_reader_bytes(struct json_reader *reader, const char *field, size_t max_len, const char **ret, size_t *ret_len)
{
	struct json_object *value = reader_get(reader, field);
	size_t len;

	if (value == NULL)
		return false;
	if (!json_object_is_type(value, json_type_string)) {
		json_reader_fault(reader, field, "string_type", "must be a string");
		return false;
	}
	len = (size_t)json_object_get_string_len(value);
	if (len > max_len) {
		json_reader_fault(
			reader, field, "string_too_long", "must have at most %zu bytes, has %zu", max_len, len);
		return false;
	}
	*ret = json_object_get_string(value);
	*ret_len = len;
	return true;
}

bool
json_reader_string(struct json_reader *reader, const char *field, size_t max_len, const char **ret)
{
	const char *text;
	size_t len;

	if (!json_reader_bytes(reader, field, max_len, &text, &len))
		return false;
	if (memchr(text, '\0', len) != NULL) {
		json_reader_fault(reader, field, "value_error", "must not contain NUL");
		return false;
	}
	*ret = text;
	return true;
}

bool
json_reader_bool(struct json_reader *reader, const char *field, bool *ret)
{
	struct json_object *value = reader_get(reader, field);

	if (value == NULL)
		return false;
	if (!json_object_is_type(value, json_type_boolean)) {
		json_reader_fault(reader, field, "bool_type", "must be true or false");
		return false;
	}
	*ret = json_object_get_boolean(value);
	return true;
}

static void
reader_fault_int_range(struct json_reader *reader, const char *field, int64_t min, int64_t max)
{
	if (max == INT64_MAX)
		json_reader_fault(reader, field, "value_error", "must be at least %lld", (long long)min);
	else
		json_reader_fault(reader, field, "value_error", "must be between %lld and %lld", (long long)min,
			(long long)max);
}

bool
json_reader_int(struct json_reader *reader, const char *field, int64_t min, int64_t max, int64_t *ret)
{
	struct json_object *value = reader_get(reader, field);
	int64_t number;

	if (value == NULL)
		return false;
	if (json_object_is_type(value, json_type_double)) {
		double fraction = json_object_get_double(value);

		/* 2^63 is the first double that does not fit; doubles that large are whole. */
		if (fraction < -0x1p63 || fraction >= 0x1p63) {
			reader_fault_int_range(reader, field, min, max);
			return false;
		}
		if ((double)(int64_t)fraction != fraction) {
			json_reader_fault(reader, field, "int_type", "must be a whole number");
			return false;
		}
		number = (int64_t)fraction;
	} else if (json_object_is_type(value, json_type_int)) {
		number = json_object_get_int64(value);
	} else {
		json_reader_fault(reader, field, "int_type", "must be a whole number");
		return false;
	}
	if (number < min || number > max) {
		reader_fault_int_range(reader, field, min, max);
		return false;
	}
	*ret = number;
	return true;
}

bool
json_reader_number(struct json_reader *reader, const char *field, double min, double max, double *ret)
{
	struct json_object *value = reader_get(reader, field);
	double number;

	if (value == NULL)
		return false;
	if (!json_object_is_type(value, json_type_double) && !json_object_is_type(value, json_type_int)) {
		json_reader_fault(reader, field, "float_type", "must be a number");
		return false;
	}
	number = json_object_get_double(value);
	if (!(number >= min && number <= max)) {
		json_reader_fault(reader, field, "value_error", "must be between %.15g and %.15g", min, max);
		return false;
	}
	*ret = number;
	return true;
}

bool
json_reader_string_map(struct json_reader *reader, const char *field, struct json_object **ret)
{
	struct json_object *map = reader_get(reader, field);
	struct json_object_iterator it, end;
	bool fine = true;

	if (map == NULL)
		return false;
	if (!json_object_is_type(map, json_type_object)) {
		json_reader_fault(reader, field, "object_type", "must be an object");
		return false;
	}
	it = json_object_iter_begin(map);
	end = json_object_iter_end(map);
	for (; !json_object_iter_equal(&it, &end); json_object_iter_next(&it)) {
		struct json_object *value = json_object_iter_peek_value(&it);
		const char *key = json_object_iter_peek_name(&it);

		if (!json_object_is_type(value, json_type_string)) {
			reader_add(reader, field, key, "string_type", "must be a string");
			fine = false;
		} else if (strlen(json_object_get_string(value)) != (size_t)json_object_get_string_len(value)) {
			reader_add(reader, field, key, "value_error", "must not contain NUL");
			fine = false;
		}
	}
	if (fine)
		*ret = map;
	return fine;
}
