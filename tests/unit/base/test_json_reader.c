/* test_json_reader.c - fields are typed strictly, and all faults of a body come at once. */
/* SPDX-License-Identifier: MIT */
#include "base/err.h"
#include "base/json.h"

#include <json-c/json_object.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct json_object *body;
static struct json_reader reader;

static void
open_body(const char *text)
{
	struct err err;

	body = json_parse(text, strlen(text), &err);
	if (body == NULL)
		fail_msg("%s", err.msg);
	json_reader_init(&reader, body);
}

/* The faults so far must be exactly this text; frees the body. */
static void
close_body(const char *faults)
{
	if (faults == NULL)
		assert_null(reader.faults);
	else
		assert_string_equal(json_text(reader.faults, NULL), faults);
	json_reader_fini(&reader);
	json_object_put(body);
}

#define FAULT(field, msg, type) "{\"loc\":[\"body\",\"" field "\"],\"msg\":\"" msg "\",\"type\":\"" type "\"}"

static void
test_right_fields_are_read(void **state)
{
	const char *text = NULL, *bytes = NULL;
	struct json_object *map = NULL;
	int64_t number = 0, whole = 0;
	double fraction = 0;
	bool flag = false;
	size_t len = 0;

	(void)state;
	open_body("{\"s\":\"text\",\"b\":\"a\\u0000b\",\"f\":true,\"i\":-7,\"w\":5.0,\"n\":2,\"m\":{\"A\":\"1\"}}");
	assert_true(json_reader_has(&reader, "s"));
	assert_true(json_reader_require(&reader, "s"));
	assert_true(json_reader_string(&reader, "s", 4, &text));
	assert_string_equal(text, "text");
	assert_true(json_reader_bytes(&reader, "b", 3, &bytes, &len));
	assert_int_equal(len, 3);
	assert_memory_equal(bytes, "a\0b", 3);
	assert_true(json_reader_bool(&reader, "f", &flag));
	assert_true(flag);
	assert_true(json_reader_int(&reader, "i", -7, 0, &number));
	assert_int_equal(number, -7);
	assert_true(json_reader_int(&reader, "w", 0, 5, &whole));
	assert_int_equal(whole, 5);
	assert_true(json_reader_number(&reader, "n", 0, 2, &fraction));
	assert_true(fraction > 1.9 && fraction < 2.1);
	assert_true(json_reader_string_map(&reader, "m", &map));
	assert_int_equal(json_object_object_length(map), 1);
	close_body(NULL);
}

static void
test_absent_and_null_keep_the_default_without_fault(void **state)
{
	const char *text = "default";
	int64_t number = 42;
	bool flag = true;

	(void)state;
	open_body("{\"s\":null}");
	assert_false(json_reader_has(&reader, "s"));
	assert_false(json_reader_string(&reader, "s", 10, &text));
	assert_false(json_reader_int(&reader, "i", 0, 1, &number));
	assert_false(json_reader_bool(&reader, "f", &flag));
	assert_string_equal(text, "default");
	assert_int_equal(number, 42);
	assert_true(flag);
	close_body(NULL);
}

static void
test_required_fields_may_not_be_null(void **state)
{
	(void)state;
	open_body("{\"s\":null}");
	assert_false(json_reader_require(&reader, "s"));
	assert_false(json_reader_require(&reader, "t"));
	close_body("[" FAULT("s", "is required", "missing") "," FAULT("t", "is required", "missing") "]");
}

static void
test_nothing_is_coerced(void **state)
{
	const char *text = "default";
	struct json_object *map = NULL;
	int64_t number = 42;
	double fraction = 0;
	bool flag = true;

	(void)state;
	open_body("{\"one\":1,\"text\":\"1\",\"yes\":true,\"list\":[]}");
	assert_false(json_reader_string(&reader, "one", 10, &text));
	assert_false(json_reader_int(&reader, "text", 0, 9, &number));
	assert_false(json_reader_int(&reader, "yes", 0, 9, &number));
	assert_false(json_reader_bool(&reader, "one", &flag));
	assert_false(json_reader_number(&reader, "yes", 0, 9, &fraction));
	assert_false(json_reader_string_map(&reader, "list", &map));
	assert_string_equal(text, "default");
	assert_int_equal(number, 42);
	assert_true(flag);
	assert_null(map);
	close_body("[" FAULT("one", "must be a string", "string_type") "," FAULT(
		"text", "must be a whole number", "int_type") "," FAULT("yes", "must be a whole number",
		"int_type") "," FAULT("one", "must be true or false", "bool_type") "," FAULT("yes",
		"must be a number", "float_type") "," FAULT("list", "must be an object", "object_type") "]");
}

