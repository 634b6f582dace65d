/* test_json.c - what json_parse() refuses, what it takes, and that both stay cheap. */
/* SPDX-License-Identifier: MIT */
#include "base/err.h"
#include "base/text.h"
#include "base/json.h"

#include <json-c/json.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

/* The text may hold NULs, so its size comes from the literal. */
#define CASE(text, at, what)                                                                                       \
	{                                                                                                          \
		text, sizeof text - 1, at, what                                                                    \
	}

static const struct {
	const char *text;
	size_t len;
	int at; /* byte that the message names */
	const char *what;
} rejects[] = {
	CASE("", 0, "the end of the text"),
	CASE("  \n", 3, "the end of the text"),
	CASE("{\"a\":1,\"a\":2}", 7, "duplicate key 'a'"),
	CASE("{\"a\":1,\"\\u0061\":2}", 7, "duplicate key 'a'"),
	CASE("[{\"x\":{\"k\":[],\"k\":[]}}]", 14, "duplicate key 'k'"),
	CASE("{\"\":1,\"\":1}", 6, "duplicate key ''"),
	CASE("NaN", 0, "NaN and Infinity"),
	CASE("[Infinity]", 1, "NaN and Infinity"),
	CASE("{\"a\":-Infinity}", 5, "NaN and Infinity"),
	CASE("nan", 0, "expected a value"),
	CASE("9223372036854775808", 0, "does not fit 64 bits"),
	CASE("-9223372036854775809", 0, "does not fit 64 bits"),
	CASE("[99999999999999999999999999]", 1, "does not fit 64 bits"),
	CASE("1e400", 0, "too large"),
	CASE("[-1e400]", 1, "too large"),
	CASE("\xef\xbb\xbf[1]", 0, "byte-order mark"),
	CASE("\xfe\xff", 0, "byte 0xfe"),
	CASE("[1] x", 4, "nothing behind the value"),
	CASE("[1][2]", 3, "nothing behind the value"),
	CASE("1\0", 1, "byte 0x00"),
	CASE("\0", 0, "byte 0x00"),
	CASE("[1,\0 2]", 3, "byte 0x00"),
	CASE("[1,]", 3, "expected a value, found ']'"),
	CASE("[,1]", 1, "expected a value"),
	CASE("[1 2]", 3, "expected ',' or ']'"),
	CASE("{\"a\":1,}", 7, "expected a key"),
	CASE("{\"a\" 1}", 5, "expected ':'"),
	CASE("{\"a\":}", 5, "expected a value"),
	CASE("{\"a\":1]", 6, "expected ',' or '}'"),
	CASE("{a:1}", 1, "expected a key"),
	CASE("{'a':1}", 1, "expected a key"),
	CASE("'a'", 0, "expected a value"),
	CASE("[", 1, "the end of the text"),
	CASE("{\"a\":[1", 7, "the end of the text"),
	CASE("// c\n1", 0, "expected a value"),
	CASE("/*c*/1", 0, "expected a value"),
	CASE("True", 0, "expected a value"),
	CASE("nul", 0, "expected a value"),
	CASE("truex", 4, "nothing behind the value"),
	CASE("01", 0, "must not start with 0"),
	CASE("-01", 0, "must not start with 0"),
	CASE("+1", 0, "expected a value"),
	CASE("1.", 2, "expected a digit"),
	CASE(".5", 0, "expected a value"),
	CASE("1e", 2, "expected a digit"),
	CASE("1e+", 3, "expected a digit"),
	CASE("-", 1, "expected a digit"),
	CASE("0x10", 1, "nothing behind the value"),
	CASE("\"abc", 0, "does not end"),
	CASE("\"abc\\", 4, "unknown escape"),
	CASE("\"\\x41\"", 1, "unknown escape"),
	CASE("\"\\\0\"", 1, "unknown escape"),
	CASE("\"\\u12g4\"", 1, "four hex digits"),
	CASE("\"\\u12", 1, "four hex digits"),
	CASE("\"a\nb\"", 2, "must be escaped"),
	CASE("\"a\0b\"", 2, "must be escaped"),
	CASE("\"\xff\"", 1, "invalid UTF-8"),
	CASE("\"\xc0\xaf\"", 1, "invalid UTF-8"),
	CASE("\"\xed\xa0\x80\"", 1, "invalid UTF-8"),
	CASE("\"\xf4\x90\x80\x80\"", 1, "invalid UTF-8"),
	CASE("\"\xe2\x82\"", 1, "invalid UTF-8"),
	CASE("\"\\ud800\"", 1, "surrogate"),
	CASE("\"\\udc00\"", 1, "surrogate"),
	CASE("\"\\ud83d\\u0041\"", 1, "surrogate"),
	CASE("{\"a\\u0000b\":1}", 3, "must not contain NUL"),
	CASE("null", -1, "null"),
};

