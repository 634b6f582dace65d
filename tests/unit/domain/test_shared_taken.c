/* test_shared_taken.c - jobs of a server that is gone, or seems so, are taken over; every job has one end. A real Redis. */
/* SPDX-License-Identifier: MIT */
#include "pair.h"
#include "base/err.h"
#include "cluster/job_live.h"
#include "domain/exec/exec_priv.h"
#include "domain/service_priv.h"
#include "ipc/shm.h"

#include <hiredis/hiredis.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SOON_MS = 20 };

/* As if that one had last said so long ago that it lives. */
static void
beat_of(const char *those, const char *name, int ago_s)
{
	redisReply *time = redisCommand(pair_reader, "TIME");
	long long now_s = atoll(time->element[0]->str);

	freeReplyObject(time);
	freeReplyObject(redisCommand(pair_reader, "ZADD test:%s %lld %s", those, (now_s - ago_s) * 1000, name));
}

static void
beat(int i, int ago_s)
{
	beat_of("replicas", pair_names[i], ago_s);
}

static void
on_taken(const char *name, void *arg)
{
	bool *taken = arg;

	assert_string_equal(name, pair_names[0]);
	*taken = true;
}

/* The second server takes over what it can, again and again as with each beat. */
static void
take_over(bool *taken)
{
	*taken = false;
	for (int left = PAIR_PATIENCE; !*taken; left--) {
		assert_true(left > 0);
		service_take_over(pair_server(1), pair_names[0], false, on_taken, taken);
		pair_turn(true);
	}
}

/* faults.md B085, B087: it goes on at the other server; the old one, only slow, steps back, and both tell one end. */
static void
test_running_job_is_taken_over(void **state)
{
	struct outcome job, old, end[2];
	bool taken;

	(void)state;
	pair_hold(&job);
	pair_wait(0, job.job_id, &old);
	beat(0, 3600);
	take_over(&taken);
	assert_int_equal(job_table_count(shm_jobs(pair_fixtures[1]->shm)), 1);
	UNTIL(job_table_count(shm_jobs(pair_fixtures[0]->shm)) == 0);
	pair_turns(20);
	assert_false(old.done);
	assert_int_equal(pair_fixtures[0]->execs, 1);
	fake_end(pair_fixtures[0], job.job_id, 3);
	for (int i = 0; i < 2; i++) {
		pair_wait(i, job.job_id, &end[i]);
		UNTIL(end[i].done);
		assert_string_equal(end[i].status, "failed");
		assert_int_equal(end[i].exit_code, 3);
		assert_true(end[i].started);
	}
	UNTIL(old.done);
	assert_int_equal(old.exit_code, 3);
	assert_int_equal(pair_fixtures[0]->execs, 1);
}

/* It steps back also when it hears of it by its own next word, or when it asks. */
static void
test_old_home_learns_of_it_later(void **state)
{
	struct outcome job, end;
	bool taken;

	(void)state;
	pair_server(0)->far_look_ms = SOON_MS;
	pair_deaf = true;
	for (int round = 0; round < 2; round++) {
		pair_hold(&job);
		beat(0, 3600);
		take_over(&taken);
		pair_turns(20);
		assert_int_equal(job_table_count(shm_jobs(pair_fixtures[0]->shm)), 1);
		if (round == 0)
			service_hear_anew(pair_server(0));
		else
			service_on_redis(pair_server(0), true);
		UNTIL(job_table_count(shm_jobs(pair_fixtures[0]->shm)) == 0);
		fake_end(pair_fixtures[0], job.job_id, 0);
		pair_wait(0, job.job_id, &end);
		UNTIL(end.done);
		assert_string_equal(end.status, "succeeded");
	}
}

static void
test_waiting_job_never_starts(void **state)
{
	struct outcome held, queued, end[2];
	bool taken;

	(void)state;
	pair_hold(&held);
	pair_start(0, &queued);
	UNTIL(queued.done);
	beat(0, 3600);
	/* Should the home step back from the one before the other is taken, it would start that, as it may. */
	pair_deaf = true;
	take_over(&taken);
	pair_deaf = false;
	service_hear_anew(pair_server(0));
	for (int i = 0; i < 2; i++) {
		pair_wait(i, queued.job_id, &end[i]);
		UNTIL(end[i].done);
		assert_string_equal(end[i].verdict, "never_started");
		assert_false(end[i].started);
	}
	fake_end(pair_fixtures[0], held.job_id, 0);
	pair_wait(0, held.job_id, &end[0]);
	UNTIL(end[0].done);
	assert_string_equal(end[0].status, "succeeded");
	assert_int_equal(pair_fixtures[0]->execs, 1);
}

