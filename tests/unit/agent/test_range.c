/* test_range.c - Range, If-Range and If-None-Match. */
/* SPDX-License-Identifier: MIT */
#include "agent/files/range.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const char etag[] = "\"a-1\"";

static const struct {
	struct range_ask ask;
	int64_t size;
	int status;
	int64_t first, length;
} cases[] = {
	{ { NULL, NULL, NULL }, 10, 200, 0, 10 },
	{ { "bytes=0-0", NULL, NULL }, 10, 206, 0, 1 },
	{ { "bytes=2-5", NULL, NULL }, 10, 206, 2, 4 },
	{ { "Bytes= 2-", NULL, NULL }, 10, 206, 2, 8 },
	{ { "bytes=2-99", NULL, NULL }, 10, 206, 2, 8 },
	{ { "bytes=-3", NULL, NULL }, 10, 206, 7, 3 },
	{ { "bytes=-99", NULL, NULL }, 10, 206, 0, 10 },
	{ { "bytes=9-99999999999999999999999999", NULL, NULL }, 10, 206, 9, 1 },
	{ { "bytes=10-", NULL, NULL }, 10, 416, 0, 0 },
	{ { "bytes=99999999999999999999999999-", NULL, NULL }, 10, 416, 0, 0 },
	{ { "bytes=-0", NULL, NULL }, 10, 416, 0, 0 },
	{ { "bytes=0-", NULL, NULL }, 0, 416, 0, 0 },
	/* As if not given. */
	{ { "bytes=5-2", NULL, NULL }, 10, 200, 0, 10 },
	{ { "bytes=0-1,3-4", NULL, NULL }, 10, 200, 0, 10 },
	{ { "bytes=", NULL, NULL }, 10, 200, 0, 10 },
	{ { "bytes=-", NULL, NULL }, 10, 200, 0, 10 },
	{ { "bytes=x-y", NULL, NULL }, 10, 200, 0, 10 },
	{ { "lines=1-2", NULL, NULL }, 10, 200, 0, 10 },
	{ { "", NULL, NULL }, 10, 200, 0, 10 },
	/* Only of the file it was begun with. */
	{ { "bytes=2-5", "\"a-1\"", NULL }, 10, 206, 2, 4 },
	{ { "bytes=2-5", "\"a-2\"", NULL }, 10, 200, 0, 10 },
	{ { "bytes=2-5", "W/\"a-1\"", NULL }, 10, 200, 0, 10 },
	{ { "bytes=2-5", "Mon, 30 Nov 2026 00:18:32 GMT", NULL }, 10, 200, 0, 10 },
	{ { NULL, NULL, "\"a-1\"" }, 10, 304, 0, 0 },
	{ { "bytes=2-5", NULL, "\"x\", W/\"a-1\"" }, 10, 304, 0, 0 },
	{ { NULL, NULL, "*" }, 10, 304, 0, 0 },
	{ { NULL, NULL, "\"x, \\\"a-1\", \"y\"" }, 10, 200, 0, 10 },
	{ { NULL, NULL, "\"" }, 10, 200, 0, 10 },
	{ { NULL, NULL, ",, ," }, 10, 200, 0, 10 },
};

static void
test_decisions(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct range range;

		if (range_decide(&cases[i].ask, etag, cases[i].size, &range) != cases[i].status ||
			range.first != cases[i].first || range.length != cases[i].length)
			fail_msg("case %zu: %lld + %lld", i, (long long)range.first, (long long)range.length);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_decisions) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