static void
test_malformed_text_is_refused_with_its_offset(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rejects / sizeof rejects[0]; i++) {
		/* A copy without a NUL behind, so that tools see any read beyond the end. */
		char *text = malloc(rejects[i].len + (rejects[i].len == 0));
		struct err err = { 0 };
		struct json_object *value;
		char at[32];

		memcpy(text, rejects[i].text, rejects[i].len);
		value = json_parse(text, rejects[i].len, &err);
		free(text);
		if (value != NULL)
			fail_msg("accepted: %s", rejects[i].text);
		assert_int_equal(err.code, ERR_INVALID);
		if (strstr(err.msg, rejects[i].what) == NULL)
			fail_msg("%s: %s", rejects[i].text, err.msg);
		snprintf(at, sizeof at, "at byte %d:", rejects[i].at);
		if (rejects[i].at >= 0 && strstr(err.msg, at) == NULL)
			fail_msg("%s: %s", rejects[i].text, err.msg);
	}
}

static const struct {
	const char *text, *compact;
} accepts[] = {
	{ "{}", "{}" },
	{ " [ 1 , 2 ] \r\n\t", "[1,2]" },
	{ "9223372036854775807", "9223372036854775807" },
	{ "-9223372036854775808", "-9223372036854775808" },
	{ "0", "0" },
	{ "-1.5E+2", "-1.5E+2" },
	{ "1e-400", "1e-400" },
	{ "123456789012345678901234567890.5", "123456789012345678901234567890.5" },
	{ "true", "true" },
	{ "[null,false]", "[null,false]" },
	{ "\"\\ud83d\\ude00\"", "\"\xf0\x9f\x98\x80\"" },
	{ "\"a\\u0000b\"", "\"a\\u0000b\"" },
	{ "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\\"\\\\/\\b\\f\\n\\r\\t\"" },
	{ "{\"a\":{\"a\":1},\"b\":{\"a\":1},\"A\":1}", "{\"a\":{\"a\":1},\"b\":{\"a\":1},\"A\":1}" },
	{ "\"\xe2\x82\xac\"", "\"\xe2\x82\xac\"" },
	{ "\"\\u0024 \\u00a3 \\u20AC \\ud800\\udc00\"", "\"$ \xc2\xa3 \xe2\x82\xac \xf0\x90\x80\x80\"" },
	{ "{\"\\u20ac\\n\":[\"\"]}", "{\"\xe2\x82\xac\\n\":[\"\"]}" },
	{ "\"\x7f long enough for more than one word\"", "\"\x7f long enough for more than one word\"" },
};

static void
test_good_text_comes_back_compact(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof accepts / sizeof accepts[0]; i++) {
		size_t len = strlen(accepts[i].text), out_len;
		char *text = malloc(len);
		struct err err;
		AUTO_JSON struct json_object *value = NULL;

		memcpy(text, accepts[i].text, len);
		value = json_parse(text, len, &err);
		free(text);
		if (value == NULL)
			fail_msg("%s: %s", accepts[i].text, err.msg);
		assert_string_equal(json_text(value, &out_len), accepts[i].compact);
		assert_int_equal(out_len, strlen(accepts[i].compact));
	}
}

