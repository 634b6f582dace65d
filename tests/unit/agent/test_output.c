/* test_output.c - head, tail, exact counts, bounded memory. */
/* SPDX-License-Identifier: MIT */
#include "agent/hold.h"
#include "agent/output.h"

#include "base/text.h"

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

/* Wherever the cap falls, head and tail are whole characters, and the marker counts what is missing. */
static void
test_no_character_is_cut(void **state)
{
	static const char *const characters[] = { "\xc3\xa9", "\xe2\x98\x95", "\xf0\x9f\x98\x80" };

	(void)state;
	for (size_t i = 0; i < 3; i++)
		for (size_t max = 0; max < 40; max++) {
			size_t size = strlen(characters[i]), len;
			struct output output;
			uint8_t *text;
			char *mark;

			output_init(&output, max);
			for (size_t n = 0; n < 20; n++)
				output_add(&output, characters[i], size);
			output_text(&output, &text, &len);
			assert_true(text_is_utf8(text, len));
			mark = strstr((char *)text, "\n...[");
			assert_int_equal(mark != NULL, max < 20 * size);
			if (mark != NULL)
				assert_int_equal(strtoul(mark + 5, NULL, 10) + len,
					20 * size + strlen("\n...[NN bytes omitted]...\n") -
						(strtoul(mark + 5, NULL, 10) < 10));
			free(text);
			output_fini(&output);
		}
}

static void
test_a_reader_that_is_waited_for_gets_all(void **state)
{
	static char piece[64 << 10];
	struct output output;
	struct hold hold;
	uint64_t at;
	size_t room, read = 0;

	(void)state;
	hold_init(&hold, 3600 * 1000);
	output_init(&output, 10);
	output_hold(&output, &hold);
	memset(piece, 'x', sizeof piece);
	while ((room = output_room(&output)) > 0)
		output_add(&output, piece, room < sizeof piece ? room : sizeof piece);
	assert_true(output_is_owed(&output));
	for (size_t i = 0; i < 40; i++) {
		assert_true(output_read(&output, read, piece, 1, &at) == 1 && at == read);
		read += output_read(&output, read, piece, 5000, &at);
		output_take(&output, read);
		output_add(&output, piece, output_room(&output));
	}
	assert_int_equal(output_room(&output), 0);
	hold.heard_ms -= 3600 * 1000;
	assert_int_equal(output_room(&output), SIZE_MAX);
	assert_false(output_is_owed(&output));
	hold_hear(&hold);
	assert_int_equal(output_room(&output), 0);
	output_take(&output, output.total);
	assert_false(output_is_owed(&output));
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
		cmocka_unit_test(test_no_character_is_cut),
		cmocka_unit_test(test_cap_of_zero_still_counts),
		cmocka_unit_test(test_a_reader_that_is_waited_for_gets_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
