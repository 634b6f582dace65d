/* test_noise.c - two known lines at one exact place, and never another byte. */
/* SPDX-License-Identifier: MIT */
#include "agent/noise.h"
#include "agent/output.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FIRST  "bash: cannot set terminal process group (-1): Inappropriate ioctl for device\n"
#define NUMBER "bash: cannot set terminal process group (12345): Inappropriate ioctl for device\n"
#define SECOND "bash: no job control in this shell\n"

/* The text passes in pieces of every size. */
static void
expect(bool expected, const char *text, const char *wanted)
{
	size_t len = strlen(text);

	for (size_t piece = 1; piece <= len; piece++) {
		struct output output;
		struct noise noise;
		uint8_t *got;
		size_t got_len;

		output_init(&output, 4096);
		noise_init(&noise, expected);
		for (size_t at = 0; at < len; at += piece)
			noise_pass(&noise, &output, text + at, at + piece > len ? len - at : piece);
		noise_end(&noise, &output);
		output_text(&output, &got, &got_len);
		assert_string_equal((char *)got, wanted);
		assert_int_equal(output.total, strlen(wanted));
		free(got);
		output_fini(&output);
	}
}

static void
test_both_lines_at_the_start_go(void **state)
{
	(void)state;
	expect(true, FIRST SECOND "real\n", "real\n");
	expect(true, NUMBER SECOND, "");
	expect(true, FIRST SECOND FIRST SECOND, FIRST SECOND);
}

static void
test_everything_else_stays(void **state)
{
	static const char *const texts[] = {
		"x" FIRST SECOND,
		FIRST,
		SECOND,
		SECOND FIRST,
		FIRST "x",
		FIRST "bash: no job control in this shell",
		"bash: cannot set terminal process group (",
		"bash: cannot set terminal process group (123456789012): Inappropriate",
		"b",
		"a\rb\xff\xfe\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		expect(true, texts[i], texts[i]);
	expect(false, FIRST SECOND, FIRST SECOND);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_lines_at_the_start_go),
		cmocka_unit_test(test_everything_else_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