/* Strings are read several bytes at a time: whatever ends or spoils one is seen wherever it stands. */
static void
test_every_byte_of_a_string_is_looked_at(void **state)
{
	static const char *const bad[] = { "\n", "\x1f", "\x80", "\xff", "\\x" };
	char text[32];
	struct err err;

	(void)state;
	for (size_t at = 1; at < 24; at++) {
		AUTO_JSON struct json_object *value = NULL;

		memset(text, 'a', sizeof text);
		text[0] = '"';
		text[at] = '"';
		value = json_parse(text, at + 1, &err);
		assert_non_null(value);
		assert_int_equal(json_object_get_string_len(value), at - 1);
		for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
			char at_byte[32];

			memset(text + 1, '!', sizeof text - 2);
			text[25 + 1] = '"';
			memcpy(text + at, bad[i], strlen(bad[i]));
			assert_null(json_parse(text, 27, &err));
			snprintf(at_byte, sizeof at_byte, "at byte %zu:", at);
			assert_non_null(strstr(err.msg, at_byte));
		}
	}
}

static void
test_keys_of_any_length(void **state)
{
	(void)state;
	for (size_t len = 0; len < 200; len++) {
		char text[1024], key[256] = { 0 };
		struct err err;
		AUTO_JSON struct json_object *value = NULL;

		memset(key, 'k', len);
		snprintf(text, sizeof text, "{\"%s\":1,\"%sx\":{\"%s\":2}}", key, key, key);
		value = json_parse(text, strlen(text), &err);
		assert_non_null(value);
		assert_string_equal(json_text(value, NULL), text);
		snprintf(text, sizeof text, "{\"%s\":1,\"%s\":2}", key, key);
		assert_null(json_parse(text, strlen(text), &err));
		assert_non_null(strstr(err.msg, "duplicate key"));
	}
}

static void
test_depth_64_is_fine_and_65_is_not(void **state)
{
	char text[2 * 65];
	struct err err;
	struct json_object *value;

	(void)state;
	memset(text, '[', 64);
	memset(text + 64, ']', 64);
	value = json_parse(text, 128, &err);
	assert_non_null(value);
	json_object_put(value);
	memset(text, '[', 65);
	memset(text + 65, ']', 65);
	assert_null(json_parse(text, 130, &err));
	assert_non_null(strstr(err.msg, "at byte 64: nested more than 64 deep"));
}

static void
test_very_deep_text_does_not_use_the_stack(void **state)
{
	size_t len = 100000;
	char *text = malloc(len);
	struct err err;

	(void)state;
	memset(text, '[', len);
	assert_null(json_parse(text, len, &err));
	assert_int_equal(err.code, ERR_INVALID);
	free(text);
}

static void
test_too_many_values_are_refused(void **state)
{
	size_t len = 2 * (JSON_MAX_VALUES + 1) + 1;
	char *text = malloc(len);
	struct err err;

	(void)state;
	memset(text, '1', len);
	text[0] = '[';
	for (size_t i = 2; i < len; i += 2)
		text[i] = ',';
	text[len - 1] = ']';
	assert_null(json_parse(text, len, &err));
	assert_non_null(strstr(err.msg, "values"));
	free(text);
}

/* An object of so many keys, the last one twice. */
static char *
many_keys(int keys, size_t *ret_len)
{
	char *text = malloc((size_t)keys * 24 + 64);
	size_t len = (size_t)sprintf(text, "{");

	for (int i = 0; i < keys; i++)
		len += (size_t)sprintf(text + len, "\"key%d\":1,", i);
	*ret_len = len + (size_t)sprintf(text + len, "\"key%d\":1}", keys - 1);
	return text;
}

static void
test_many_keys_take_linear_time(void **state)
{
	size_t len;
	char *text = many_keys(160000, &len);
	clock_t ours = 0, bare = 0, start;
	struct err err;

	(void)state;
	/* The same keys in a reader that does not look for duplicates; to compare each with each takes hundreds of times as long. */
	for (int i = 0; i < 3; i++) {
		start = clock();
		assert_null(json_parse(text, len, &err));
		ours += clock() - start;
		assert_non_null(strstr(err.msg, "duplicate key"));
		start = clock();
		json_object_put(json_tokener_parse(text));
		bare += clock() - start;
	}
	free(text);
	assert_true(ours < 30 * bare);
}

