/* test_shared_jobs.c - jobs of another server: waited for, cancelled, listed, and told of. */
/* SPDX-License-Identifier: MIT */
#include "pair.h"
#include "base/err.h"
#include "domain/exec/exec_priv.h"
#include "domain/job/job_priv.h"
#include "domain/service_priv.h"
#include "ipc/shm.h"

#include <hiredis/hiredis.h>
#include <json-c/json.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { NEVER_MS = 3600 * 1000, SOON_MS = 20 };

static uint64_t
asked(int i)
{
	struct redis_stats stats;

	redis_stats(pair_clients[i], &stats);
	return stats.commands;
}

/* --- waiting --- */

/* faults.md B083: whoever waits elsewhere is woken by what is said, and asks once for it. */
static void
test_wait_is_woken_by_the_end(void **state)
{
	struct outcome job, now = { 0 }, end;
	uint64_t before;

	(void)state;
	pair_server(1)->far_look_ms = NEVER_MS;
	pair_hold(&job);
	job_get(pair_server(1), "t", job.job_id, on_job, &now);
	UNTIL(now.done);
	assert_string_equal(now.status, "running");
	pair_wait(1, job.job_id, &end);
	pair_turns(20);
	before = asked(1);
	pair_turns(20);
	assert_int_equal(asked(1), before);
	assert_false(end.done);
	fake_end(pair_fixtures[0], job.job_id, 3);
	UNTIL(end.done);
	assert_int_equal(asked(1), before + 1);
	assert_string_equal(end.status, "failed");
	assert_int_equal(end.exit_code, 3);
}

static void
test_wait_that_hears_nothing_looks_again(void **state)
{
	struct outcome job, end;

	(void)state;
	pair_server(1)->far_look_ms = SOON_MS;
	pair_deaf = true;
	pair_hold(&job);
	pair_wait(1, job.job_id, &end);
	pair_turns(20);
	assert_false(end.done);
	fake_end(pair_fixtures[0], job.job_id, 0);
	UNTIL(end.done);
	assert_string_equal(end.status, "succeeded");
}

static void
test_wait_goes_on_while_redis_is_away(void **state)
{
	struct outcome job, end;

	(void)state;
	pair_server(1)->far_look_ms = SOON_MS;
	pair_hold(&job);
	pair_wait(1, job.job_id, &end);
	pair_turns(20);
	kill(pair_redis.pid, SIGSTOP);
	UNTIL_WITH(!redis_is_up(pair_clients[1]), false);
	for (int i = 0; i < 50; i++)
		pair_turn(false);
	assert_false(end.done);
	kill(pair_redis.pid, SIGCONT);
	UNTIL(redis_is_up(pair_clients[0]) && redis_is_up(pair_clients[1]));
	fake_end(pair_fixtures[0], job.job_id, 0);
	UNTIL(end.done);
	assert_string_equal(end.status, "succeeded");
}

static void
test_too_many_waiters(void **state)
{
	struct outcome job, end;

	(void)state;
	pair_hold(&job);
	pair_fixtures[1]->config.max_waiters = 0;
	pair_wait(1, job.job_id, &end);
	UNTIL(end.done);
	assert_int_equal(end.code, ERR_BUSY);
	fake_end(pair_fixtures[0], job.job_id, 0);
	UNTIL(pair_is_idle(pair_server(0)));
}

/* --- cancelling --- */

static void
cancel_elsewhere(const struct outcome *job, struct outcome *end)
{
	struct job_wait *wait;

	*end = (struct outcome){ 0 };
	job_cancel(pair_server(1), "t", job->job_id, on_job, end, &wait);
}

static void
test_cancel(void **state)
{
	struct outcome job, end;

	(void)state;
	pair_hold(&job);
	cancel_elsewhere(&job, &end);
	UNTIL(pair_fixtures[0]->jobs[0].canceled);
	UNTIL(end.done);
	assert_string_equal(end.job_id, job.job_id);
}

/* The home is told by the answer to its own next word. */
static void
test_cancel_not_heard_is_told_later(void **state)
{
	struct outcome job, end;

	(void)state;
	pair_server(1)->far_look_ms = SOON_MS;
	pair_deaf = true;
	pair_hold(&job);
	cancel_elsewhere(&job, &end);
	pair_turns(20);
	assert_false(pair_fixtures[0]->jobs[0].canceled);
	service_on_redis(pair_server(0), true);
	UNTIL(pair_fixtures[0]->jobs[0].canceled);
	UNTIL(end.done);
}

