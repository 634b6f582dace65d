/* test_outbox.c - frames come out as they went in, and weigh what they take of memory. */
/* SPDX-License-Identifier: MIT */
#include "gateway/outbox.h"

#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { COUNT = 1000, LEAST_OVERHEAD = 32 };

static void
test_small_frames_weigh_what_they_take(void **state)
{
	struct outbox outbox;
	struct frame *frame;

	(void)state;
	outbox_init(&outbox);
	for (size_t i = 0; i < COUNT; i++) {
		frame = frame_create(true, 1);
		*frame_body(frame) = (unsigned char)i;
		outbox_push(&outbox, frame);
	}
	assert_true(outbox.bytes >= (size_t)COUNT * (LEAST_OVERHEAD + 1));
	for (size_t i = 0; i < COUNT; i++) {
		frame = outbox_take(&outbox);
		assert_int_equal(frame_len(frame), 1);
		assert_int_equal(*frame_body(frame), (unsigned char)i);
		frame_free(frame);
	}
	assert_null(outbox_take(&outbox));
	assert_int_equal(outbox.bytes, 0);
	outbox_fini(&outbox);
}

static void
test_frames_move_on_to_another(void **state)
{
	struct outbox first, second;

	(void)state;
	outbox_init(&first);
	outbox_init(&second);
	outbox_push(&first, frame_create(true, 1));
	outbox_push(&first, frame_create(true, 2));
	outbox_push(&second, outbox_take(&first));
	outbox_fini(&second);
	assert_null(second.head);
	assert_int_equal(frame_len(first.head), 2);
	outbox_fini(&first);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small_frames_weigh_what_they_take),
		cmocka_unit_test(test_frames_move_on_to_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
