/* test_replay.c - every byte at its offset, while the ring grows and when it can't. */
/* SPDX-License-Identifier: MIT */
#include "agent/terminal/replay.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char
byte_at(uint64_t offset)
{
	return (char)(offset * 31 + (offset >> 8) * 7 + (offset >> 16));
}

static void
add(struct replay *replay, size_t len)
{
	char bytes[8192];

	while (len > 0) {
		size_t part = len < sizeof bytes ? len : sizeof bytes;

		for (size_t i = 0; i < part; i++)
			bytes[i] = byte_at(replay->end + i);
		replay_add(replay, bytes, part);
		len -= part;
	}
}

static void
check(const struct replay *replay)
{
	uint64_t offset = replay_start(replay);

	while (offset < replay->end) {
		const char *bytes;
		size_t len = replay_at(replay, offset, &bytes);

		assert_true(len > 0);
		for (size_t i = 0; i < len; i++)
			if (bytes[i] != byte_at(offset + i))
				fail_msg("byte %llu is wrong", (unsigned long long)(offset + i));
		offset += len;
	}
	assert_int_equal(offset, replay->end);
}

static void
test_keeps_all_up_to_its_maximum(void **state)
{
	static const size_t steps[] = { 1, 16383, 1, 100, 8192, 30000, 65536, 200000, 1 << 20, 7, 1 << 21 };
	int64_t budget = 1 << 30;
	struct replay replay;

	(void)state;
	replay_init(&replay, 1 << 20, &budget);
	check(&replay);
	for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
		add(&replay, steps[i]);
		check(&replay);
		if (replay.end <= 1 << 20)
			assert_int_equal(replay_start(&replay), 0);
		else
			assert_int_equal(replay.end - replay_start(&replay), 1 << 20);
	}
	assert_int_equal(budget, (1 << 30) - (1 << 20));
	replay_fini(&replay);
	assert_int_equal(budget, 1 << 30);
}

static void
test_used_up_budget_leaves_the_least(void **state)
{
	int64_t budget = 100000;
	struct replay one, other;

	(void)state;
	replay_init(&one, 1 << 20, &budget);
	replay_init(&other, 1 << 20, &budget);
	add(&one, 300000);
	check(&one);
	assert_int_equal(one.end - replay_start(&one), 65536);
	add(&other, 300000);
	check(&other);
	assert_int_equal(other.end - replay_start(&other), 32768);
	replay_fini(&one);
	add(&other, 300000);
	check(&other);
	assert_int_equal(other.end - replay_start(&other), 65536);
	replay_fini(&other);
	assert_int_equal(budget, 100000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keeps_all_up_to_its_maximum),
		cmocka_unit_test(test_used_up_budget_leaves_the_least),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
