/* test_usage.c - rates between two looks, percents of limits, and the order of rows. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/top/usage.h"
#include "base/json.h"
#include "orchardctl/output/print.h"

#include <json-c/json.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static const char before_text[] =
	"{\"a\":{\"sandbox_id\":\"a\",\"created_at\":1,\"seen_at\":10.0,\"usage\":{\"cpu_s\":1.0}},"
	"\"b\":{\"sandbox_id\":\"b\",\"created_at\":1,\"seen_at\":10.0,\"usage\":{\"cpu_s\":5.0}},"
	"\"gone\":{\"sandbox_id\":\"gone\",\"created_at\":1,\"seen_at\":10.0}}";
static const char now_text[] =
	"{\"a\":{\"sandbox_id\":\"a\",\"created_at\":1,\"seen_at\":12.0,\"cpu\":\"2\",\"memory\":\"1Ki\","
	"\"usage\":{\"cpu_s\":4.0,\"memory_bytes\":256,\"memory_peak_bytes\":512,\"pids\":3,\"disk_bytes\":null}},"
	"\"b\":{\"sandbox_id\":\"b\",\"created_at\":2,\"seen_at\":12.0,\"memory\":\"1Ki\",\"usage\":{\"cpu_s\":6.0,"
	"\"memory_bytes\":512}},"
	"\"c\":{\"sandbox_id\":\"c\",\"created_at\":3,\"seen_at\":12.0,\"usage\":null}}";

static struct json_object *
row(struct json_object *rows, size_t i)
{
	return json_object_array_get_idx(rows, i);
}

static void
test_rates(void **state)
{
	AUTO_JSON struct json_object *before = json_tokener_parse(before_text), *now = json_tokener_parse(now_text);
	AUTO_JSON struct json_object *rows = usage_rows(before, now);

	(void)state;
	assert_int_equal(json_object_array_length(rows), 3);
	assert_true(json_object_get_double(print_member(row(rows, 0), "cpu_percent")) == 150.0);
	assert_true(json_object_get_double(print_member(row(rows, 0), "memory_percent")) == 25.0);
	assert_string_equal(print_string(row(rows, 0), "cpu_limit"), "2");
	assert_null(print_member(row(rows, 0), "disk_bytes"));
	/* Another sandbox of the same name has no rate yet, and one without usage none at all. */
	assert_null(print_member(row(rows, 1), "cpu_percent"));
	assert_null(print_member(row(rows, 2), "memory_percent"));
}

static void
test_percents_have_one_digit(void **state)
{
	AUTO_JSON struct json_object *now = json_tokener_parse(
		"{\"a\":{\"sandbox_id\":\"a\",\"memory\":\"1Ki\",\"usage\":{\"memory_bytes\":35}}}");
	AUTO_JSON struct json_object *rows = usage_rows(NULL, now);

	(void)state;
	assert_string_equal(json_object_to_json_string(print_member(row(rows, 0), "memory_percent")), "3.4");
}

static void
test_order(void **state)
{
	static const struct {
		enum usage_order order;
		const char *names[3];
	} cases[] = {
		{ USAGE_BY_CPU, { "a", "b", "c" } },
		{ USAGE_BY_MEMORY, { "b", "a", "c" } },
		{ USAGE_BY_NAME, { "a", "b", "c" } },
		{ USAGE_BY_PIDS, { "a", "b", "c" } },
	};
	AUTO_JSON struct json_object *before = json_tokener_parse(before_text), *now = json_tokener_parse(now_text);

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		AUTO_JSON struct json_object *rows = usage_rows(before, now);

		usage_sort(rows, cases[i].order);
		for (size_t j = 0; j < 3; j++)
			assert_string_equal(print_string(row(rows, j), "sandbox_id"), cases[i].names[j]);
	}
}

static void
test_first_look_has_no_rates(void **state)
{
	AUTO_JSON struct json_object *now = json_tokener_parse(now_text), *rows = usage_rows(NULL, now);

	(void)state;
	for (size_t i = 0; i < 3; i++)
		assert_null(print_member(row(rows, i), "cpu_percent"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rates),
		cmocka_unit_test(test_percents_have_one_digit),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_first_look_has_no_rates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
