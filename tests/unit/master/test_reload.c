/* test_reload.c - a new generation takes over as a whole, or nothing changes. */
/* SPDX-License-Identifier: MIT */
#include "stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void
start_ready(struct stage *s)
{
	stage_start(s);
	stage_expect_log(s, "\"ready: ");
	for (int i = 0; i < 3; i++)
		stage_expect(s, " ready ", NULL);
}

static void
stop(struct stage *s)
{
	stage_signal(s, SIGTERM);
	assert_int_equal(stage_wait(s), 0);
}

static void
test_reload_replaces_all_but_the_spawner(void **state)
{
	struct stage *s = *state;
	char line[STAGE_LINE];

	start_ready(s);
	stage_config(s, "workers = 1\nmax_waiters = 777");
	stage_signal(s, SIGHUP);
	for (int i = 0; i < 2; i++) {
		stage_expect(s, " ready ", line);
		assert_non_null(strstr(line, "waiters=777"));
		assert_null(strstr(line, "spawner"));
	}
	for (int i = 0; i < 2; i++) {
		stage_expect(s, " term ", line);
		assert_non_null(strstr(line, "waiters=20000"));
	}
	stage_expect_log(s, "ready, reloaded");
	assert_int_equal(stage_connect(s), 0);
	assert_false(stage_logged(s, "spawner 1 (pid"));
	stop(s);
}

static void
test_reload_changes_the_number_of_workers(void **state)
{
	struct stage *s = *state;

	start_ready(s);
	stage_config(s, "workers = 3");
	stage_signal(s, SIGHUP);
	stage_expect_log(s, "3 workers");
	stage_config(s, "workers = 1");
	stage_signal(s, SIGHUP);
	stage_expect_log(s, "worker 3 (pid ");
	stop(s);
}

static void
test_physical_settings_stay_and_are_named(void **state)
{
	struct stage *s = *state;
	char line[STAGE_LINE];
	char words[32];

	start_ready(s);
	snprintf(words, sizeof words, "port=%u", (unsigned)s->port);
	s->port++;
	stage_config(s, "workers = 1");
	s->port--;
	stage_signal(s, SIGHUP);
	stage_expect(s, "worker ", line);
	assert_non_null(strstr(line, words));
	stage_expect_log(s, "keep their old values until a restart: port");
	stop(s);
}

static void
test_bad_file_keeps_the_old_generation(void **state)
{
	struct stage *s = *state;

	start_ready(s);
	stage_config(s, "workers = many");
	stage_signal(s, SIGHUP);
	stage_expect_log(s, "reload failed, the old processes go on");
	assert_true(stage_logged(s, "workers"));
	assert_false(stage_hears(s, "worker", 0));
	assert_int_equal(stage_connect(s), 0);
	stage_config(s, "workers = 1\nmax_waiters = 5");
	stage_signal(s, SIGHUP);
	stage_expect(s, "ready waiters=5 ", NULL);
	stage_expect_log(s, "ready, reloaded");
	stop(s);
}

static void
reload_with(struct stage *s, const char *part, const char *words)
{
	pid_t old;
	char line[STAGE_LINE];

	stage_start(s);
	old = stage_expect(s, "worker ", NULL);
	stage_expect_log(s, "\"ready: ");
	stage_part(s, "worker", part);
	stage_signal(s, SIGHUP);
	stage_expect_log(s, "reload failed, the old processes go on");
	assert_true(stage_logged(s, words));
	/* The new reaper was told to go at once; nobody of the old ones was. */
	stage_part(s, "worker", "good");
	stage_signal(s, SIGTERM);
	do
		stage_expect(s, " term ", line);
	while (strstr(line, "worker") == NULL);
	assert_int_equal(strtol(line + strlen("worker "), NULL, 10), old);
	assert_int_equal(stage_wait(s), 0);
}

static void
test_failing_new_worker_keeps_the_old_one(void **state)
{
	reload_with(*state, "fail", "worker 1 the worker has lost its lines");
}

static void
test_hopeless_new_worker_keeps_the_old_one(void **state)
{
	reload_with(*state, "hopeless", "worker 1 the worker has lost its lines");
}

static void
test_new_worker_that_is_killed_once_is_replaced_with_the_new_settings(void **state)
{
	struct stage *s = *state;

	s->timing.pause_first = 10;
	stage_start(s);
	stage_expect_log(s, "\"ready: ");
	stage_part(s, "worker", "crash once");
	stage_config(s, "workers = 1\nmax_waiters = 7");
	stage_signal(s, SIGHUP);
	stage_expect(s, "crash once waiters=7 ", NULL);
	stage_expect(s, "ready waiters=7 ", NULL);
	stage_expect_log(s, "ready, reloaded");
	stage_signal(s, SIGTERM);
	assert_int_equal(stage_wait(s), 0);
}

