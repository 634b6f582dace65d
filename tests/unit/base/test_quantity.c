/* test_quantity.c - amounts are read as Kubernetes reads them, or refused. */
/* SPDX-License-Identifier: MIT */
#include "base/quantity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void
test_cpu_is_read_in_thousandths(void **state)
{
	static const struct {
		const char *text;
		int32_t milli;
	} cases[] = {
		{ "1", 1000 },
		{ "4", 4000 },
		{ "0.5", 500 },
		{ ".5", 500 },
		{ "5.", 5000 },
		{ "+2", 2000 },
		{ "2000m", 2000 },
		{ "500m", 500 },
		{ "1e3", 1000000 },
		{ "1E3", 1000000 },
		{ "15e-1", 1500 },
		{ "2k", 2000000 },
		{ "0.1", 100 },
		{ "0.0001", 1 }, /* rounded up to the smallest unit */
		{ "100u", 1 },
		{ "1500u", 2 },
		{ "1n", 1 },
		{ "0.10000000000000000555", 101 },
		{ "1Ki", 1024000 },
		{ "00000000000000000000000000001", 1000 },
		{ "2147483647m", 2147483647 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int32_t milli = -1;

		if (quantity_parse_cpu(cases[i].text, &milli) != 0 || milli != cases[i].milli)
			fail_msg("cpu %s -> %d, not %d", cases[i].text, milli, cases[i].milli);
	}
}

static void
test_memory_is_read_in_bytes(void **state)
{
	static const struct {
		const char *text;
		int64_t bytes;
	} cases[] = {
		{ "1", 1 },
		{ "16Gi", INT64_C(16) << 30 },
		{ "512Mi", INT64_C(512) << 20 },
		{ "1.5Gi", INT64_C(3) << 29 },
		{ "1Ki", 1024 },
		{ "1G", 1000000000 },
		{ "1k", 1000 },
		{ "1e3", 1000 },
		{ "1E3", 1000 },
		{ "1E", INT64_C(1000000000000000000) },
		{ "1Ei", INT64_C(1) << 60 },
		{ "1Pi", INT64_C(1) << 50 },
		{ "0.5", 1 },
		{ "1m", 1 },
		{ "1000m", 1 },
		{ "1001m", 2 },
		{ "9223372036854775807", INT64_MAX },
		{ "134217728", 134217728 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int64_t bytes = -1;

		if (quantity_parse_memory(cases[i].text, &bytes) != 0 || bytes != cases[i].bytes)
			fail_msg("memory %s -> %jd, not %jd", cases[i].text, (intmax_t)bytes,
				(intmax_t)cases[i].bytes);
	}
}

static void
test_wrong_amounts_are_refused_and_leave_the_value(void **state)
{
	static const char *const cases[] = { "", " ", "0", "0.0", "-1", "abc", "1 ", " 1", "16G b", "1K", "1ki",
		"1gi", "1KI", "1e", "1e+", "1ee3", "1e3Ki", "1.2.3", ".", "+", "--1", "1Gi1", "0x10", "NaN", "inf",
		"123456789012345678901", "9223372036854775808", "8Ei", "10E", "1e19", "1e999999999999", "0e5",
		"\xff", "1\xc2\xa0" };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int32_t milli = 7;
		int64_t bytes = 7;

		if (quantity_parse_memory(cases[i], &bytes) == 0 || bytes != 7)
			fail_msg("memory %s was taken", cases[i]);
		if (quantity_parse_cpu(cases[i], &milli) == 0 || milli != 7)
			fail_msg("cpu %s was taken", cases[i]);
	}
	int32_t milli = 7;
	assert_int_equal(quantity_parse_cpu("2147484", &milli), -1);
	assert_int_equal(milli, 7);
}

static void
test_amounts_are_written_as_people_write_them(void **state)
{
	char text[QUANTITY_TEXT_SIZE];

	(void)state;
	quantity_cpu_text(2000, text);
	assert_string_equal(text, "2");
	quantity_cpu_text(500, text);
	assert_string_equal(text, "500m");
	quantity_cpu_text(1500, text);
	assert_string_equal(text, "1500m");
	quantity_memory_text(INT64_C(2) << 30, text);
	assert_string_equal(text, "2Gi");
	quantity_memory_text(INT64_C(1536) << 20, text);
	assert_string_equal(text, "1536Mi");
	quantity_memory_text(1000000000, text);
	assert_string_equal(text, "1G");
	quantity_memory_text(1025, text);
	assert_string_equal(text, "1025");
}

/* Nothing that stands in a cluster is too odd to be summed up. */
static void
test_amounts_of_a_cluster(void **state)
{
	static const struct {
		const char *text;
		int scale;
		int64_t amount;
	} cases[] = {
		{ "4", 3, 4000 },
		{ "3920m", 3, 3920 },
		{ "0", 3, 0 },
		{ "0m", 3, 0 },
		{ "2k", 3, 2000000 },
		{ "1e3", 3, 1000000 },
		{ "0.5", 3, 500 },
		{ "1u", 3, 1 },
		{ "512Mi", 0, 536870912 },
		{ "1Pi", 0, INT64_C(1) << 50 },
		{ "7Ei", 0, INT64_C(7) << 60 },
		{ "8Ei", 0, INT64_MAX },
		{ "123456789012345678901", 0, INT64_MAX },
		{ "-1", 3, 0 },
		{ "16G b", 0, 0 },
		{ "abc", 3, 0 },
		{ "", 3, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int64_t amount = quantity_amount(cases[i].text, cases[i].scale);

		if (amount != cases[i].amount)
			fail_msg("%s -> %lld, not %lld", cases[i].text, (long long)amount,
				(long long)cases[i].amount);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cpu_is_read_in_thousandths),
		cmocka_unit_test(test_memory_is_read_in_bytes),
		cmocka_unit_test(test_wrong_amounts_are_refused_and_leave_the_value),
		cmocka_unit_test(test_amounts_are_written_as_people_write_them),
		cmocka_unit_test(test_amounts_of_a_cluster),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
