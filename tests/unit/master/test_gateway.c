/* test_gateway.c - a gateway outlives its generation while terminals are open, and not for ever. */
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

enum { LINGERING = 8 };

static int
setup(void **state)
{
	int rc = stage_setup(state);

	if (rc == 0)
		((struct stage *)*state)->gateway = true;
	return rc;
}

static pid_t
start(struct stage *s)
{
	pid_t gateway;

	stage_start(s);
	gateway = stage_expect(s, "gateway ", NULL);
	stage_expect_log(s, "\"ready: ");
	return gateway;
}

static void
stop(struct stage *s)
{
	stage_signal(s, SIGTERM);
	assert_int_equal(stage_wait(s), 0);
}

static void
reload(struct stage *s, pid_t old)
{
	char line[STAGE_LINE];

	stage_signal(s, SIGHUP);
	assert_int_equal(stage_expect(s, " hup ", line), old);
	assert_non_null(strstr(line, "gateway"));
}

static void
test_reload_lets_the_old_one_linger(void **state)
{
	struct stage *s = *state;
	pid_t old = start(s), new;
	char line[STAGE_LINE], words[64];

	stage_signal(s, SIGHUP);
	new = stage_expect(s, "gateway ", NULL);
	assert_int_not_equal(new, old);
	assert_int_equal(stage_expect(s, " hup ", NULL), old);
	stage_expect_log(s, "ready, reloaded");
	assert_int_equal(kill(old, 0), 0);
	/* It is not replaced when it leaves. */
	kill(old, SIGTERM);
	assert_int_equal(stage_expect(s, "gateway ", line), old);
	assert_non_null(strstr(line, " term "));
	snprintf(words, sizeof words, "gateway 1 (pid %d) left", (int)old);
	stage_expect_log(s, words);
	assert_false(stage_hears(s, "gateway", 50));
	stop(s);
}

static void
test_stopping_ends_those_that_linger(void **state)
{
	struct stage *s = *state;
	pid_t old = start(s), one, other;

	reload(s, old);
	stage_signal(s, SIGTERM);
	one = stage_expect(s, "gateway ", NULL);
	other = stage_expect(s, "gateway ", NULL);
	assert_true(one == old || other == old);
	assert_int_equal(stage_wait(s), 0);
}

static void
test_a_failed_reload_ends_the_new_one(void **state)
{
	struct stage *s = *state;
	pid_t old = start(s);
	char line[STAGE_LINE];

	stage_part(s, "worker", "fail");
	stage_signal(s, SIGHUP);
	stage_expect_log(s, "reload failed, the old processes go on");
	stage_expect_log(s, "gateway 1 (pid "); /* the new one left, if it was not too new to say so */
	stage_part(s, "worker", "good");
	stage_signal(s, SIGTERM);
	do
		stage_expect(s, " term ", line);
	while (strstr(line, "gateway") == NULL);
	assert_int_equal(strtol(line + strlen("gateway "), NULL, 10), old);
	assert_int_equal(stage_wait(s), 0);
}

static void
test_only_so_many_linger(void **state)
{
	struct stage *s = *state;
	pid_t pids[LINGERING + 2];
	char words[64];

	pids[0] = start(s);
	for (int i = 0; i <= LINGERING; i++) {
		stage_signal(s, SIGHUP);
		pids[i + 1] = stage_expect(s, "gateway ", NULL);
		assert_int_equal(stage_expect(s, " hup ", NULL), pids[i]);
	}
	snprintf(words, sizeof words, "gateway 1 (pid %d) left", (int)pids[0]);
	stage_expect_log(s, words);
	for (int i = 1; i <= LINGERING; i++)
		assert_int_equal(kill(pids[i], 0), 0);
	stop(s);
}

static void
test_killed_gateway_is_replaced(void **state)
{
	struct stage *s = *state;
	pid_t old = start(s);

	kill(old, SIGKILL);
	assert_int_not_equal(stage_expect(s, "gateway ", NULL), old);
	stop(s);
}

int
main(void)
{
#define PLAY(test) cmocka_unit_test_setup_teardown(test, setup, stage_teardown)
	const struct CMUnitTest tests[] = {
		PLAY(test_reload_lets_the_old_one_linger),
		PLAY(test_stopping_ends_those_that_linger),
		PLAY(test_a_failed_reload_ends_the_new_one),
		PLAY(test_only_so_many_linger),
		PLAY(test_killed_gateway_is_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
