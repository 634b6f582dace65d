/* test_lane_table.c - leases are found, changed, kept over a restart, and forgotten once nobody uses their lane. */
/* SPDX-License-Identifier: MIT */
#include "ipc/lane_table.h"
#include "base/err.h"
#include "crash.h"
#include "ipc/section.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { SLOTS = 4 };

static struct shm_lanes *table;
static const char *used; /* keys of lanes in use, each between spaces */

static bool
is_idle(void *arg, const struct lane_record *record)
{
	char word[LANE_KEY_SIZE + 2];

	(void)arg;
	snprintf(word, sizeof word, " %s ", record->key);
	return strstr(used, word) == NULL;
}

static struct lane_forgetting forgetting = { .is_idle = is_idle };

static int
make_table(void **state)
{
	(void)state;
	used = "";
	table = crash_map(lane_table_section_size(SLOTS));
	lane_table_section_init(table, SLOTS);
	return 0;
}

static int
unmap_table(void **state)
{
	(void)state;
	crash_unmap(table, lane_table_section_size(SLOTS));
	return 0;
}

static int
enter(const char *key, int64_t until_ms, uint32_t *ret_slot)
{
	struct lane_record record = { .until_ms = until_ms, .lane = 7 };
	struct err err;
	int rc;

	snprintf(record.key, sizeof record.key, "%s", key);
	rc = lane_table_enter(table, &record, &forgetting, ret_slot, &err);
	if (rc != 0)
		assert_int_equal(err.code, ERR_BUSY);
	return rc;
}

static int
take_number(struct lane_record *record, void *arg, struct err *err)
{
	(void)err;
	record->number = *(uint64_t *)arg;
	return 0;
}

static void
test_entered_once(void **state)
{
	struct lane_record record;
	uint64_t number = 12;
	uint32_t slot, again;
	struct err err;

	(void)state;
	assert_int_equal(enter("a:1", 77, &slot), 0);
	assert_int_equal(lane_table_change(table, slot, "a:1", take_number, &number, &err), 0);
	assert_int_equal(enter("a:1", 99, &again), 0);
	assert_int_equal(again, slot);
	assert_true(lane_table_find(table, "a:1", &record, &again));
	assert_int_equal(record.number, 12);
	assert_int_equal(record.until_ms, 77);
	assert_int_equal(record.lane, 7);
	assert_int_equal(lane_table_change(table, slot, "b:1", take_number, &number, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
}

static bool
is_there(const char *key)
{
	struct lane_record record;

	return lane_table_find(table, key, &record, NULL);
}

static void
fill(int64_t until_ms)
{
	uint32_t slot;
	char key[16];

	for (int i = 0; i < SLOTS; i++) {
		snprintf(key, sizeof key, "a:%d", i);
		assert_int_equal(enter(key, i == 2 ? 1 : until_ms, &slot), 0);
	}
}

static void
test_full_table_forgets_what_is_over(void **state)
{
	uint32_t slot;

	(void)state;
	fill(INT64_MAX);
	assert_int_equal(enter("b:1", INT64_MAX, &slot), 0);
	assert_false(is_there("a:2"));
	assert_true(is_there("a:0") && is_there("a:1") && is_there("a:3"));
	assert_int_equal(lane_table_count(table), SLOTS);
	/* Even a lease that is not over, where nobody uses it. */
	assert_int_equal(enter("b:2", INT64_MAX, &slot), 0);
	assert_true(is_there("b:2"));
}

/* A lane that is only waited for has no lease, and one whose lease ended over an outage still has its command. */
static void
test_lanes_in_use_stay(void **state)
{
	uint32_t slot;

	(void)state;
	used = " a:0 a:1 a:2 ";
	fill(1);
	assert_int_equal(enter("b:1", 1, &slot), 0);
	assert_true(is_there("a:0") && is_there("a:1") && is_there("a:2") && is_there("b:1"));
	used = " a:0 a:1 a:2 b:1 ";
	assert_int_equal(enter("b:2", 1, &slot), -1);
}

static int
give_turns(struct lane_record *record, void *arg, struct err *err)
{
	(void)arg;
	(void)err;
	record->fences = record->turns = 5;
	return 0;
}

/* While Redis is away only this tells who had the lane last. */
static void
test_adopted(void **state)
{
	struct lane_record record;
	uint32_t slot;
	struct err err;

	(void)state;
	assert_int_equal(enter("a:1", 77, &slot), 0);
	assert_int_equal(lane_table_change(table, slot, "a:1", give_turns, NULL, &err), 0);
	lane_table_section_adopt(table, SLOTS);
	assert_true(lane_table_find(table, "a:1", &record, NULL));
	assert_int_equal(record.until_ms, 77);
	assert_int_equal(record.fences, 5);
	assert_int_equal(record.turns, 0);
}

/* Without other servers there is none. */
static void
test_no_capacity(void **state)
{
	struct shm_lanes *none = crash_map(lane_table_section_size(0));
	struct lane_record record = { .key = "a:1" };
	uint32_t slot;
	struct err err;

	(void)state;
	lane_table_section_init(none, 0);
	assert_int_equal(lane_table_enter(none, &record, &forgetting, &slot, &err), -1);
	assert_int_equal(err.code, ERR_BUSY);
	lane_table_section_adopt(none, 0);
	assert_int_equal(lane_table_bound(none), 0);
	crash_unmap(none, lane_table_section_size(0));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_entered_once, make_table, unmap_table),
		cmocka_unit_test_setup_teardown(test_full_table_forgets_what_is_over, make_table, unmap_table),
		cmocka_unit_test_setup_teardown(test_lanes_in_use_stay, make_table, unmap_table),
		cmocka_unit_test_setup_teardown(test_adopted, make_table, unmap_table),
		cmocka_unit_test(test_no_capacity),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
