/*
 * json_scan.c - one pass over a JSON text, without recursion and in linear time.
 *
 * The parser that builds the values is lenient (leading zeros, single quotes, raw
 * control characters, lone surrogates, keys cut at a NUL), so the grammar is
 * checked here first and the parser only ever sees texts that mean one thing.
 */
/* SPDX-License-Identifier: MIT */
#include "base/json_scan.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text.h"

#include <json-c/json_object.h>
#include <json-c/json_tokener.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

enum { NUMBER_MAX = 512 };

enum scan_state { SCAN_VALUE, SCAN_KEY, SCAN_AFTER, SCAN_DONE, SCAN_FAILED };

struct scan {
	const char *text;
	size_t len, pos;
	size_t values, members;
	size_t depth;
	bool is_object[JSON_MAX_DEPTH];
	bool find_duplicates;
	struct json_object *keys[JSON_MAX_DEPTH]; /* only to find duplicates: the keys so far */
	struct err *err;
};

static enum scan_state
scan_fail(struct scan *scan, size_t pos, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static enum scan_state
scan_fail(struct scan *scan, size_t pos, const char *fmt, ...)
{
	char what[256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(what, sizeof what, fmt, args);
	va_end(args);
	err_set(scan->err, ERR_INVALID, "invalid JSON at byte %zu: %s", pos, what);
	return SCAN_FAILED;
}

static enum scan_state
scan_expected(struct scan *scan, const char *what)
{
	unsigned char c;

	if (scan->pos >= scan->len)
		return scan_fail(scan, scan->pos, "expected %s, found the end of the text", what);
	c = (unsigned char)scan->text[scan->pos];
	if (c <= ' ' || c >= 0x7f)
		return scan_fail(scan, scan->pos, "expected %s, found byte 0x%02x", what, c);
	return scan_fail(scan, scan->pos, "expected %s, found '%c'", what, c);
}

/* The character at pos, or -1 at the end. */
static int
scan_peek(const struct scan *scan)
{
	return scan->pos < scan->len ? (unsigned char)scan->text[scan->pos] : -1;
}

static void
scan_blanks(struct scan *scan)
{
	int c = scan_peek(scan);

	while (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
		scan->pos++;
		c = scan_peek(scan);
	}
}

static bool
scan_is_digit(int c)
{
	return c >= '0' && c <= '9';
}

/* Four hex digits at pos, or -1. */
static int
scan_hex4(const struct scan *scan, size_t pos)
{
	int value = 0;

	if (scan->len - pos < 4)
		return -1;
	for (size_t i = pos; i < pos + 4; i++) {
		int c = (unsigned char)scan->text[i], lower = c | 0x20;

		if (scan_is_digit(c))
			value = value * 16 + c - '0';
		else if (lower >= 'a' && lower <= 'f')
			value = value * 16 + lower - 'a' + 10;
		else
			return -1;
	}
	return value;
}

/* pos stands at the 'u' of \uXXXX. */
static bool
scan_unicode_escape(struct scan *scan, bool is_key)
{
	int unit = scan_hex4(scan, scan->pos + 1);
	size_t second = scan->pos + 5;

	if (unit < 0)
		return scan_fail(scan, scan->pos - 1, "\\u needs four hex digits"), false;
	if (unit == 0 && is_key)
		return scan_fail(scan, scan->pos - 1, "a key must not contain NUL"), false;
	scan->pos += 5;
	if (unit < 0xd800 || unit > 0xdfff)
		return true;
	if (unit <= 0xdbff && scan->len - second >= 6 && memcmp(scan->text + second, "\\u", 2) == 0) {
		int low = scan_hex4(scan, second + 2);

		if (low >= 0xdc00 && low <= 0xdfff) {
			scan->pos += 6;
			return true;
		}
	}
	return scan_fail(scan, second - 6, "half of a surrogate pair is no character"), false;
}

static bool
scan_escape(struct scan *scan, bool is_key)
{
	int c;

	scan->pos++;
	c = scan_peek(scan);
	if (c == 'u')
		return scan_unicode_escape(scan, is_key);
	if (c <= 0 || strchr("\"\\/bfnrt", c) == NULL)
		return scan_fail(scan, scan->pos - 1, "unknown escape in a string"), false;
	scan->pos++;
	return true;
}

/* pos stands at the opening quote; afterwards behind the closing one. */
static bool
scan_string(struct scan *scan, bool is_key)
{
	size_t start = scan->pos++;

	for (;;) {
		int c = scan_peek(scan);
		bool valid;
		size_t n;

		if (c < 0)
			return scan_fail(scan, start, "this string does not end"), false;
		if (c == '"')
			break;
		if (c == '\\') {
			if (!scan_escape(scan, is_key))
				return false;
			continue;
		}
		if (c < 0x20)
			return scan_fail(scan, scan->pos, "control character 0x%02x must be escaped", c), false;
		n = c < 0x80 ? 1 : text_utf8_step(scan->text + scan->pos, scan->len - scan->pos, &valid);
		if (c >= 0x80 && !valid)
			return scan_fail(scan, scan->pos, "invalid UTF-8 byte 0x%02x", c), false;
		scan->pos += n;
	}
	scan->pos++;
	return true;
}

static bool
scan_digits(struct scan *scan)
{
	if (!scan_is_digit(scan_peek(scan)))
		return scan_expected(scan, "a digit"), false;
	while (scan_is_digit(scan_peek(scan)))
		scan->pos++;
	return true;
}

/* The grammar was fine; does the value fit? */
static enum scan_state
scan_number_fits(struct scan *scan, size_t start, bool is_integer)
{
	size_t len = scan->pos - start;
	char digits[NUMBER_MAX + 1];
	int64_t value = 0;

	if (len > NUMBER_MAX)
		return scan_fail(scan, start, "a number of more than %d characters", NUMBER_MAX);
	memcpy(digits, scan->text + start, len);
	digits[len] = '\0';
	if (!is_integer)
		return isinf(strtod(digits, NULL)) ? scan_fail(scan, start, "number too large") : SCAN_AFTER;
	for (const char *p = digits + (digits[0] == '-'); *p != '\0'; p++) {
		int digit = digits[0] == '-' ? '0' - *p : *p - '0';

		if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, digit, &value))
			return scan_fail(scan, start, "integer does not fit 64 bits");
	}
	return SCAN_AFTER;
}

