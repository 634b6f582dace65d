/* test_lines.c - lines come whole wherever the stream is cut, and no line is without end. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/err.h"
#include "kube/kube_lines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct heard {
	char text[256]; /* each line in brackets */
	uint32_t lines, stop_after; /* 0: never */
};

static bool
on_line(void *arg, const char *line, size_t len)
{
	struct heard *heard = arg;
	size_t used = strlen(heard->text);

	snprintf(heard->text + used, sizeof heard->text - used, "[%.*s]", (int)len, line);
	return ++heard->lines != heard->stop_after;
}

static void
feed(struct kube_lines *lines, const char *data, size_t len, struct heard *heard)
{
	/* Of its own size, so that a step beyond it is seen. */
	AUTO_FREE char *piece = alloc_bytes(len + (len == 0));
	struct err err;

	memcpy(piece, data, len);
	assert_int_equal(kube_lines_feed(lines, piece, len, on_line, heard, &err), 0);
}

static void
test_lines_are_the_same_wherever_they_are_cut(void **state)
{
	static const char text[] = "one\n\ntwo\nth\xc3\xa4ree\n\n\nlast";
	const size_t len = sizeof text - 1;

	(void)state;
	for (size_t a = 0; a <= len; a++) {
		for (size_t b = a; b <= len; b++) {
			struct kube_lines lines = { .max = 16 };
			struct heard heard = { 0 };

			feed(&lines, text, a, &heard);
			feed(&lines, text + a, b - a, &heard);
			feed(&lines, text + b, len - b, &heard);
			assert_string_equal(heard.text, "[one][two][th\xc3\xa4ree]");
			assert_true(kube_lines_clear(&lines));
			assert_false(kube_lines_clear(&lines));
		}
	}
}

static void
test_a_line_longer_than_allowed_is_refused(void **state)
{
	struct kube_lines lines = { .max = 8 };
	struct heard heard = { 0 };
	struct err err;

	(void)state;
	feed(&lines, "12345678\n", 9, &heard);
	assert_int_equal(heard.lines, 1);
	assert_int_equal(kube_lines_feed(&lines, "123456789\n", 10, on_line, &heard, &err), -1);
	assert_int_equal(err.code, ERR_TOO_LARGE);
	feed(&lines, "12345", 5, &heard);
	assert_int_equal(kube_lines_feed(&lines, "6789", 4, on_line, &heard, &err), -1);
	assert_int_equal(heard.lines, 1);
	kube_lines_clear(&lines);
}

static void
test_a_listener_may_have_had_enough(void **state)
{
	struct kube_lines lines = { .max = 8 };
	struct heard heard = { .stop_after = 2 };

	(void)state;
	feed(&lines, "a\nb\nc\n", 6, &heard);
	assert_string_equal(heard.text, "[a][b]");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines_are_the_same_wherever_they_are_cut),
		cmocka_unit_test(test_a_line_longer_than_allowed_is_refused),
		cmocka_unit_test(test_a_listener_may_have_had_enough),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
