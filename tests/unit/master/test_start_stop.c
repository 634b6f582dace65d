/* test_start_stop.c - the server starts as a whole and stops in order. */
/* SPDX-License-Identifier: MIT */
#include "stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void
expect_all_ready(struct stage *s)
{
	stage_expect_log(s, "\"ready: 127.0.0.1:");
}

static void
test_ready_is_said_once_all_roles_are(void **state)
{
	struct stage *s = *state;

	stage_config(s, "workers = 2");
	stage_start(s);
	expect_all_ready(s);
	assert_true(stage_logged(s, "2 workers"));
	assert_true(stage_logged(s, "worker 2 started"));
	assert_int_equal(stage_connect(s), 0);
}

static void
test_each_role_has_its_own_socket_only(void **state)
{
	struct stage *s = *state;
	char line[STAGE_LINE];

	stage_start(s);
	for (int i = 0; i < 3; i++) {
		stage_expect(s, " ready ", line);
		assert_int_equal(strstr(line, "fds=1,") != NULL, strncmp(line, "worker", 6) == 0);
		assert_int_equal(strstr(line, ",1") != NULL, strncmp(line, "spawner", 7) == 0);
	}
}

static void
test_term_drains_and_tells_the_spawner_last(void **state)
{
	struct stage *s = *state;
	char line[STAGE_LINE];
	char path[128];

	stage_start(s);
	expect_all_ready(s);
	snprintf(path, sizeof path, "%s/run/orchardd.pid", s->dir);
	assert_int_equal(access(path, F_OK), 0);
	stage_signal(s, SIGTERM);
	stage_expect(s, " term ", NULL);
	stage_expect(s, " term ", NULL);
	stage_expect(s, " term ", line);
	assert_int_equal(strncmp(line, "spawner", 7), 0);
	assert_int_equal(stage_wait(s), 0);
	assert_int_equal(access(path, F_OK), -1);
}

static void
test_spawner_outlives_the_others_at_stop(void **state)
{
	struct stage *s = *state;
	char line[STAGE_LINE];

	stage_config(s, "workers = 1\ndrain_timeout_seconds = 0");
	s->timing.drain_extra = 300;
	stage_part(s, "reaper", "stubborn");
	stage_start(s);
	expect_all_ready(s);
	stage_signal(s, SIGTERM);
	stage_expect(s, " term ", line);
	assert_int_equal(strncmp(line, "worker", 6), 0);
	stage_expect(s, " term ", line);
	assert_int_equal(strncmp(line, "spawner", 7), 0);
	assert_true(stage_logged(s, "did not leave in time: killed"));
	assert_int_equal(stage_wait(s), 0);
}

static void
test_clients_are_refused_while_a_worker_hangs(void **state)
{
	struct stage *s = *state;

	stage_part(s, "worker", "stubborn");
	stage_start(s);
	expect_all_ready(s);
	assert_int_equal(stage_connect(s), 0);
	stage_signal(s, SIGTERM);
	stage_expect(s, " term ", NULL);
	stage_expect_log(s, "left: it ended with status 0");
	assert_int_equal(stage_connect(s), ECONNREFUSED);
}

static void
test_int_is_quick_even_while_draining(void **state)
{
	struct stage *s = *state;

	s->timing.quick = 200;
	stage_part(s, "worker", "stubborn");
	stage_config(s, "workers = 1\ndrain_timeout_seconds = 3600");
	stage_start(s);
	expect_all_ready(s);
	stage_signal(s, SIGTERM);
	stage_expect(s, " term ", NULL);
	stage_signal(s, SIGINT);
	assert_int_equal(stage_wait(s), 0);
	assert_true(stage_logged(s, "not waiting any longer"));
}

static void
assert_start_fails(struct stage *s, const char *words)
{
	stage_start(s);
	assert_int_equal(stage_wait(s), 1);
	assert_true(stage_logged(s, words));
	assert_false(stage_logged(s, "\"ready: "));
}

static void
test_failing_role_fails_the_start_in_its_own_words(void **state)
{
	stage_part(*state, "reaper", "fail");
	assert_start_fails(*state, "reaper 1 the reaper has lost its lines");
}

static void
test_hopeless_role_fails_the_start(void **state)
{
	stage_part(*state, "spawner", "hopeless");
	assert_start_fails(*state, "spawner 1 the spawner has lost its lines");
}

static void
test_crashing_role_fails_the_start(void **state)
{
	struct stage *s = *state;

	s->timing.pause_first = 10;
	stage_part(s, "worker", "crash");
	assert_start_fails(s, "the server stops: worker 1 was killed by signal 9");
	for (int i = 0; i < 3; i++)
		stage_expect(s, "crash", NULL);
	assert_false(stage_hears(s, "crash", 0));
}

