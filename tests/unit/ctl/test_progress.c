/* test_progress.c - the line of a copy: never wider than the terminal, never nonsense. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/copy/progress.h"
#include "base/cleanup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static char *
line(const char *name, int64_t done, int64_t total, double rate, unsigned columns, bool over)
{
	struct progress progress = {
		.name = strdup(name), .done = done, .total = total, .rate = rate, .columns = columns
	};
	char *text = progress_text(&progress, 10000, over);

	progress_fini(&progress);
	return text;
}

static void
test_lines(void **state)
{
	AUTO_FREE char *half = line("model.bin", 50 << 20, 100 << 20, 10 << 20, 80, false);
	AUTO_FREE char *done = line("model.bin", 100 << 20, 100 << 20, 10 << 20, 80, true);
	AUTO_FREE char *open = line("-", 5 << 20, -1, 1 << 20, 80, false);
	AUTO_FREE char *empty = line("none", 0, 0, 0, 80, true);
	AUTO_FREE char *grown = line("log", 200, 100, 1024, 80, false);

	(void)state;
	assert_string_equal(half, "model.bin                      50%  50Mi of 100Mi  10Mi/s  5s left");
	assert_string_equal(done, "model.bin                     100%  100Mi of 100Mi  10Mi/s  in 10s");
	assert_string_equal(open, "-                             5Mi  1Mi/s");
	assert_non_null(strstr(empty, "100%  0 of 0"));
	assert_non_null(strstr(grown, "100%"));
	assert_null(strstr(grown, "-"));
}

static void
test_width(void **state)
{
	(void)state;
	for (unsigned columns = 1; columns < 100; columns++) {
		AUTO_FREE char *text = line("\xc3\xbc\xc3\xbc\xc3\xbc", 1, 2, 1, columns, false);
		size_t width = 0;

		for (const char *p = text; *p != '\0'; p++)
			width += ((unsigned char)*p & 0xc0) != 0x80;
		assert_true(width < columns || columns == 1);
		assert_true(((unsigned char)text[0] & 0xc0) != 0x80);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_width),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
