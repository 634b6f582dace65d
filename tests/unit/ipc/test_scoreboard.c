/* test_scoreboard.c - process slots: refs go stale for good, counters are never lost. */
/* SPDX-License-Identifier: MIT */
#include "ipc/scoreboard.h"
#include "base/err.h"
#include "crash.h"
#include "ipc/section.h"
#include "ipc/shm.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct shm_scoreboard *board;

static int
make_board(void **state)
{
	(void)state;
	board = crash_map(scoreboard_section_size());
	scoreboard_section_init(board);
	return 0;
}

static int
unmap_board(void **state)
{
	(void)state;
	crash_unmap(board, scoreboard_section_size());
	return 0;
}

static struct proc_ref
claim(enum proc_role role)
{
	struct proc_ref ref;
	struct err err;

	assert_int_equal(scoreboard_claim(board, role, &ref, &err), 0);
	return ref;
}

static void
test_ref_of_zeros_is_never_current(void **state)
{
	(void)state;
	assert_false(scoreboard_is_current(board, (struct proc_ref){ 0 }));
	claim(PROC_MASTER);
	assert_false(scoreboard_is_current(board, (struct proc_ref){ 0 }));
	assert_false(scoreboard_is_current(board, (struct proc_ref){ .slot = SHM_PROCESSES, .generation = 1 }));
}

static void
test_retired_ref_is_stale_also_when_the_slot_is_taken_again(void **state)
{
	struct proc_ref first = claim(PROC_WORKER), second;

	(void)state;
	assert_true(scoreboard_is_current(board, first));
	scoreboard_retire(board, first);
	assert_false(scoreboard_is_current(board, first));
	second = claim(PROC_WORKER);
	assert_int_equal(second.slot, first.slot);
	assert_false(scoreboard_is_current(board, first));
	scoreboard_retire(board, first); /* stale: no effect */
	assert_true(scoreboard_is_current(board, second));
}

static void
test_counters_of_the_dead_stay_in_the_sum_and_gauges_do_not(void **state)
{
	struct proc_ref a = claim(PROC_WORKER), b = claim(PROC_WORKER);
	struct proc_info info;

	(void)state;
	scoreboard_add(board, a, METRIC_REQUESTS_TOTAL, 5);
	scoreboard_add(board, a, METRIC_CONNECTIONS, 3);
	scoreboard_add(board, b, METRIC_REQUESTS_TOTAL, 7);
	scoreboard_add(board, b, METRIC_CONNECTIONS, 1);
	assert_int_equal(scoreboard_sum(board, METRIC_REQUESTS_TOTAL), 12);
	assert_int_equal(scoreboard_sum(board, METRIC_CONNECTIONS), 4);
	scoreboard_retire(board, a);
	assert_int_equal(scoreboard_sum(board, METRIC_REQUESTS_TOTAL), 12);
	assert_int_equal(scoreboard_sum(board, METRIC_CONNECTIONS), 1);
	a = claim(PROC_WORKER);
	scoreboard_add(board, a, METRIC_REQUESTS_TOTAL, 1);
	assert_int_equal(scoreboard_sum(board, METRIC_REQUESTS_TOTAL), 13);
	assert_true(scoreboard_info(board, a.slot, &info));
	assert_int_equal(info.metrics[METRIC_REQUESTS_TOTAL], 1);
	assert_int_equal(info.metrics[METRIC_CONNECTIONS], 0);
}

static void
test_info_tells_what_was_set(void **state)
{
	struct proc_ref ref = claim(PROC_REAPER);
	struct proc_info info;

	(void)state;
	scoreboard_set_pid(board, ref, 4711, 99);
	scoreboard_set_state(board, ref, PROC_DRAINING);
	assert_true(scoreboard_info(board, ref.slot, &info));
	assert_int_equal(info.role, PROC_REAPER);
	assert_int_equal(info.state, PROC_DRAINING);
	assert_int_equal(info.pid, 4711);
	assert_int_equal(info.start_time, 99);
	assert_int_equal(info.restarts, 0);
	assert_int_equal(info.ref.generation, ref.generation);
	assert_true(info.started_at > 1e9);
	scoreboard_retire(board, ref);
	assert_false(scoreboard_info(board, ref.slot, &info));
	scoreboard_set_pid(board, ref, 1, 1); /* stale: no effect */
	ref = claim(PROC_REAPER);
	assert_true(scoreboard_info(board, ref.slot, &info));
	assert_int_equal(info.pid, 0);
}

