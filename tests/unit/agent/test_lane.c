/* test_lane.c - one job a lane, and no old fence after a newer one, evicted lanes included. */
/* SPDX-License-Identifier: MIT */
#include "agent/job.h"
#include "agent/lane.h"
#include "base/id.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static struct job *
make_job(const char *lane, int64_t fence)
{
	char id[ID_UUID_SIZE];

	id_uuid4(id);
	return job_create(id, lane, fence, 0);
}

static enum lane_answer
check(struct lane_table *table, const char *lane, int64_t fence)
{
	struct job *running = NULL;
	int64_t newest = 0;

	return lane_check(table, lane, fence, &running, &newest);
}

/* A job that has come and gone. */
static void
pass(struct lane_table *table, const char *lane, int64_t fence)
{
	struct job *job = make_job(lane, fence);

	assert_int_equal(check(table, lane, fence), LANE_FREE);
	lane_enter(table, job);
	lane_leave(table, job);
	job_free(job);
}

static void
test_an_occupied_lane_names_its_job(void **state)
{
	struct lane_table *table = lane_table_create();
	struct job *job = make_job("a", 5), *running = NULL;
	int64_t newest = 0;

	(void)state;
	assert_int_equal(check(table, "a", 5), LANE_FREE);
	lane_enter(table, job);
	assert_int_equal(lane_check(table, "a", 6, &running, &newest), LANE_BUSY);
	assert_ptr_equal(running, job);
	assert_int_equal(check(table, "b", 1), LANE_FREE);
	assert_int_equal(lane_running(table), 1);
	lane_leave(table, job);
	assert_int_equal(lane_running(table), 0);
	assert_int_equal(check(table, "a", 6), LANE_FREE);
	job_free(job);
	lane_table_free(table);
}

static void
test_an_old_fence_never_starts(void **state)
{
	struct lane_table *table = lane_table_create();
	struct job *running = NULL;
	int64_t newest = 0;

	(void)state;
	pass(table, "", 7);
	assert_int_equal(lane_check(table, "", 7, &running, &newest), LANE_STALE);
	assert_int_equal(newest, 7);
	assert_int_equal(check(table, "", 6), LANE_STALE);
	assert_int_equal(check(table, "", 8), LANE_FREE);
	assert_int_equal(check(table, "other", 1), LANE_FREE);
	assert_int_equal(lane_newest_fence(table), 7);
	lane_table_free(table);
}

static void
test_eviction_leaves_a_floor(void **state)
{
	struct lane_table *table = lane_table_create();
	char name[16];

	(void)state;
	pass(table, "old", 100);
	for (int i = 0; i < LANE_MAX; i++) {
		snprintf(name, sizeof name, "l%d", i);
		assert_int_equal(check(table, name, 101), LANE_FREE);
	}
	assert_int_equal(check(table, "old", 100), LANE_STALE);
	assert_int_equal(check(table, "new", 100), LANE_STALE);
	assert_int_equal(check(table, "new", 101), LANE_FREE);
	lane_table_free(table);
}

static void
test_running_lanes_are_not_evicted(void **state)
{
	struct lane_table *table = lane_table_create();
	static struct job *jobs[LANE_MAX];
	char name[16];

	(void)state;
	for (int i = 0; i < LANE_MAX; i++) {
		snprintf(name, sizeof name, "l%d", i);
		jobs[i] = make_job(name, 1);
		assert_int_equal(check(table, name, 1), LANE_FREE);
		lane_enter(table, jobs[i]);
	}
	assert_int_equal(check(table, "one more", 1), LANE_FULL);
	lane_leave(table, jobs[17]);
	assert_int_equal(check(table, "one more", 2), LANE_FREE);
	for (int i = 0; i < LANE_MAX; i++)
		job_free(jobs[i]);
	lane_table_free(table);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_occupied_lane_names_its_job),
		cmocka_unit_test(test_an_old_fence_never_starts),
		cmocka_unit_test(test_eviction_leaves_a_floor),
		cmocka_unit_test(test_running_lanes_are_not_evicted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