static void
test_a_server_that_lives_keeps_its_jobs(void **state)
{
	struct outcome job, end;
	bool taken = false;

	(void)state;
	pair_hold(&job);
	beat(0, 0);
	for (int i = 0; i < 20; i++) {
		service_take_over(pair_server(1), pair_names[0], true, on_taken, &taken);
		pair_turns(2);
	}
	UNTIL(LIST_EMPTY(&pair_server(1)->takings));
	assert_false(taken);
	assert_int_equal(job_table_count(shm_jobs(pair_fixtures[0]->shm)), 1);
	assert_int_equal(job_table_count(shm_jobs(pair_fixtures[1]->shm)), 0);
	fake_end(pair_fixtures[0], job.job_id, 0);
	pair_wait(0, job.job_id, &end);
	UNTIL(end.done);
	assert_string_equal(end.status, "succeeded");
}

static bool
knows(int i, const struct outcome *job)
{
	struct job_record record;
	uint32_t slot;

	return job_table_find(shm_jobs(pair_fixtures[i]->shm), job->job_id, &record, &slot);
}

/* Its reaper claimed the job and died; the next one finds it in Redis, and nowhere else. */
static void
test_claimed_job_without_record_is_taken_up(void **state)
{
	struct outcome job, end[2];

	(void)state;
	pair_hold(&job);
	beat(1, 0);
	freeReplyObject(redisCommand(pair_reader, "HSET test:job:%s home %s", job.job_id, pair_names[1]));
	freeReplyObject(redisCommand(
		pair_reader, "SMOVE test:jobs:%s test:jobs:%s %s", pair_names[0], pair_names[1], job.job_id));
	service_tell_untold(pair_server(1));
	UNTIL(knows(1, &job));
	/* Found again and again, it is taken once. */
	for (int i = 0; i < 5; i++) {
		job_live_look(pair_server(1)->live);
		pair_turns(5);
	}
	assert_int_equal(job_table_count(shm_jobs(pair_fixtures[1]->shm)), 1);
	service_hear_anew(pair_server(0));
	UNTIL(!knows(0, &job));
	fake_end(pair_fixtures[0], job.job_id, 3);
	for (int i = 0; i < 2; i++) {
		pair_wait(i, job.job_id, &end[i]);
		UNTIL(end[i].done);
		assert_string_equal(end[i].status, "failed");
		assert_int_equal(end[i].exit_code, 3);
	}
	assert_int_equal(pair_fixtures[0]->execs, 1);
	UNTIL(job_table_count(shm_jobs(pair_fixtures[1]->shm)) == 0);
}

/* Nothing more is done of what runs now. */
static void
try_take_over(bool last_word)
{
	service_take_over(pair_server(1), pair_names[0], last_word, NULL, NULL);
	UNTIL(LIST_EMPTY(&pair_server(1)->takings));
}

static int
move_to_another_host(struct sandbox_record *record, void *arg, struct err *err)
{
	(void)arg;
	(void)err;
	record->elsewhere = true;
	return 0;
}

/* Nobody can ask its agent: the elected one gives it up when its host has been silent for long, and nobody else does. */
static void
test_job_of_a_lost_host_is_given_up(void **state)
{
	struct sandbox_record sandbox;
	struct outcome job, end[2];
	struct err err;
	uint32_t slot;

	(void)state;
	pair_fixtures[1]->config.redis_host_seconds = 3600;
	pair_hold(&job);
	assert_true(sandbox_table_find(shm_sandboxes(pair_fixtures[1]->shm), "a", &sandbox, &slot));
	assert_int_equal(sandbox_table_change(shm_sandboxes(pair_fixtures[1]->shm), slot, sandbox.uid,
				 move_to_another_host, NULL, &err),
		0);
	beat(0, 7200);
	beat_of("hosts", pair_server(0)->host, 600);
	try_take_over(true);
	assert_false(knows(1, &job));
	beat_of("hosts", pair_server(0)->host, 7200);
	try_take_over(false);
	assert_false(knows(1, &job));
	try_take_over(true);
	for (int i = 0; i < 2; i++) {
		pair_wait(1 - i, job.job_id, &end[i]);
		UNTIL(end[i].done);
		assert_string_equal(end[i].verdict, "agent_lost");
	}
	UNTIL(!knows(0, &job));
	assert_false(pair_fixtures[0]->jobs[0].acked);
}

