/* test_notify.c - changes are told once to those who watch, and none is lost. */
/* SPDX-License-Identifier: MIT */
#include "ipc/notify.h"
#include "base/err.h"
#include "crash.h"
#include "ipc/section.h"
#include "ipc/shm.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include <cmocka.h>

enum { SANDBOXES = 10000, JOBS = 100 };

static const uint64_t everybody[NOTIFY_PROC_WORDS] = { UINT64_MAX, UINT64_MAX };

static struct shm_notify *shm;
static struct notify *notify;

static int
make_notify(void **state)
{
	struct err err;

	(void)state;
	shm = crash_map(notify_section_size(SANDBOXES, JOBS));
	notify_section_init(shm, SANDBOXES, JOBS);
	return notify_open(shm, &notify, &err);
}

static int
close_notify(void **state)
{
	(void)state;
	notify_close(notify);
	crash_unmap(shm, notify_section_size(SANDBOXES, JOBS));
	return 0;
}

static bool
is_readable(uint32_t proc, int timeout_ms)
{
	struct pollfd p = { .fd = notify_fd(notify, proc), .events = POLLIN };

	return poll(&p, 1, timeout_ms) == 1;
}

static void
test_a_watched_change_is_told_once(void **state)
{
	(void)state;
	notify_watch(notify, 5, NOTIFY_SANDBOX, 9999);
	assert_false(is_readable(5, 0));
	notify_post(notify, NOTIFY_SANDBOX, 9999);
	notify_post(notify, NOTIFY_SANDBOX, 9999);
	assert_true(is_readable(5, 0));
	notify_drain(notify, 5);
	assert_false(is_readable(5, 0));
	assert_int_equal(notify_take(notify, 5, NOTIFY_JOB), UINT32_MAX);
	assert_int_equal(notify_take(notify, 5, NOTIFY_SANDBOX), 9999);
	assert_int_equal(notify_take(notify, 5, NOTIFY_SANDBOX), UINT32_MAX);
	notify_post(notify, NOTIFY_SANDBOX, 9999);
	assert_int_equal(notify_take(notify, 5, NOTIFY_SANDBOX), UINT32_MAX);
	assert_false(is_readable(5, 0));
}

static void
test_what_is_forgotten_is_not_told(void **state)
{
	(void)state;
	notify_watch(notify, 5, NOTIFY_JOB, 3);
	notify_watch(notify, 6, NOTIFY_JOB, 3);
	notify_forget(notify, 5, NOTIFY_JOB, 3);
	notify_post(notify, NOTIFY_JOB, 3);
	assert_false(is_readable(5, 0));
	assert_int_equal(notify_take(notify, 5, NOTIFY_JOB), UINT32_MAX);
	assert_true(is_readable(6, 0));
	notify_drain(notify, 6);
	assert_int_equal(notify_take(notify, 6, NOTIFY_JOB), 3);
}

static void
test_kinds_and_slots_and_processes_are_apart(void **state)
{
	(void)state;
	notify_watch(notify, 0, NOTIFY_SANDBOX, 7);
	notify_post(notify, NOTIFY_JOB, 7);
	notify_post(notify, NOTIFY_SANDBOX, 8);
	for (uint32_t proc = 0; proc < SHM_PROCESSES; proc++) {
		assert_int_equal(notify_take(notify, proc, NOTIFY_SANDBOX), UINT32_MAX);
		assert_int_equal(notify_take(notify, proc, NOTIFY_JOB), UINT32_MAX);
	}
	notify_post(notify, NOTIFY_SANDBOX, 7);
	assert_int_equal(notify_take(notify, 1, NOTIFY_SANDBOX), UINT32_MAX);
	assert_int_equal(notify_take(notify, 0, NOTIFY_SANDBOX), 7);
}

static void
test_all_processes_hear_of_one_slot(void **state)
{
	(void)state;
	for (uint32_t proc = 0; proc < SHM_PROCESSES; proc++)
		notify_watch(notify, proc, NOTIFY_JOB, 99);
	notify_post(notify, NOTIFY_JOB, 99);
	for (uint32_t proc = 0; proc < SHM_PROCESSES; proc++) {
		assert_true(is_readable(proc, 0));
		assert_int_equal(notify_take(notify, proc, NOTIFY_JOB), 99);
	}
}

static void
test_every_slot_comes_out(void **state)
{
	static bool seen[SANDBOXES];

	(void)state;
	for (uint32_t slot = 0; slot < SANDBOXES; slot++) {
		notify_watch(notify, 70, NOTIFY_SANDBOX, slot);
		notify_post(notify, NOTIFY_SANDBOX, slot);
	}
	for (uint32_t i = 0; i < SANDBOXES; i++) {
		uint32_t slot = notify_take(notify, 70, NOTIFY_SANDBOX);

		assert_true(slot < SANDBOXES);
		assert_false(seen[slot]);
		seen[slot] = true;
	}
	assert_int_equal(notify_take(notify, 70, NOTIFY_SANDBOX), UINT32_MAX);
}

static void
test_slots_out_of_range_are_ignored(void **state)
{
	(void)state;
	notify_watch(notify, 0, NOTIFY_JOB, JOBS);
	notify_watch(notify, SHM_PROCESSES, NOTIFY_JOB, 0);
	notify_post(notify, NOTIFY_JOB, JOBS);
	notify_post(notify, NOTIFY_JOB, UINT32_MAX);
	notify_kick(notify, SHM_PROCESSES);
	notify_drain(notify, SHM_PROCESSES);
	assert_int_equal(notify_fd(notify, SHM_PROCESSES), -1);
	assert_int_equal(notify_take(notify, SHM_PROCESSES, NOTIFY_JOB), UINT32_MAX);
}