static void
test_crashing_new_worker_keeps_the_old_one(void **state)
{
	((struct stage *)*state)->timing.pause_first = 10;
	reload_with(*state, "crash", "worker 1 was killed by signal 9");
}

static void
test_hanging_new_worker_keeps_the_old_one(void **state)
{
	((struct stage *)*state)->timing.ready = 700;
	reload_with(*state, "hang", "worker 1 was not ready after");
}

static void
test_old_generation_that_never_drains_is_killed(void **state)
{
	struct stage *s = *state;

	s->timing.drain_extra = 200;
	stage_config(s, "workers = 1\ndrain_timeout_seconds = 0");
	stage_part(s, "worker", "stubborn");
	start_ready(s);
	stage_part(s, "worker", "good");
	stage_signal(s, SIGHUP);
	stage_expect_log(s, "did not leave in time: killed");
	assert_int_equal(stage_connect(s), 0);
	stop(s);
}

static void
test_second_hup_waits_for_the_first(void **state)
{
	struct stage *s = *state;

	start_ready(s);
	stage_part(s, "worker", "hang");
	stage_signal(s, SIGHUP);
	stage_expect(s, " hang ", NULL);
	stage_config(s, "workers = 1\nmax_waiters = 9");
	stage_part(s, "worker", "good");
	stage_signal(s, SIGHUP);
	stage_expect(s, "ready waiters=9 ", NULL);
	assert_true(stage_logged(s, "reload failed"));
	stage_expect_log(s, "ready, reloaded");
	stop(s);
}

static void
test_worker_killed_during_a_reload_is_replaced_with_the_old_settings(void **state)
{
	struct stage *s = *state;
	char line[STAGE_LINE];
	pid_t old;

	stage_start(s);
	old = stage_expect(s, "worker ", NULL);
	stage_expect_log(s, "\"ready: ");
	stage_part(s, "reaper", "hang");
	stage_config(s, "workers = 1\nmax_waiters = 9");
	stage_signal(s, SIGHUP);
	stage_expect(s, " hang ", NULL);
	assert_int_equal(kill(old, SIGKILL), 0);
	stage_expect(s, "ready waiters=20000 ", line);
	assert_int_equal(strncmp(line, "worker", 6), 0);
}

static void
test_term_during_a_reload_stops_everything(void **state)
{
	struct stage *s = *state;

	start_ready(s);
	stage_part(s, "worker", "hang");
	stage_signal(s, SIGHUP);
	stage_expect(s, " hang ", NULL);
	stop(s);
}

static void
test_usr2_says_that_it_is_not_there(void **state)
{
	struct stage *s = *state;

	start_ready(s);
	stage_signal(s, SIGUSR2);
	stage_expect_log(s, "USR2: this version cannot");
	stop(s);
}

#define STAGE_TEST(test) cmocka_unit_test_setup_teardown(test, stage_setup, stage_teardown)

static int
setup_impatient(void **state)
{
	if (stage_setup(state) < 0)
		return -1;
	((struct stage *)*state)->timing.ready = 1000;
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		STAGE_TEST(test_reload_replaces_all_but_the_spawner),
		STAGE_TEST(test_reload_changes_the_number_of_workers),
		STAGE_TEST(test_physical_settings_stay_and_are_named),
		STAGE_TEST(test_bad_file_keeps_the_old_generation),
		STAGE_TEST(test_failing_new_worker_keeps_the_old_one),
		STAGE_TEST(test_hopeless_new_worker_keeps_the_old_one),
		STAGE_TEST(test_crashing_new_worker_keeps_the_old_one),
		STAGE_TEST(test_new_worker_that_is_killed_once_is_replaced_with_the_new_settings),
		STAGE_TEST(test_hanging_new_worker_keeps_the_old_one),
		STAGE_TEST(test_old_generation_that_never_drains_is_killed),
		cmocka_unit_test_setup_teardown(
			test_second_hup_waits_for_the_first, setup_impatient, stage_teardown),
		STAGE_TEST(test_worker_killed_during_a_reload_is_replaced_with_the_old_settings),
		STAGE_TEST(test_term_during_a_reload_stops_everything),
		STAGE_TEST(test_usr2_says_that_it_is_not_there),
	};

	if (geteuid() != 0)
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