static void
test_strings_are_bounded_and_free_of_nul(void **state)
{
	const char *text = "default";

	(void)state;
	open_body("{\"long\":\"12345\",\"nul\":\"a\\u0000b\"}");
	assert_false(json_reader_string(&reader, "long", 4, &text));
	assert_false(json_reader_string(&reader, "nul", 9, &text));
	assert_string_equal(text, "default");
	close_body("[" FAULT("long", "must have at most 4 bytes, has 5", "string_too_long") "," FAULT(
		"nul", "must not contain NUL", "value_error") "]");
}

static void
test_numbers_are_bounded(void **state)
{
	int64_t number = 42;
	double fraction = 42;

	(void)state;
	open_body("{\"i\":10,\"half\":1.5,\"huge\":1e300,\"edge\":9223372036854775808.0,\"d\":0.5}");
	assert_false(json_reader_int(&reader, "i", 1, 9, &number));
	assert_false(json_reader_int(&reader, "i", 11, INT64_MAX, &number));
	assert_false(json_reader_int(&reader, "half", 1, 9, &number));
	assert_false(json_reader_int(&reader, "huge", 1, 9, &number));
	assert_false(json_reader_int(&reader, "edge", INT64_MIN, INT64_MAX, &number));
	assert_false(json_reader_number(&reader, "d", 1, 8640000, &fraction));
	assert_int_equal(number, 42);
	assert_true(fraction > 41);
	close_body("[" FAULT("i", "must be between 1 and 9", "value_error") "," FAULT("i", "must be at least 11",
		"value_error") "," FAULT("half", "must be a whole number", "int_type") "," FAULT("huge",
		"must be between 1 and 9", "value_error") "," FAULT("edge", "must be at least -9223372036854775808",
		"value_error") "," FAULT("d", "must be between 1 and 8640000", "value_error") "]");
}

static void
test_string_map_names_each_wrong_key(void **state)
{
	struct json_object *map = NULL;

	(void)state;
	open_body("{\"env\":{\"A\":\"1\",\"B\":2,\"C\":null,\"D\":\"x\\u0000\"}}");
	assert_false(json_reader_string_map(&reader, "env", &map));
	assert_null(map);
	close_body("[{\"loc\":[\"body\",\"env\",\"B\"],\"msg\":\"must be a string\",\"type\":\"string_type\"},"
		   "{\"loc\":[\"body\",\"env\",\"C\"],\"msg\":\"must be a string\",\"type\":\"string_type\"},"
		   "{\"loc\":[\"body\",\"env\",\"D\"],\"msg\":\"must not contain NUL\",\"type\":\"value_error\"}]");
}

static void
test_own_faults_are_added(void **state)
{
	(void)state;
	open_body("{}");
	json_reader_fault(&reader, "image", "value_error", "%s is \"%s\"", "image", "odd");
	json_reader_fault(&reader, NULL, "value_error", "all of it");
	close_body("[" FAULT("image", "image is \\\"odd\\\"",
		"value_error") ","
			       "{\"loc\":[\"body\"],\"msg\":\"all of it\",\"type\":\"value_error\"}]");
}

static void
test_number_of_faults_is_bounded(void **state)
{
	(void)state;
	open_body("{}");
	for (int i = 0; i < 1000; i++)
		json_reader_fault(&reader, "x", "value_error", "again");
	assert_int_equal(json_object_array_length(reader.faults), 64);
	json_reader_fini(&reader);
	json_object_put(body);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_right_fields_are_read),
		cmocka_unit_test(test_absent_and_null_keep_the_default_without_fault),
		cmocka_unit_test(test_required_fields_may_not_be_null),
		cmocka_unit_test(test_nothing_is_coerced),
		cmocka_unit_test(test_strings_are_bounded_and_free_of_nul),
		cmocka_unit_test(test_numbers_are_bounded),
		cmocka_unit_test(test_string_map_names_each_wrong_key),
		cmocka_unit_test(test_own_faults_are_added),
		cmocka_unit_test(test_number_of_faults_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