static void
do_post(void *arg)
{
	(void)arg;
	notify_post(notify, NOTIFY_JOB, 42);
}

static void
test_poster_killed_anywhere_is_made_good(void **state)
{
	unsigned nth = 1;
	bool killed;

	(void)state;
	do {
		for (uint32_t proc = 0; proc < 3; proc++)
			notify_watch(notify, proc, NOTIFY_JOB, 42);
		killed = crash_at(nth++, do_post, NULL);
		notify_repair(notify, everybody);
		for (uint32_t proc = 0; proc < 3; proc++) {
			assert_true(is_readable(proc, 0));
			notify_drain(notify, proc);
			assert_int_equal(notify_take(notify, proc, NOTIFY_JOB), 42);
			assert_int_equal(notify_take(notify, proc, NOTIFY_JOB), UINT32_MAX);
		}
	} while (killed);
	assert_true(nth > 4);
}

static void
test_wishes_of_the_dead_are_forgotten(void **state)
{
	const uint64_t alive[NOTIFY_PROC_WORDS] = { 1u << 1, 1u << 6 };

	(void)state;
	for (uint32_t proc = 0; proc < SHM_PROCESSES; proc++)
		notify_watch(notify, proc, NOTIFY_JOB, 42);
	notify_repair(notify, alive);
	for (uint32_t proc = 0; proc < SHM_PROCESSES; proc++)
		assert_int_equal(is_readable(proc, 0), proc == 1 || proc == 70);
	notify_drain(notify, 1);
	notify_post(notify, NOTIFY_JOB, 42);
	assert_true(is_readable(1, 0));
	assert_false(is_readable(2, 0));
}

/* --- no lost wake-up between two processes that answer each other --- */

struct ball {
	_Atomic uint32_t turn;
};

enum { ROUNDS = 20000 };

static void
play(struct ball *ball, uint32_t me)
{
	for (uint32_t turn = me; turn < ROUNDS; turn += 2) {
		for (;;) {
			notify_watch(notify, me, NOTIFY_JOB, 3);
			if (atomic_load_explicit(&ball->turn, memory_order_relaxed) >= turn)
				break;
			if (!is_readable(me, 10000))
				_exit(1); /* the wake-up was lost */
			notify_drain(notify, me);
			while (notify_take(notify, me, NOTIFY_JOB) != UINT32_MAX)
				;
		}
		atomic_store_explicit(&ball->turn, turn + 1, memory_order_relaxed);
		notify_post(notify, NOTIFY_JOB, 3);
	}
}

static void
play_second(void *arg)
{
	play(arg, 1);
}

static void
play_first(void *arg)
{
	play(arg, 0);
}

static void
test_no_wake_up_is_lost(void **state)
{
	struct ball *ball = crash_map(sizeof *ball);
	pid_t first, second;

	(void)state;
	first = crash_start(play_first, ball);
	second = crash_start(play_second, ball);
	assert_true(crash_wait(first));
	assert_true(crash_wait(second));
	assert_int_equal(ball->turn, ROUNDS);
	crash_unmap(ball, sizeof *ball);
}

static void
post_forever(void *arg)
{
	(void)arg;
	for (int i = 0;; i = (i + 1) % 130)
		notify_post(notify, NOTIFY_SANDBOX, (uint32_t)i);
}

/* Bits set while the summary is being cleared must not get stuck. */
static void
test_concurrent_posts_never_leave_a_bit_behind(void **state)
{
	pid_t pid;
	unsigned taken = 0;
	uint32_t slot;

	(void)state;
	pid = crash_start(post_forever, NULL);
	for (uint32_t i = 0; taken < 20000; i = (i + 1) % 130) {
		notify_watch(notify, 2, NOTIFY_SANDBOX, i);
		taken += notify_take(notify, 2, NOTIFY_SANDBOX) != UINT32_MAX;
	}
	crash_kill_after(pid, 0);
	notify_repair(notify, everybody);
	while ((slot = notify_take(notify, 2, NOTIFY_SANDBOX)) != UINT32_MAX)
		assert_true(slot < 130);
	for (uint32_t s = 0; s < 130; s++)
		notify_watch(notify, 2, NOTIFY_SANDBOX, s);
	for (uint32_t s = 0; s < 130; s++)
		notify_post(notify, NOTIFY_SANDBOX, s);
	for (uint32_t s = 0; s < 130; s++)
		assert_int_equal(notify_take(notify, 2, NOTIFY_SANDBOX), s);
}

#define NOTIFY_TEST(f) cmocka_unit_test_setup_teardown(f, make_notify, close_notify)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		NOTIFY_TEST(test_a_watched_change_is_told_once),
		NOTIFY_TEST(test_what_is_forgotten_is_not_told),
		NOTIFY_TEST(test_kinds_and_slots_and_processes_are_apart),
		NOTIFY_TEST(test_all_processes_hear_of_one_slot),
		NOTIFY_TEST(test_every_slot_comes_out),
		NOTIFY_TEST(test_slots_out_of_range_are_ignored),
		NOTIFY_TEST(test_poster_killed_anywhere_is_made_good),
		NOTIFY_TEST(test_wishes_of_the_dead_are_forgotten),
		NOTIFY_TEST(test_no_wake_up_is_lost),
		NOTIFY_TEST(test_concurrent_posts_never_leave_a_bit_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
