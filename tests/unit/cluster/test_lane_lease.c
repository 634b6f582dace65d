/* test_lane_lease.c - what a lease allows, by tables of what was learned before. */
/* SPDX-License-Identifier: MIT */
#include "cluster/lane_lease.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { NOW = 1000, LATER = 2000 };

static struct lane_record
lease(uint64_t number, uint32_t turns, bool wanted)
{
	struct lane_record record = { 0 };

	lane_lease_learn(&record,
		&(struct lane_news){
			.has = true, .wanted = wanted, .number = number, .turns = turns, .until_ms = LATER });
	return record;
}

static enum lane_step
take(struct lane_record *record, bool asked, int64_t now_ms)
{
	uint64_t fence;

	return lane_lease_take(record, asked, false, now_ms, &fence);
}

static void
test_fences_grow(void **state)
{
	struct lane_record record = lease(5, 0, false);
	uint64_t first, second, third;

	(void)state;
	assert_int_equal(lane_lease_take(&record, false, false, NOW, &first), LANE_GO);
	assert_int_equal(lane_lease_take(&record, true, false, NOW, &second), LANE_GO);
	assert_true(second > first);
	lane_lease_learn(&record, &(struct lane_news){ .has = true, .number = 6, .until_ms = LATER });
	assert_int_equal(lane_lease_take(&record, false, false, NOW, &third), LANE_GO);
	assert_true(third > second);
	assert_int_equal(third >> LANE_FENCE_BITS, 6);
}

static void
test_over(void **state)
{
	struct lane_record record = { 0 };
	uint64_t fence;

	(void)state;
	assert_int_equal(take(&record, false, NOW), LANE_ASK);
	record = lease(5, 0, false);
	assert_int_equal(take(&record, false, LATER), LANE_ASK);
	/* With nobody to be asked the last holder goes on. */
	assert_int_equal(lane_lease_take(&record, true, true, LATER, &fence), LANE_GO);
	lane_lease_drop(&record);
	assert_int_equal(lane_lease_take(&record, true, true, NOW, &fence), LANE_ASK);
}

static void
test_others_wait(void **state)
{
	struct lane_record record = lease(5, 1, true);

	(void)state;
	/* Those that came before go first, whatever turns there are. */
	assert_int_equal(take(&record, false, NOW), LANE_GO);
	assert_int_equal(take(&record, true, NOW), LANE_GO);
	assert_int_equal(take(&record, true, NOW), LANE_YIELD);
	assert_int_equal(take(&record, false, NOW), LANE_GO);
}

/* A turn is one command's, also of one that nobody waited behind when it went. */
static void
test_turns_are_used_up(void **state)
{
	struct lane_record record = lease(5, 2, false);

	(void)state;
	assert_int_equal(take(&record, true, NOW), LANE_GO);
	record.wanted = true;
	assert_int_equal(take(&record, true, NOW), LANE_GO);
	assert_int_equal(take(&record, true, NOW), LANE_YIELD);
}

static void
test_old_answers(void **state)
{
	struct lane_record record = lease(7, 0, false);
	const struct lane_news renewed = { .has = true, .number = 7, .until_ms = LATER + 1 };
	const struct lane_news before = { .has = false, .number = 6 };
	const struct lane_news lost = { .has = false, .number = 8 };

	(void)state;
	lane_lease_learn(&record, &before);
	assert_int_equal(take(&record, false, NOW), LANE_GO);
	lane_lease_learn(&record, &renewed);
	assert_int_equal(record.until_ms, LATER + 1);
	/* Given back; an answer from before does not bring it back. */
	lane_lease_drop(&record);
	lane_lease_learn(&record, &renewed);
	assert_int_equal(take(&record, false, NOW), LANE_ASK);
	record = lease(7, 0, false);
	lane_lease_learn(&record, &lost);
	assert_int_equal(take(&record, false, NOW), LANE_ASK);
	assert_int_equal(record.over, 8);
}

static void
test_overtaken(void **state)
{
	struct lane_record record = lease(7, 0, false);

	(void)state;
	lane_lease_overtaken(&record, (UINT64_C(9) << LANE_FENCE_BITS) + 3);
	assert_int_equal(take(&record, false, NOW), LANE_ASK);
	assert_int_equal(record.over, 9);
	/* Nonsense raises nothing, but the lease was refused. */
	record = lease(7, 0, false);
	lane_lease_overtaken(&record, 3);
	assert_int_equal(record.over, 7);
	record = lease(7, 0, false);
	lane_lease_overtaken(&record, UINT64_MAX);
	assert_int_equal(record.number, 7);
}

static void
test_used_up(void **state)
{
	struct lane_record record = lease(7, 0, false);

	(void)state;
	record.fences = (1 << LANE_FENCE_BITS) - 1;
	assert_int_equal(take(&record, false, NOW), LANE_ASK);
	/* The same number is not taken once more. */
	lane_lease_learn(&record, &(struct lane_news){ .has = true, .number = 7, .until_ms = LATER });
	assert_int_equal(take(&record, false, NOW), LANE_ASK);
	lane_lease_learn(&record, &(struct lane_news){ .has = true, .number = 8, .until_ms = LATER });
	assert_int_equal(take(&record, false, NOW), LANE_GO);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fences_grow),
		cmocka_unit_test(test_over),
		cmocka_unit_test(test_others_wait),
		cmocka_unit_test(test_turns_are_used_up),
		cmocka_unit_test(test_old_answers),
		cmocka_unit_test(test_overtaken),
		cmocka_unit_test(test_used_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