static void
test_numbers_print_short(void **state)
{
	AUTO_JSON struct json_object *value = json_object_new_double(0.1);

	(void)state;
	assert_string_equal(json_text(value, NULL), "0.1");
}

/* json-c wrote these texts for long; what is stored and answered stays the same to the byte. */
static void
test_text_is_what_json_c_writes(void **state)
{
	AUTO_JSON struct json_object *value = json_object_new_object();
	struct json_object *list = json_object_new_array();
	char bytes[256];
	size_t len;

	(void)state;
	for (int i = 0; i < 256; i++)
		bytes[i] = (char)i;
	json_object_object_add(value, "bytes\n\"", json_object_new_string_len(bytes, sizeof bytes));
	json_object_object_add(value, "list", list);
	json_object_array_add(list, json_object_new_int64(INT64_MIN));
	json_object_array_add(list, json_object_new_int64(INT64_MAX));
	json_object_array_add(list, json_object_new_uint64(UINT64_MAX));
	json_object_array_add(list, json_object_new_int(0));
	json_object_array_add(list, json_object_new_double(1.0));
	json_object_array_add(list, json_object_new_double(1e300));
	json_object_array_add(list, json_object_new_boolean(true));
	json_object_array_add(list, NULL);
	json_object_array_add(list, json_object_new_object());
	json_object_array_add(list, json_object_new_array());
	json_object_array_add(list, json_object_new_string(""));

	const char *text = json_text(value, &len);

	assert_int_equal(len, strlen(text));
	assert_string_equal(text,
		json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
	/* Asked again after a change. */
	json_object_object_add(value, "more", NULL);
	assert_non_null(strstr(json_text(value, NULL), ",\"more\":null}"));
}

/* Every byte string comes back as it went, whatever of it is UTF-8. */
static void
test_names_that_are_no_utf8_come_back(void **state)
{
	static const char *const names[] = { "\xff", "a\xffz", "\xc3\xa9\xc3", "\xed\xa0\x80", "\xf0\x9f\x98",
		"\\udc80", "\"\\\n\x80\x01", "\xe2\x98\x95" };
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		AUTO_JSON struct json_object *value = json_object_new_object();
		AUTO_JSON struct json_object *back = NULL;
		AUTO_FREE char *text = NULL;
		struct json_object *name;
		size_t len;

		json_object_object_add(value, "name", json_object_new_string(names[i]));
		text = json_text_names(value, &len);
		assert_int_equal(len, strlen(text));
		assert_true(text_is_utf8(text, len));
		back = json_parse_names(text, len, &err);
		assert_non_null(back);
		assert_true(json_object_object_get_ex(back, "name", &name));
		assert_string_equal(json_object_get_string(name), names[i]);
	}
}

static void
test_half_pairs_are_bytes_of_names_only(void **state)
{
	static const char *const bad[] = { "[\"\\ud800\"]", "[\"\\udc7f\"]", "[\"\\ude00\"]", "{\"\\udc80\":1}" };
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_null(json_parse_names(bad[i], strlen(bad[i]), &err));
	assert_null(json_parse("[\"\\udc80\"]", 10, &err));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_malformed_text_is_refused_with_its_offset),
		cmocka_unit_test(test_good_text_comes_back_compact),
		cmocka_unit_test(test_every_byte_of_a_string_is_looked_at),
		cmocka_unit_test(test_keys_of_any_length),
		cmocka_unit_test(test_depth_64_is_fine_and_65_is_not),
		cmocka_unit_test(test_very_deep_text_does_not_use_the_stack),
		cmocka_unit_test(test_too_many_values_are_refused),
		cmocka_unit_test(test_many_keys_take_linear_time),
		cmocka_unit_test(test_numbers_print_short),
		cmocka_unit_test(test_text_is_what_json_c_writes),
		cmocka_unit_test(test_names_that_are_no_utf8_come_back),
		cmocka_unit_test(test_half_pairs_are_bytes_of_names_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
