/* test_sse.c - events, whatever pieces their bytes come in. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/attach/sse.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>

struct heard {
	char text[256];
	int stop_at; /* 0: never */
	int count;
};

static int
on_event(const char *name, const char *data, size_t len, void *arg)
{
	struct heard *heard = arg;
	size_t at = strlen(heard->text);

	assert_int_equal(strlen(data), len);
	snprintf(heard->text + at, sizeof heard->text - at, "%s=%s;", name, data);
	return ++heard->count == heard->stop_at ? 7 : 0;
}

static const char stream[] = ": ping\n\nevent: stdout\nid: 3:0\ndata: "
			     "{\"a\":1}\n\nevent:exit\r\ndata:x\r\n\r\ndata: 1\ndata: 2\n\nevent: cut\ndata: off\n";

static void
test_every_cut_gives_the_same_events(void **state)
{
	(void)state;
	for (size_t piece = 1; piece <= sizeof stream; piece++) {
		struct sse sse = { 0 };
		struct heard heard = { 0 };

		for (size_t at = 0; at < sizeof stream - 1; at += piece) {
			size_t len = sizeof stream - 1 - at < piece ? sizeof stream - 1 - at : piece;

			assert_int_equal(sse_take(&sse, stream + at, len, on_event, &heard), 0);
		}
		assert_string_equal(heard.text, "stdout={\"a\":1};exit=x;=1\n2;");
		sse_fini(&sse);
	}
}

static void
test_who_listens_may_stop(void **state)
{
	struct sse sse = { 0 };
	struct heard heard = { .stop_at = 1 };

	(void)state;
	assert_int_equal(sse_take(&sse, stream, sizeof stream - 1, on_event, &heard), 7);
	assert_int_equal(heard.count, 1);
	sse_fini(&sse);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_cut_gives_the_same_events),
		cmocka_unit_test(test_who_listens_may_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