static enum scan_state
scan_number(struct scan *scan)
{
	size_t start = scan->pos;
	bool is_integer = true;

	if (scan_peek(scan) == '-')
		scan->pos++;
	if (scan_peek(scan) == 'I')
		return scan_fail(scan, start, "NaN and Infinity are not JSON");
	if (scan_peek(scan) == '0') {
		scan->pos++;
		if (scan_is_digit(scan_peek(scan)))
			return scan_fail(scan, start, "a number must not start with 0");
	} else if (!scan_digits(scan))
		return SCAN_FAILED;
	if (scan_peek(scan) == '.') {
		is_integer = false;
		scan->pos++;
		if (!scan_digits(scan))
			return SCAN_FAILED;
	}
	if (scan_peek(scan) == 'e' || scan_peek(scan) == 'E') {
		is_integer = false;
		scan->pos++;
		if (scan_peek(scan) == '+' || scan_peek(scan) == '-')
			scan->pos++;
		if (!scan_digits(scan))
			return SCAN_FAILED;
	}
	return scan_number_fits(scan, start, is_integer);
}

static enum scan_state
scan_word(struct scan *scan)
{
	static const char *const words[] = { "true", "false", "null" };

	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
		size_t len = strlen(words[i]);

		if (scan->len - scan->pos < len || memcmp(scan->text + scan->pos, words[i], len) != 0)
			continue;
		scan->pos += len;
		return SCAN_AFTER;
	}
	if (scan_peek(scan) == 'N' || scan_peek(scan) == 'I')
		return scan_fail(scan, scan->pos, "NaN and Infinity are not JSON");
	return scan_expected(scan, "a value");
}

static enum scan_state
scan_close(struct scan *scan)
{
	scan->pos++;
	scan->depth--;
	json_object_put(scan->keys[scan->depth]);
	scan->keys[scan->depth] = NULL;
	return SCAN_AFTER;
}

