/* test_json.c - what json_parse() refuses, what it takes, and that both stay cheap. */
/* SPDX-License-Identifier: MIT */
#include "base/err.h"
#include "base/json.h"

#include <json-c/json_object.h>
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

/* Processor time that an object of so many keys takes, the last one twice. */
static double
duplicate_time(int keys)
{
	char *text = malloc((size_t)keys * 24 + 64);
	size_t len = 0;
	clock_t start;
	struct err err;

	len += (size_t)sprintf(text + len, "{");
	for (int i = 0; i < keys; i++)
		len += (size_t)sprintf(text + len, "\"key%d\":1,", i);
	len += (size_t)sprintf(text + len, "\"key%d\":1}", keys - 1);
	start = clock();
	assert_null(json_parse(text, len, &err));
	start = clock() - start;
	assert_non_null(strstr(err.msg, "duplicate key"));
	free(text);
	return (double)start;
}

static void
test_many_keys_take_linear_time(void **state)
{
	(void)state;
	/* Eight times the keys: about eight times as long, or 64 times if it were quadratic. */
	assert_true(duplicate_time(160000) < 32 * duplicate_time(20000));
}

static void
test_numbers_print_short(void **state)
{
	AUTO_JSON struct json_object *value = json_object_new_double(0.1);

	(void)state;
	assert_string_equal(json_text(value, NULL), "0.1");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_malformed_text_is_refused_with_its_offset),
		cmocka_unit_test(test_good_text_comes_back_compact),
		cmocka_unit_test(test_depth_64_is_fine_and_65_is_not),
		cmocka_unit_test(test_very_deep_text_does_not_use_the_stack),
		cmocka_unit_test(test_too_many_values_are_refused),
		cmocka_unit_test(test_many_keys_take_linear_time),
		cmocka_unit_test(test_numbers_print_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