/* A slot is taken again after each reload, which is no restart of anything. */
static void
test_restarts_are_what_the_master_says(void **state)
{
	struct proc_ref ref = claim(PROC_WORKER), old = ref;
	struct proc_info info;

	(void)state;
	scoreboard_set_restarts(board, ref, 3);
	assert_true(scoreboard_info(board, ref.slot, &info));
	assert_int_equal(info.restarts, 3);
	scoreboard_retire(board, ref);
	ref = claim(PROC_WORKER);
	assert_int_equal(ref.slot, old.slot);
	scoreboard_set_restarts(board, old, 4); /* stale: no effect */
	assert_true(scoreboard_info(board, ref.slot, &info));
	assert_int_equal(info.restarts, 0);
}

static void
test_full_board_is_no_capacity(void **state)
{
	struct proc_ref ref, last = { 0 };
	struct err err;

	(void)state;
	for (int i = 0; i < SHM_PROCESSES; i++)
		last = claim(PROC_WORKER);
	assert_int_equal(scoreboard_claim(board, PROC_WORKER, &ref, &err), -1);
	assert_int_equal(err.code, ERR_NO_CAPACITY);
	scoreboard_retire(board, last);
	assert_int_equal(claim(PROC_WORKER).slot, last.slot);
}

static void
test_adoption_retires_all_and_keeps_the_totals(void **state)
{
	struct proc_ref a = claim(PROC_WORKER), b = claim(PROC_REAPER);
	struct proc_info info;

	(void)state;
	scoreboard_add(board, a, METRIC_EXECS_STARTED, 5);
	scoreboard_add(board, b, METRIC_WAITERS, 5);
	for (int i = 0; i < 2; i++) {
		scoreboard_section_adopt(board);
		assert_false(scoreboard_is_current(board, a));
		assert_false(scoreboard_is_current(board, b));
		assert_int_equal(scoreboard_sum(board, METRIC_EXECS_STARTED), 5);
		assert_int_equal(scoreboard_sum(board, METRIC_WAITERS), 0);
	}
	assert_int_equal(claim(PROC_WORKER).slot, a.slot);
	assert_true(scoreboard_info(board, a.slot, &info));
	assert_int_equal(info.restarts, 0);
}

static void
count_forever(void *arg)
{
	for (;;)
		scoreboard_add(board, *(struct proc_ref *)arg, METRIC_REQUESTS_TOTAL, 1);
}

static void
test_sum_never_falls_over_kills(void **state)
{
	int64_t seen = 0;

	(void)state;
	for (int i = 0; i < 100; i++) {
		struct proc_ref ref = claim(PROC_WORKER);
		pid_t pid = crash_start(count_forever, &ref);
		int64_t now;

		while (scoreboard_sum(board, METRIC_REQUESTS_TOTAL) == seen)
			;
		crash_kill_after(pid, crash_random(500));
		now = scoreboard_sum(board, METRIC_REQUESTS_TOTAL);
		assert_true(now > seen);
		scoreboard_retire(board, ref);
		assert_int_equal(scoreboard_sum(board, METRIC_REQUESTS_TOTAL), now);
		seen = now;
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_ref_of_zeros_is_never_current, make_board, unmap_board),
		cmocka_unit_test_setup_teardown(
			test_retired_ref_is_stale_also_when_the_slot_is_taken_again, make_board, unmap_board),
		cmocka_unit_test_setup_teardown(
			test_counters_of_the_dead_stay_in_the_sum_and_gauges_do_not, make_board, unmap_board),
		cmocka_unit_test_setup_teardown(test_info_tells_what_was_set, make_board, unmap_board),
		cmocka_unit_test_setup_teardown(test_restarts_are_what_the_master_says, make_board, unmap_board),
		cmocka_unit_test_setup_teardown(test_full_board_is_no_capacity, make_board, unmap_board),
		cmocka_unit_test_setup_teardown(
			test_adoption_retires_all_and_keeps_the_totals, make_board, unmap_board),
		cmocka_unit_test_setup_teardown(test_sum_never_falls_over_kills, make_board, unmap_board),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
