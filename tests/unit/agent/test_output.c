/* test_output.c - head, tail, exact counts, bounded memory. */
/* SPDX-License-Identifier: MIT */
#include "agent/output.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void
expect_text(const struct output *output, const char *wanted)
{
	uint8_t *text;
	size_t len;

	output_text(output, &text, &len);
	assert_int_equal(len, strlen(wanted));
	assert_memory_equal(text, wanted, len);
	free(text);
}

static void
test_what_fits_is_kept_whole(void **state)
{
	struct output output;

	(void)state;
	output_init(&output, 10);
	output_add(&output, "abcdefg", 7);
	output_add(&output, "hij", 3);
	assert_false(output_is_truncated(&output));
	expect_text(&output, "abcdefghij");
	output_settle(&output);
	expect_text(&output, "abcdefghij");
	assert_int_equal(output_held(&output), 10);
	output_fini(&output);
}

static void
test_one_byte_more_loses_the_middle(void **state)
{
	struct output output;

	(void)state;
	output_init(&output, 10);
	output_add(&output, "abcdefghijk", 11);
	assert_true(output_is_truncated(&output));
	assert_int_equal(output.total, 11);
	expect_text(&output, "abcde\n...[1 bytes omitted]...\nghijk");
	output_fini(&output);
}

/* Every way of cutting the same bytes into pieces gives the same tail. */
static void
test_tail_does_not_depend_on_pieces(void **state)
{
	char data[256];

	(void)state;
	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (char)('a' + i % 26);
	for (size_t piece = 1; piece <= sizeof data; piece++) {
		struct output output;
		uint8_t *text;
		size_t len;

		output_init(&output, 14);
		for (size_t at = 0; at < sizeof data; at += piece)
			output_add(&output, data + at, at + piece > sizeof data ? sizeof data - at : piece);
		output_text(&output, &text, &len);
		assert_int_equal(output.total, sizeof data);
		assert_memory_equal(text, data, 7);
		assert_memory_equal(text + len - 7, data + sizeof data - 7, 7);
		free(text);
		output_fini(&output);
	}
}

static void
test_memory_grows_with_output_only(void **state)
{
	struct output output;
	static char block[1 << 16];

	(void)state;
	output_init(&output, 1 << 20);
	output_add(&output, "x", 1);
	assert_true(output_held(&output) <= 4096);
	for (size_t i = 0; i < 64; i++)
		output_add(&output, block, sizeof block);
	assert_int_equal(output_held(&output), 1 << 20);
	assert_int_equal(output.total, 1 + 64 * sizeof block);
	output_fini(&output);
}

static void
test_cap_of_zero_still_counts(void **state)
{
	struct output output;

	(void)state;
	output_init(&output, 0);
	output_add(&output, "abc", 3);
	assert_int_equal(output.total, 3);
	assert_int_equal(output_held(&output), 0);
	expect_text(&output, "\n...[3 bytes omitted]...\n");
	output_fini(&output);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_fits_is_kept_whole),
		cmocka_unit_test(test_one_byte_more_loses_the_middle),
		cmocka_unit_test(test_tail_does_not_depend_on_pieces),
		cmocka_unit_test(test_memory_grows_with_output_only),
		cmocka_unit_test(test_cap_of_zero_still_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
