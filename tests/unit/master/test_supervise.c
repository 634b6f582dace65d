/* test_supervise.c - the dead are replaced, at a pace, and a hopeless one ends the server. */
/* SPDX-License-Identifier: MIT */
#include "stage.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Starts with every role good; *ret_pid is the one of the role. */
static void
start_ready(struct stage *s, const char *role, pid_t *ret_pid)
{
	char path[128];

	/* The role in question starts last, so that its line is not dropped while waiting for others. */
	stage_start(s);
	snprintf(path, sizeof path, "%s ", role);
	*ret_pid = stage_expect(s, path, NULL);
	stage_expect_log(s, "\"ready: ");
}

static void
kill_and_expect_another(struct stage *s, const char *role)
{
	char words[64];
	pid_t old;
	pid_t new;

	start_ready(s, role, &old);
	assert_int_equal(kill(old, SIGKILL), 0);
	snprintf(words, sizeof words, "%s ", role);
	do
		new = stage_expect(s, words, NULL);
	while (new == old);
	snprintf(words, sizeof words, "%s 1 (pid %d) was killed by signal 9", role, (int)old);
	assert_true(stage_logged(s, words));
	stage_signal(s, SIGTERM);
	assert_int_equal(stage_wait(s), 0);
}

static void
test_killed_worker_is_replaced(void **state)
{
	kill_and_expect_another(*state, "worker");
}

static void
test_killed_reaper_is_replaced(void **state)
{
	kill_and_expect_another(*state, "reaper");
}

static void
test_killed_spawner_is_replaced(void **state)
{
	kill_and_expect_another(*state, "spawner");
}

static void
test_short_lives_are_paced_by_doubling_pauses(void **state)
{
	struct stage *s = *state;
	int64_t began;
	pid_t pid;

	s->timing.lived_well = 60000;
	s->timing.pause_first = 100;
	s->timing.pause_most = 400;
	start_ready(s, "worker", &pid);
	stage_part(s, "worker", "brief");
	began = clock_boot_ms();
	assert_int_equal(kill(pid, SIGKILL), 0);
	for (int i = 0; i < 4; i++)
		stage_expect(s, "worker ", NULL);
	/* 100 + 200 + 400 + 400 */
	assert_true(clock_boot_ms() - began >= 1100);
	stage_part(s, "worker", "good");
	stage_expect(s, " ready ", NULL);
}

static void
test_respawned_process_that_cannot_start_is_tried_again(void **state)
{
	struct stage *s = *state;
	pid_t pid;

	s->timing.pause_first = 50;
	start_ready(s, "reaper", &pid);
	stage_part(s, "reaper", "fail");
	assert_int_equal(kill(pid, SIGKILL), 0);
	stage_expect(s, "reaper ", NULL);
	stage_expect_log(s, "the reaper has lost its lines");
	stage_part(s, "reaper", "good");
	stage_expect(s, " ready ", NULL);
}

static void
test_respawned_process_that_hangs_is_killed_and_tried_again(void **state)
{
	struct stage *s = *state;
	pid_t pid;

	start_ready(s, "worker", &pid);
	stage_part(s, "worker", "hang");
	assert_int_equal(kill(pid, SIGKILL), 0);
	stage_expect(s, " hang ", NULL);
	stage_part(s, "worker", "good");
	stage_expect(s, " ready ", NULL);
	assert_true(stage_logged(s, "was not ready after"));
}

static void
test_hopeless_process_stops_the_server(void **state)
{
	struct stage *s = *state;
	pid_t pid;

	start_ready(s, "worker", &pid);
	stage_part(s, "worker", "hopeless");
	assert_int_equal(kill(pid, SIGKILL), 0);
	stage_expect(s, "hopeless", NULL);
	assert_int_equal(stage_wait(s), 1);
	assert_true(stage_logged(s, "worker 1 cannot work at all: the worker has lost its lines"));
}

static void
test_nobody_is_replaced_while_the_server_stops(void **state)
{
	struct stage *s = *state;
	pid_t pid;

	stage_part(s, "worker", "stubborn");
	start_ready(s, "worker", &pid);
	stage_signal(s, SIGTERM);
	stage_expect(s, "term", NULL);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(stage_wait(s), 0);
	assert_false(stage_hears(s, " ready ", 0));
}

static void
test_children_hear_of_the_masters_death(void **state)
{
	struct stage *s = *state;
	pid_t pid;

	start_ready(s, "worker", &pid);
	stage_signal(s, SIGKILL);
	for (int i = 0; i < 3; i++)
		stage_expect(s, "orphan", NULL);
	assert_int_equal(stage_wait(s), 1000 + SIGKILL);
}

#define STAGE_TEST(test) cmocka_unit_test_setup_teardown(test, stage_setup, stage_teardown)

static int
setup_impatient(void **state)
{
	if (stage_setup(state) < 0)
		return -1;
	((struct stage *)*state)->timing.ready = 700;
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		STAGE_TEST(test_killed_worker_is_replaced),
		STAGE_TEST(test_killed_reaper_is_replaced),
		STAGE_TEST(test_killed_spawner_is_replaced),
		STAGE_TEST(test_short_lives_are_paced_by_doubling_pauses),
		STAGE_TEST(test_respawned_process_that_cannot_start_is_tried_again),
		cmocka_unit_test_setup_teardown(test_respawned_process_that_hangs_is_killed_and_tried_again,
			setup_impatient, stage_teardown),
		STAGE_TEST(test_hopeless_process_stops_the_server),
		STAGE_TEST(test_nobody_is_replaced_while_the_server_stops),
		STAGE_TEST(test_children_hear_of_the_masters_death),
	};

	if (geteuid() != 0)
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