/* Or by asking, when it begins to hear. */
static void
test_cancel_not_heard_is_asked_for(void **state)
{
	struct outcome job, end;

	(void)state;
	pair_server(1)->far_look_ms = SOON_MS;
	pair_deaf = true;
	pair_hold(&job);
	cancel_elsewhere(&job, &end);
	pair_turns(20);
	assert_false(pair_fixtures[0]->jobs[0].canceled);
	service_hear_anew(pair_server(0));
	UNTIL(pair_fixtures[0]->jobs[0].canceled);
	UNTIL(end.done);
}

/* --- lists --- */

static void
test_list(void **state)
{
	struct outcome job, here, there;

	(void)state;
	pair_hold(&job);
	for (int round = 0; round < 2; round++) {
		here = there = (struct outcome){ 0 };
		job_list(pair_server(0), "t", "a", 10, on_job, &here);
		job_list(pair_server(1), "t", "a", 10, on_job, &there);
		UNTIL(here.done && there.done);
		assert_int_equal(here.items, 1);
		assert_int_equal(there.items, 1);
		assert_string_equal(there.first, job.job_id);
		fake_end(pair_fixtures[0], job.job_id, 0);
		UNTIL(pair_is_idle(pair_server(0)));
	}
}

static void
test_list_while_redis_is_away(void **state)
{
	struct outcome list = { 0 };

	(void)state;
	kill(pair_redis.pid, SIGSTOP);
	job_list(pair_server(1), "t", "a", 10, on_job, &list);
	UNTIL_WITH(list.done, false);
	assert_int_equal(list.code, ERR_UNAVAILABLE);
	kill(pair_redis.pid, SIGCONT);
}

/* --- what is told of long outputs --- */

static const char *
bounded(const char *json, size_t bytes, struct json_object **ret_job)
{
	struct json_object *job = json_tokener_parse(json);

	*ret_job = job_bounded(job, bytes);
	json_object_put(job);
	return json_object_get_string(json_object_object_get(*ret_job, "stdout"));
}

static void
test_long_outputs_keep_both_ends(void **state)
{
	struct json_object *job;

	(void)state;
	assert_string_equal(bounded("{\"stdout\":\"12345678\"}", 8, &job), "12345678");
	assert_null(json_object_object_get(job, "stdout_truncated"));
	json_object_put(job);
	assert_string_equal(bounded("{\"stdout\":\"123456789\",\"_stdout_base64\":\"x\"}", 8, &job),
		"1234\n...[1 bytes omitted]...\n6789");
	assert_true(json_object_get_boolean(json_object_object_get(job, "stdout_truncated")));
	assert_null(json_object_object_get(job, "_stdout_base64"));
	json_object_put(job);
	/* What was left out before counts; no character is cut. */
	assert_string_equal(bounded("{\"stdout\":\"abc\xc3\xa4....\xc3\xb6xyz\",\"stdout_bytes\":100}", 8, &job),
		"abc\n...[94 bytes omitted]...\nxyz");
	json_object_put(job);
	/* 0123456789 */
	assert_string_equal(bounded("{\"stdout\":\"MDEyMzQ1Njc4OQ==\",\"encoding\":\"base64\"}", 4, &job),
		"MDEKLi4uWzYgYnl0ZXMgb21pdHRlZF0uLi4KODk=");
	json_object_put(job);
}

#define SHARED_TEST(f) cmocka_unit_test_setup_teardown(f, pair_setup, pair_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		SHARED_TEST(test_wait_is_woken_by_the_end),
		SHARED_TEST(test_wait_that_hears_nothing_looks_again),
		SHARED_TEST(test_wait_goes_on_while_redis_is_away),
		SHARED_TEST(test_too_many_waiters),
		SHARED_TEST(test_cancel),
		SHARED_TEST(test_cancel_not_heard_is_told_later),
		SHARED_TEST(test_cancel_not_heard_is_asked_for),
		SHARED_TEST(test_list),
		SHARED_TEST(test_list_while_redis_is_away),
		cmocka_unit_test(test_long_outputs_keep_both_ends),
	};

	return cmocka_run_group_tests(tests, pair_start_redis, pair_stop_redis);
}
