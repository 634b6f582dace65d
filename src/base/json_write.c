/*
 * json_write.c - values to compact text: what json-c writes, without a call for every comma.
 *
 * Values come from json_parse(), which bounds their depth, or from code, which nests a few.
 */
/* SPDX-License-Identifier: MIT */
#include "base/json_write.h"
#include "base/cleanup.h"
#include "base/json_scan.h"

#include <json-c/json_object.h>
#include <json-c/linkhash.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 512, INT_ROOM = 24 };

struct writer {
	char *text;
	size_t len, room;
};

/* So many bytes more fit then. */
static char *
writer_reserve(struct writer *writer, size_t more)
{
	if (writer->room - writer->len < more) {
		writer->room = writer->room * 2 > writer->len + more ? writer->room * 2 : writer->len + more;
		writer->text = must_alloc(realloc(writer->text, writer->room));
	}
	return writer->text + writer->len;
}

static void
write_bytes(struct writer *writer, const char *bytes, size_t len)
{
	memcpy(writer_reserve(writer, len), bytes, len);
	writer->len += len;
}

static void
write_byte(struct writer *writer, char byte)
{
	*writer_reserve(writer, 1) = byte;
	writer->len++;
}

/* What stands for a byte inside a string; 0: itself, 'u': \u00XX, else the letter behind the backslash. */
static const char escapes[256] = {
	[0x00 ... 0x07] = 'u',
	[0x0b] = 'u',
	[0x0e ... 0x1f] = 'u',
	['\b'] = 'b',
	['\n'] = 'n',
	['\r'] = 'r',
	['\t'] = 't',
	['\f'] = 'f',
	['"'] = '"',
	['\\'] = '\\',
};

static void
write_escape(struct writer *writer, unsigned char byte)
{
	static const char hex[] = "0123456789abcdef";
	const char text[6] = { '\\', escapes[byte], '0', '0', hex[byte >> 4], hex[byte & 0x0f] };

	write_bytes(writer, text, text[1] == 'u' ? 6 : 2);
}

static void
write_string(struct writer *writer, const char *text, size_t len)
{
	size_t done = 0;

	writer_reserve(writer, len + 2);
	write_byte(writer, '"');
	for (size_t i = 0; i < len; i++) {
		i += json_scan_plain(text + i, len - i);
		if (i == len || escapes[(unsigned char)text[i]] == 0)
			continue;
		write_bytes(writer, text + done, i - done);
		write_escape(writer, (unsigned char)text[i]);
		done = i + 1;
	}
	write_bytes(writer, text + done, len - done);
	write_byte(writer, '"');
}

static void
write_int(struct writer *writer, struct json_object *value)
{
	int64_t number = json_object_get_int64(value);
	/* What is over INT64_MAX is there too, but not as an int64_t. */
	uint64_t left = number < 0 ? -(uint64_t)number : json_object_get_uint64(value);
	char digits[INT_ROOM], *at = digits + sizeof digits;

	do
		*--at = (char)('0' + left % 10);
	while ((left /= 10) > 0);
	if (number < 0)
		*--at = '-';
	write_bytes(writer, at, (size_t)(digits + sizeof digits - at));
}

/* As it was read, if it was read; json-c knows how others are written. */
static void
write_double(struct writer *writer, struct json_object *value)
{
	const char *text = json_object_get_userdata(value);

	if (text == NULL)
		text = json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN);
	write_bytes(writer, text, strlen(text));
}

static void write_value(struct writer *writer, struct json_object *value);

static void
write_object(struct writer *writer, struct json_object *value)
{
	const struct lh_entry *entry;
	char before = '{';

	lh_foreach(json_object_get_object(value), entry)
	{
		const char *name = lh_entry_k(entry);

		write_byte(writer, before);
		write_string(writer, name, strlen(name));
		write_byte(writer, ':');
		write_value(writer, lh_entry_v(entry));
		before = ',';
	}
	if (before == '{')
		write_byte(writer, '{');
	write_byte(writer, '}');
}

static void
write_array(struct writer *writer, struct json_object *value)
{
	size_t count = json_object_array_length(value);

	write_byte(writer, '[');
	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			write_byte(writer, ',');
		write_value(writer, json_object_array_get_idx(value, i));
	}
	write_byte(writer, ']');
}

static void
write_value(struct writer *writer, struct json_object *value)
{
	bool truth;

	switch (json_object_get_type(value)) {
	case json_type_null:
		write_bytes(writer, "null", 4);
		break;
	case json_type_boolean:
		truth = json_object_get_boolean(value);
		write_bytes(writer, truth ? "true" : "false", truth ? 4 : 5);
		break;
	case json_type_int:
		write_int(writer, value);
		break;
	case json_type_double:
		write_double(writer, value);
		break;
	case json_type_string:
		write_string(writer, json_object_get_string(value), (size_t)json_object_get_string_len(value));
		break;
	case json_type_object:
		write_object(writer, value);
		break;
	case json_type_array:
		write_array(writer, value);
		break;
	}
}

char *
json_write(struct json_object *value, size_t *ret_len)
{
	struct writer writer = { .text = must_alloc(malloc(FIRST_ROOM)), .room = FIRST_ROOM };

	write_value(&writer, value);
	write_byte(&writer, '\0');
	*ret_len = writer.len - 1;
	return writer.text;
}