static void
test_role_that_is_killed_once_does_not_fail_the_start(void **state)
{
	static const char *const roles[] = { "worker", "reaper", "spawner" };
	struct stage *s = *state;

	s->timing.pause_first = 10;
	for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
		stage_part(s, roles[i], "crash once");
	stage_start(s);
	for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
		stage_expect(s, " crash once ", NULL);
	stage_expect_log(s, "\"ready: ");
	assert_int_equal(stage_connect(s), 0);
	stage_signal(s, SIGTERM);
	assert_int_equal(stage_wait(s), 0);
}

static void
test_hanging_role_fails_the_start(void **state)
{
	struct stage *s = *state;

	s->timing.ready = 300;
	stage_part(s, "worker", "hang");
	assert_start_fails(s, "was not ready after");
}

static void
test_term_during_the_start_ends_it(void **state)
{
	struct stage *s = *state;

	stage_part(s, "worker", "hang");
	stage_start(s);
	stage_expect(s, "worker", NULL);
	stage_signal(s, SIGTERM);
	assert_int_equal(stage_wait(s), 0);
}

static void
test_second_server_is_refused_and_named(void **state)
{
	struct stage *s = *state;
	char words[64];
	char log[4096];

	stage_start(s);
	expect_all_ready(s);
	snprintf(words, sizeof words, "another orchardd (pid %d)", (int)s->master);
	assert_int_equal(stage_run_second(s, "", log, sizeof log), 1);
	assert_non_null(strstr(log, words));
	assert_non_null(strstr(log, "state_dir"));
	assert_false(stage_hears(s, "term", 0));
	assert_int_equal(stage_connect(s), 0);
}

static void
test_taken_port_fails_the_start(void **state)
{
	struct stage *s = *state;
	char log[4096];

	stage_start(s);
	expect_all_ready(s);
	assert_int_equal(stage_run_second(s, "-2", log, sizeof log), 1);
	assert_non_null(strstr(log, "is in use"));
}

static void
test_next_server_waits_for_a_dead_masters_children(void **state)
{
	struct stage *s = *state;

	stage_start(s);
	expect_all_ready(s);
	stage_signal(s, SIGKILL);
	assert_int_equal(stage_wait(s), 1000 + SIGKILL);
	stage_start(s);
	stage_expect(s, "orphan", NULL);
	stage_expect_log(s, "taken over");
	stage_expect(s, "ready", NULL);
	stage_signal(s, SIGTERM);
	assert_int_equal(stage_wait(s), 0);
}

static void
expect_told(int manager, const char *words)
{
	struct pollfd fd = { .fd = manager, .events = POLLIN };
	char text[512];
	ssize_t n;

	do {
		assert_int_equal(poll(&fd, 1, 15000), 1);
		n = recv(manager, text, sizeof text - 1, 0);
		text[n > 0 ? n : 0] = '\0';
	} while (n > 0 && strstr(text, words) == NULL);
	assert_true(n > 0);
}

static void
test_service_manager_is_told_of_every_phase(void **state)
{
	struct stage *s = *state;
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	AUTO_FD manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof address.sun_path, "%s/notify", s->dir);
	assert_int_equal(bind(manager, (const struct sockaddr *)&address, sizeof address), 0);
	s->notify_socket = address.sun_path;
	stage_start(s);
	expect_told(manager, "READY=1");
	stage_signal(s, SIGHUP);
	expect_told(manager, "RELOADING=1");
	expect_told(manager, "READY=1");
	stage_config(s, "workers = many");
	stage_signal(s, SIGHUP);
	expect_told(manager, "RELOADING=1");
	expect_told(manager, "READY=1");
	stage_signal(s, SIGTERM);
	expect_told(manager, "STOPPING=1");
	assert_int_equal(stage_wait(s), 0);
}

#define STAGE_TEST(test) cmocka_unit_test_setup_teardown(test, stage_setup, stage_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		STAGE_TEST(test_ready_is_said_once_all_roles_are),
		STAGE_TEST(test_each_role_has_its_own_socket_only),
		STAGE_TEST(test_term_drains_and_tells_the_spawner_last),
		STAGE_TEST(test_spawner_outlives_the_others_at_stop),
		STAGE_TEST(test_clients_are_refused_while_a_worker_hangs),
		STAGE_TEST(test_int_is_quick_even_while_draining),
		STAGE_TEST(test_failing_role_fails_the_start_in_its_own_words),
		STAGE_TEST(test_hopeless_role_fails_the_start),
		STAGE_TEST(test_crashing_role_fails_the_start),
		STAGE_TEST(test_role_that_is_killed_once_does_not_fail_the_start),
		STAGE_TEST(test_hanging_role_fails_the_start),
		STAGE_TEST(test_term_during_the_start_ends_it),
		STAGE_TEST(test_second_server_is_refused_and_named),
		STAGE_TEST(test_taken_port_fails_the_start),
		STAGE_TEST(test_service_manager_is_told_of_every_phase),
		STAGE_TEST(test_next_server_waits_for_a_dead_masters_children),
	};

	if (geteuid() != 0)
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
