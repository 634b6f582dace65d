/*
 * json.h - strict JSON in, and request bodies read field by field.
 *
 * json-c builds the values; the grammar is checked first, to the letter, so this
 * refuses what json-c lets through: duplicate keys, NaN and Infinity, integers
 * that do not fit 64 bits, depth over 64, text behind the value, invalid UTF-8,
 * lone surrogates, NUL in keys, a byte-order mark. A text of too many values is
 * refused because each costs far more memory than the bytes that ask for it.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_BASE_JSON_H
#define ORCHARD_BASE_JSON_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct json_object;

enum { JSON_MAX_DEPTH = 64, JSON_MAX_VALUES = 1 << 18 };

/* The value, owned by the caller (json_object_put), or NULL and ERR_INVALID with the offset. "null" alone is refused. */
struct json_object *json_parse(const char *text, size_t len, struct err *err) MUSTCHECK;
/*
 * Names of files are bytes. One that is no UTF-8 travels in JSON with each of its bytes 0xNN that is no part of
 * a character as the escape \udcNN (which otherwise never stands alone), and comes back as that byte.
 * json_parse_names() takes these escapes, outside of keys; json_text_names() writes them (malloc'ed).
 */
struct json_object *json_parse_names(const char *text, size_t len, struct err *err) MUSTCHECK;
char *json_text_names(struct json_object *value, size_t *ret_len) MUSTCHECK;
/* Compact text; valid until the object changes or is freed. */
const char *json_text(struct json_object *value, size_t *ret_len);
/* AUTO_JSON struct json_object *o: put at the end of the scope. */
void cleanup_json(struct json_object **value);
#define AUTO_JSON __attribute__((cleanup(cleanup_json)))

/*
 * Reads the fields of one request body and collects every fault, so that a
 * client learns all of them at once: faults is a JSON array of
 * {"loc":["body","image"],"msg":"...","type":"..."} or NULL while all is fine.
 * Getters leave *ret untouched when the field is absent or null, so set the
 * default first. Each returns true when the field was there and right.
 */
struct json_reader {
	struct json_object *body; /* borrowed; always an object */
	struct json_object *faults; /* owned; NULL: none */
};

void json_reader_init(struct json_reader *reader, struct json_object *body);
void json_reader_fini(struct json_reader *reader);
/*
 * Adds a fault; field NULL: the body itself. type is one word: missing, string_type,
 * int_type, bool_type, float_type, object_type, value_error, string_too_long.
 */
void json_reader_fault(struct json_reader *reader, const char *field, const char *type, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
bool json_reader_has(struct json_reader *reader, const char *field); /* there and not null */
/* Faults "missing" when absent or null. */
bool json_reader_require(struct json_reader *reader, const char *field);
/* A string without NUL of at most max_len bytes; *ret borrowed from the body. */
bool json_reader_string(struct json_reader *reader, const char *field, size_t max_len, const char **ret);
/* A string that may hold NULs. */
bool
json_reader_bytes(struct json_reader *reader, const char *field, size_t max_len, const char **ret, size_t *ret_len);
bool json_reader_bool(struct json_reader *reader, const char *field, bool *ret);
bool json_reader_int(struct json_reader *reader, const char *field, int64_t min, int64_t max, int64_t *ret);
/* An integer or a fraction. */
bool json_reader_number(struct json_reader *reader, const char *field, double min, double max, double *ret);
/* An object whose values are all strings without NUL; *ret borrowed. */
bool json_reader_string_map(struct json_reader *reader, const char *field, struct json_object **ret);

#endif