static enum scan_state
scan_open(struct scan *scan, bool is_object)
{
	if (scan->depth == JSON_MAX_DEPTH)
		return scan_fail(scan, scan->pos, "nested more than %d deep", JSON_MAX_DEPTH);
	if (is_object && scan->find_duplicates)
		scan->keys[scan->depth] = must_alloc(json_object_new_object());
	scan->is_object[scan->depth++] = is_object;
	scan->pos++;
	scan_blanks(scan);
	if (scan_peek(scan) == (is_object ? '}' : ']'))
		return scan_close(scan);
	return is_object ? SCAN_KEY : SCAN_VALUE;
}

static enum scan_state
scan_value(struct scan *scan)
{
	int c;

	scan_blanks(scan);
	c = scan_peek(scan);
	if (++scan->values > JSON_MAX_VALUES)
		return scan_fail(scan, scan->pos, "more than %d values", JSON_MAX_VALUES);
	if (c == '{' || c == '[')
		return scan_open(scan, c == '{');
	if (c == '"')
		return scan_string(scan, false) ? SCAN_AFTER : SCAN_FAILED;
	if (c == '-' || scan_is_digit(c))
		return scan_number(scan);
	return scan_word(scan);
}

/* Keys are compared as the parser decodes them: "a" and "\u0061" are the same. */
static bool
scan_note_key(struct scan *scan, size_t start)
{
	struct json_tokener *tokener = must_alloc(json_tokener_new());
	AUTO_JSON struct json_object *key = json_tokener_parse_ex(
		tokener, scan->text + start, (int)(scan->pos - start));
	struct json_object *keys = scan->keys[scan->depth - 1];
	const char *name = json_object_get_string(must_alloc(key));

	json_tokener_free(tokener);
	if (json_object_object_get_ex(keys, name, NULL))
		return scan_fail(scan, start, "duplicate key '%.64s'", name), false;
	json_object_object_add(keys, name, NULL);
	return true;
}

static enum scan_state
scan_key(struct scan *scan)
{
	size_t start;

	scan_blanks(scan);
	start = scan->pos;
	if (scan_peek(scan) != '"')
		return scan_expected(scan, "a key in double quotes");
	if (!scan_string(scan, true))
		return SCAN_FAILED;
	if (scan->find_duplicates && !scan_note_key(scan, start))
		return SCAN_FAILED;
	scan->members++;
	scan_blanks(scan);
	if (scan_peek(scan) != ':')
		return scan_expected(scan, "':'");
	scan->pos++;
	return SCAN_VALUE;
}

static enum scan_state
scan_after(struct scan *scan)
{
	bool in_object = scan->depth > 0 && scan->is_object[scan->depth - 1];
	int c;

	scan_blanks(scan);
	c = scan_peek(scan);
	if (scan->depth == 0)
		return c < 0 ? SCAN_DONE : scan_expected(scan, "nothing behind the value");
	if (c == (in_object ? '}' : ']'))
		return scan_close(scan);
	if (c != ',')
		return scan_expected(scan, in_object ? "',' or '}'" : "',' or ']'");
	scan->pos++;
	return in_object ? SCAN_KEY : SCAN_VALUE;
}

static int
scan_run(struct scan *scan)
{
	enum scan_state state = SCAN_VALUE;

	if (scan->len >= 3 && memcmp(scan->text, "\xef\xbb\xbf", 3) == 0)
		state = scan_fail(scan, 0, "byte-order mark; send UTF-8 without it");
	while (state != SCAN_DONE && state != SCAN_FAILED) {
		if (state == SCAN_VALUE)
			state = scan_value(scan);
		else if (state == SCAN_KEY)
			state = scan_key(scan);
		else
			state = scan_after(scan);
	}
	for (size_t i = 0; i < scan->depth; i++)
		json_object_put(scan->keys[i]);
	return state == SCAN_DONE ? 0 : -1;
}

int
json_scan_check(const char *text, size_t len, size_t *ret_members, struct err *err)
{
	struct scan scan = { .text = text, .len = len, .err = err };

	if (scan_run(&scan) < 0)
		return -1;
	*ret_members = scan.members;
	return 0;
}

int
json_scan_find_duplicate(const char *text, size_t len, struct err *err)
{
	struct scan scan = { .text = text, .len = len, .find_duplicates = true, .err = err };

	return scan_run(&scan);
}