/* Its end came to Redis while the old home was silent, which has never seen it. */
static void
test_end_told_by_others_is_taken(void **state)
{
	struct outcome job, end, again;
	bool taken;

	(void)state;
	pair_deaf = true;
	pair_server(0)->far_look_ms = SOON_MS;
	pair_hold(&job);
	beat(0, 3600);
	take_over(&taken);
	pair_fixtures[0]->jobs[0].ended = true;
	pair_wait(1, job.job_id, &end);
	UNTIL(end.done && pair_fixtures[0]->jobs[0].acked);
	pair_wait(0, job.job_id, &again);
	fake_end(pair_fixtures[0], job.job_id, 0);
	UNTIL(again.done);
	assert_string_equal(again.status, end.status);
	assert_string_equal(again.verdict, end.verdict);
}

/* Another end was first in Redis: from then on this server says the same. */
static void
test_first_end_stands_here_too(void **state)
{
	struct outcome job, end;
	char json[256];

	(void)state;
	pair_deaf = true;
	pair_hold(&job);
	snprintf(json, sizeof json,
		"{\"job_id\":\"%s\",\"status\":\"failed\",\"verdict\":\"agent_lost\",\"_tenant\":\"t\"}",
		job.job_id);
	freeReplyObject(redisCommand(pair_reader, "HSET test:job:%s state ended result %s", job.job_id, json));
	fake_end(pair_fixtures[0], job.job_id, 0);
	UNTIL(pair_is_idle(pair_server(0)) && LIST_EMPTY(&pair_server(0)->tolds));
	for (int i = 0; i < 2; i++) {
		pair_wait(i, job.job_id, &end);
		UNTIL(end.done);
		assert_string_equal(end.verdict, "agent_lost");
	}
	UNTIL(pair_fixtures[0]->jobs[0].acked);
}

/* Told twice, because an answer was lost, is no other end: what is stored here stays. */
static void
test_end_told_twice_stays(void **state)
{
	struct outcome job, end;

	(void)state;
	pair_fixtures[0]->config.redis_output_bytes = 1;
	pair_hold(&job);
	fake_end(pair_fixtures[0], job.job_id, 0);
	UNTIL(pair_fixtures[0]->jobs[0].acked);
	pair_wait(1, job.job_id, &end);
	UNTIL(end.done);
	assert_true(exec_board_settle(pair_server(0), 0, "none", job.job_id));
	UNTIL(LIST_EMPTY(&pair_server(0)->tolds));
	freeReplyObject(redisCommand(pair_reader, "DEL test:job:%s", job.job_id));
	pair_wait(0, job.job_id, &end);
	UNTIL(end.done);
	assert_string_equal(end.status, "succeeded");
}

#define SHARED_TEST(f) cmocka_unit_test_setup_teardown(f, pair_setup, pair_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		SHARED_TEST(test_running_job_is_taken_over),
		SHARED_TEST(test_old_home_learns_of_it_later),
		SHARED_TEST(test_waiting_job_never_starts),
		SHARED_TEST(test_a_server_that_lives_keeps_its_jobs),
		SHARED_TEST(test_claimed_job_without_record_is_taken_up),
		SHARED_TEST(test_job_of_a_lost_host_is_given_up),
		SHARED_TEST(test_end_told_by_others_is_taken),
		SHARED_TEST(test_first_end_stands_here_too),
		SHARED_TEST(test_end_told_twice_stays),
	};

	return cmocka_run_group_tests(tests, pair_start_redis, pair_stop_redis);
}
