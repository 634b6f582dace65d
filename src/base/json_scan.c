/*
 * json_scan.c - strings, numbers and words of a JSON text, in linear time.
 *
 * Almost all bytes of a text stand inside strings and mean themselves; these are
 * passed eight at a time, and a string without escapes is not copied.
 */
/* SPDX-License-Identifier: MIT */
#include "base/json_scan.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text.h"

#include <json-c/json_object.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

enum { NUMBER_MAX = 512 };

bool
json_scan_fail(struct json_scan *scan, size_t pos, const char *fmt, ...)
{
	char what[256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(what, sizeof what, fmt, args);
	va_end(args);
	err_set(scan->err, ERR_INVALID, "invalid JSON at byte %zu: %s", pos, what);
	return false;
}

bool
json_scan_expected(struct json_scan *scan, const char *what)
{
	unsigned char c;

	if (scan->pos >= scan->len)
		return json_scan_fail(scan, scan->pos, "expected %s, found the end of the text", what);
	c = (unsigned char)scan->text[scan->pos];
	if (c <= ' ' || c >= 0x7f)
		return json_scan_fail(scan, scan->pos, "expected %s, found byte 0x%02x", what, c);
	return json_scan_fail(scan, scan->pos, "expected %s, found '%c'", what, c);
}

int
json_scan_next(struct json_scan *scan)
{
	while (scan->pos < scan->len) {
		int c = (unsigned char)scan->text[scan->pos];

		if (c != ' ' && c != '\t' && c != '\n' && c != '\r')
			return c;
		scan->pos++;
	}
	return -1;
}

/* The character at pos, or -1 at the end. */
static int
scan_peek(const struct json_scan *scan)
{
	return scan->pos < scan->len ? (unsigned char)scan->text[scan->pos] : -1;
}

/* --- strings --- */

static bool
scan_is_digit(int c)
{
	return c >= '0' && c <= '9';
}

/* Four hex digits at pos, or -1. */
static int
scan_hex4(const struct json_scan *scan, size_t pos)
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

/* A code that is no character but a byte of its own. */
#define SCAN_BYTE (UINT32_C(1) << 31)

/* pos stands at the 'u' of \uXXXX; afterwards behind it, and behind the other half of a surrogate pair. */
static bool
scan_unicode_escape(struct json_scan *scan, bool is_key, uint32_t *ret_code)
{
	int unit = scan_hex4(scan, scan->pos + 1);
	size_t second = scan->pos + 5;

	if (unit < 0)
		return json_scan_fail(scan, scan->pos - 1, "\\u needs four hex digits");
	if (unit == 0 && is_key)
		return json_scan_fail(scan, scan->pos - 1, "a key must not contain NUL");
	scan->pos += 5;
	*ret_code = (uint32_t)unit;
	if (unit < 0xd800 || unit > 0xdfff)
		return true;
	if (scan->names && !is_key && unit >= 0xdc80 && unit <= 0xdcff) {
		*ret_code = SCAN_BYTE | (uint32_t)(unit & 0xff);
		return true;
	}
	if (unit <= 0xdbff && scan->len - second >= 6 && memcmp(scan->text + second, "\\u", 2) == 0) {
		int low = scan_hex4(scan, second + 2);

		if (low >= 0xdc00 && low <= 0xdfff) {
			scan->pos += 6;
			*ret_code = 0x10000 + ((uint32_t)(unit - 0xd800) << 10) + (uint32_t)(low - 0xdc00);
			return true;
		}
	}
	return json_scan_fail(scan, second - 6, "half of a surrogate pair is no character");
}

/* pos stands at the backslash; afterwards behind the escape. */
static bool
scan_escape(struct json_scan *scan, bool is_key, uint32_t *ret_code)
{
	static const char meanings[] = "\"\"\\\\//b\bf\fn\nr\rt\t";
	int c;

	scan->pos++;
	c = scan_peek(scan);
	if (c == 'u')
		return scan_unicode_escape(scan, is_key, ret_code);
	for (const char *pair = meanings; *pair != '\0'; pair += 2)
		if (c == *pair) {
			scan->pos++;
			*ret_code = (uint32_t)pair[1];
			return true;
		}
	return json_scan_fail(scan, scan->pos - 1, "unknown escape in a string");
}

size_t
json_scan_plain(const char *text, size_t len)
{
	const uint64_t ones = UINT64_C(0x0101010101010101), highs = ones << 7;
	size_t n = 0;

	for (; len - n >= sizeof(uint64_t); n += sizeof(uint64_t)) {
		uint64_t word, quote, slash;

		memcpy(&word, text + n, sizeof word);
		quote = word ^ ones * '"';
		slash = word ^ ones * '\\';
		/* Not exact which byte it is, but whether there is one: no byte is missed. */
		if (((word | (word - ones * 0x20) | (quote - ones) | (slash - ones)) & highs) != 0)
			break;
	}
	while (n < len && text[n] >= 0x20 && text[n] != '"' && text[n] != '\\')
		n++;
	return n;
}

/* Over the bytes that need no decoding; false: one of them is wrong. Stops at '"', '\\' and the end. */
static bool
scan_plain(struct json_scan *scan)
{
	for (;;) {
		bool valid;
		size_t n;
		int c;

		scan->pos += json_scan_plain(scan->text + scan->pos, scan->len - scan->pos);
		c = scan_peek(scan);
		if (c < 0 || c == '"' || c == '\\')
			return true;
		if (c < 0x20)
			return json_scan_fail(scan, scan->pos, "control character 0x%02x must be escaped", c);
		n = text_utf8_step(scan->text + scan->pos, scan->len - scan->pos, &valid);
		if (!valid)
			return json_scan_fail(scan, scan->pos, "invalid UTF-8 byte 0x%02x", c);
		scan->pos += n;
	}
}

static size_t
put_utf8(char *out, uint32_t code)
{
	if (code < 0x80 || (code & SCAN_BYTE) != 0) {
		out[0] = (char)code;
		return 1;
	}
	if (code < 0x800) {
		out[0] = (char)(0xc0 | code >> 6);
		out[1] = (char)(0x80 | (code & 0x3f));
		return 2;
	}
	if (code < 0x10000) {
		out[0] = (char)(0xe0 | code >> 12);
		out[1] = (char)(0x80 | (code >> 6 & 0x3f));
		out[2] = (char)(0x80 | (code & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | code >> 18);
	out[1] = (char)(0x80 | (code >> 12 & 0x3f));
	out[2] = (char)(0x80 | (code >> 6 & 0x3f));
	out[3] = (char)(0x80 | (code & 0x3f));
	return 4;
}

/* A piece that was found to be right and has escapes; no escape is shorter than what it stands for. */
static void
piece_decode(const struct json_scan *scan, struct json_piece *piece)
{
	struct json_scan inner = { .text = piece->text, .len = piece->len, .err = scan->err, .names = scan->names };
	char *out = must_alloc(malloc(piece->len));
	size_t len = 0;

	while (inner.pos < inner.len) {
		const char *from = inner.text + inner.pos;
		const char *slash = memchr(from, '\\', inner.len - inner.pos);
		size_t plain = slash != NULL ? (size_t)(slash - from) : inner.len - inner.pos;
		uint32_t code;

		memcpy(out + len, from, plain);
		len += plain;
		inner.pos += plain;
		if (slash != NULL && scan_escape(&inner, false, &code))
			len += put_utf8(out + len, code);
	}
	*piece = (struct json_piece){ .text = out, .len = len, .owned = out };
}

bool
json_scan_string(struct json_scan *scan, bool is_key, struct json_piece *ret_piece)
{
	size_t start = ++scan->pos;
	bool escaped = false;
	uint32_t code;

	for (;;) {
		int c;

		if (!scan_plain(scan))
			return false;
		c = scan_peek(scan);
		if (c < 0)
			return json_scan_fail(scan, start - 1, "this string does not end");
		if (c == '"')
			break;
		escaped = true;
		if (!scan_escape(scan, is_key, &code))
			return false;
	}
	*ret_piece = (struct json_piece){ .text = scan->text + start, .len = scan->pos - start };
	if (escaped)
		piece_decode(scan, ret_piece);
	scan->pos++;
	return true;
}

/* --- numbers and words --- */

static bool
scan_digits(struct json_scan *scan)
{
	if (!scan_is_digit(scan_peek(scan)))
		return json_scan_expected(scan, "a digit");
	while (scan_is_digit(scan_peek(scan)))
		scan->pos++;
	return true;
}

/* The grammar was fine; does the value fit? A fraction keeps its text, so that it is written as it came. */
static bool
number_build(struct json_scan *scan, size_t start, bool is_integer, struct json_object **ret_value)
{
	size_t len = scan->pos - start;
	char digits[NUMBER_MAX + 1];
	double fraction;
	int64_t value = 0;

	if (len > NUMBER_MAX)
		return json_scan_fail(scan, start, "a number of more than %d characters", NUMBER_MAX);
	memcpy(digits, scan->text + start, len);
	digits[len] = '\0';
	if (!is_integer) {
		fraction = strtod(digits, NULL);
		if (isinf(fraction))
			return json_scan_fail(scan, start, "number too large");
		*ret_value = must_alloc(json_object_new_double_s(fraction, digits));
		return true;
	}
	for (const char *p = digits + (digits[0] == '-'); *p != '\0'; p++) {
		int digit = digits[0] == '-' ? '0' - *p : *p - '0';

		if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, digit, &value))
			return json_scan_fail(scan, start, "integer does not fit 64 bits");
	}
	*ret_value = must_alloc(json_object_new_int64(value));
	return true;
}

bool
json_scan_number(struct json_scan *scan, struct json_object **ret_value)
{
	size_t start = scan->pos;
	bool is_integer = true;

	if (scan_peek(scan) == '-')
		scan->pos++;
	if (scan_peek(scan) == 'I')
		return json_scan_fail(scan, start, "NaN and Infinity are not JSON");
	if (scan_peek(scan) == '0') {
		scan->pos++;
		if (scan_is_digit(scan_peek(scan)))
			return json_scan_fail(scan, start, "a number must not start with 0");
	} else if (!scan_digits(scan))
		return false;
	if (scan_peek(scan) == '.') {
		is_integer = false;
		scan->pos++;
		if (!scan_digits(scan))
			return false;
	}
	if (scan_peek(scan) == 'e' || scan_peek(scan) == 'E') {
		is_integer = false;
		scan->pos++;
		if (scan_peek(scan) == '+' || scan_peek(scan) == '-')
			scan->pos++;
		if (!scan_digits(scan))
			return false;
	}
	return number_build(scan, start, is_integer, ret_value);
}

static bool
scan_has_word(struct json_scan *scan, const char *word)
{
	size_t len = strlen(word);

	if (scan->len - scan->pos < len || memcmp(scan->text + scan->pos, word, len) != 0)
		return false;
	scan->pos += len;
	return true;
}

bool
json_scan_word(struct json_scan *scan, struct json_object **ret_value)
{
	*ret_value = NULL;
	if (scan_has_word(scan, "null"))
		return true;
	if (scan_has_word(scan, "true"))
		*ret_value = must_alloc(json_object_new_boolean(true));
	else if (scan_has_word(scan, "false"))
		*ret_value = must_alloc(json_object_new_boolean(false));
	else if (scan_peek(scan) == 'N' || scan_peek(scan) == 'I')
		return json_scan_fail(scan, scan->pos, "NaN and Infinity are not JSON");
	return *ret_value != NULL || json_scan_expected(scan, "a value");
}
