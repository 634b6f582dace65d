/*
 * test_shared.c - two servers and one sandbox: commands take turns, and each knows the other's jobs. A real Redis.
 */
/* SPDX-License-Identifier: MIT */
#include "pair.h"
#include "base/err.h"
#include "cluster/lane_lease.h"
#include "domain/exec/exec_priv.h"
#include "domain/service_priv.h"
#include "ipc/shm.h"

#include <hiredis/hiredis.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* --- tests --- */

static void
test_fence_is_of_the_lease(void **state)
{
	struct outcome first, second, end;
	uint64_t fence;

	(void)state;
	pair_start(0, &first);
	UNTIL(first.done);
	assert_string_equal(first.message, "");
	pair_wait(0, first.job_id, &end);
	UNTIL(end.done);
	assert_string_equal(end.status, "succeeded");
	fence = pair_fixtures[0]->last_fence;
	assert_true(fence >> LANE_FENCE_BITS > 1000000000);
	pair_start(0, &second);
	pair_wait(0, first.job_id, &end);
	UNTIL(end.done && pair_fixtures[0]->last_fence != fence);
	assert_int_equal(pair_fixtures[0]->last_fence, fence + 1);
	UNTIL(pair_is_idle(pair_fixtures[0]->services[0]));
}

static void
test_servers_take_turns(void **state)
{
	struct outcome held, next, end;

	(void)state;
	pair_fixtures[0]->next = FAKE_HOLD;
	pair_start(0, &held);
	UNTIL(held.done && pair_fixtures[0]->job_count == 1);
	pair_start(1, &next);
	UNTIL(next.done);
	for (int i = 0; i < 50; i++)
		pair_turn(true);
	/* Not even the agent was asked. */
	assert_int_equal(pair_fixtures[0]->execs, 1);
	fake_end(pair_fixtures[0], held.job_id, 0);
	UNTIL(pair_fixtures[0]->execs == 2);
	pair_wait(1, next.job_id, &end);
	UNTIL(end.done);
	assert_string_equal(end.status, "succeeded");
}

/* What waits for another server keeps nobody else of this one from running. */
static void
test_waiting_for_another_server_takes_no_place(void **state)
{
	struct outcome held, waits, other, end;

	(void)state;
	pair_fixtures[1]->services[0]->limits.running = 1;
	pair_fixtures[0]->next = FAKE_HOLD;
	pair_start(0, &held);
	UNTIL(held.done && pair_fixtures[0]->job_count == 1);
	pair_start(1, &waits);
	UNTIL(waits.done);
	submit(pair_fixtures[1], 0, "a", "{\"command\":\"y\",\"wait\":false,\"lane\":\"other\"}", &other, NULL);
	UNTIL(other.done && pair_fixtures[0]->execs == 2);
	pair_wait(1, other.job_id, &end);
	UNTIL(end.done);
	assert_string_equal(end.status, "succeeded");
	fake_end(pair_fixtures[0], held.job_id, 0);
	pair_wait(1, waits.job_id, &end);
	UNTIL(end.done);
	assert_string_equal(end.status, "succeeded");
	assert_int_equal(pair_fixtures[0]->execs, 3);
}

static int
change_leased(struct lane_record *record, void *arg, struct err *err)
{
	(void)arg;
	(void)err;
	lane_lease_learn(record,
		&(struct lane_news){
			.has = true, .number = record->number + 1000, .turns = 1, .until_ms = INT64_MAX });
	return 0;
}

static struct exec *
only_exec(struct service *service)
{
	for (int i = 0; i < SERVICE_EXEC_BUCKETS; i++)
		if (!LIST_EMPTY(&service->exec_buckets[i]))
			return LIST_FIRST(&service->exec_buckets[i]);
	fail_msg("there is none");
	return NULL;
}

/* Its turn comes while its end is being written down. */
static void
test_turn_of_one_that_has_ended(void **state)
{
	struct fixture *f = pair_fixtures[1];
	struct outcome held, waits, end;
	struct exec *exec;
	struct err err;

	(void)state;
	pair_fixtures[0]->next = FAKE_HOLD;
	pair_start(0, &held);
	UNTIL(held.done && pair_fixtures[0]->job_count == 1);
	pair_start(1, &waits);
	UNTIL(waits.done);
	exec = only_exec(f->services[0]);
	UNTIL(exec->parked && exec->pass.ask == NULL);
	exec_finish_words(exec, "canceled", "canceled before it started");
	assert_int_equal(exec->step, EXEC_SAVING);
	assert_int_equal(lane_table_change(shm_lanes(f->shm), exec->pass.ref.slot, exec->pass.ref.key,
				 change_leased, NULL, &err),
		0);
	exec->pass.on_turn(exec->pass.arg);
	assert_true(exec->parked);
	exec->granted = true;
	exec->pass.on_turn(exec->pass.arg);
	assert_int_equal(exec->step, EXEC_SAVING);
	pair_wait(1, waits.job_id, &end);
	UNTIL(end.done);
	assert_string_equal(end.verdict, "canceled");
	fake_end(pair_fixtures[0], held.job_id, 0);
	UNTIL(pair_is_idle(pair_fixtures[0]->services[0]) && pair_is_idle(f->services[0]));
	assert_int_equal(pair_fixtures[0]->execs, 1);
}

/* Each time another server's command was faster: that is no reason to give up. */
static void
test_overtaken_again_and_again(void **state)
{
	struct outcome job, end;

	(void)state;
	pair_fixtures[0]->next = FAKE_STALE;
	pair_fixtures[0]->more_stale = 9;
	pair_start(0, &job);
	UNTIL(job.done);
	pair_wait(0, job.job_id, &end);
	UNTIL(end.done);
	assert_string_equal(end.status, "succeeded");
	assert_int_equal(pair_fixtures[0]->execs, 11);
}

/* The lease of a command that a dead process left running is renewed by its successor, and given away at its end. */
static void
test_a_lane_is_taken_over(void **state)
{
	struct fixture *f = pair_fixtures[0];
	struct outcome held, next, end;
	struct job_record live;
	struct exec *exec;
	uint32_t slot;

	(void)state;
	service_share_begin(f->services[1], &pair_shares[0]);
	f->next = FAKE_HOLD;
	submit(f, 1, "a", PAIR_COMMAND, &held, NULL);
	UNTIL(held.done && f->job_count == 1);
	assert_true(job_table_find(shm_jobs(f->shm), held.job_id, &live, &slot));
	fixture_kill(f, 1);
	exec_resume(f->services[0], slot);
	exec = LIST_FIRST(&f->services[0]->exec_buckets[1]);
	assert_non_null(exec);
	assert_true(exec->pass.inside);
	pair_start(1, &next);
	UNTIL(next.done);
	fake_end(f, held.job_id, 0);
	pair_wait(0, held.job_id, &end);
	UNTIL(end.done);
	UNTIL(f->execs == 2);
	pair_wait(1, next.job_id, &end);
	UNTIL(end.done);
}

static void
test_end_is_known_elsewhere(void **state)
{
	struct outcome job, end;

	(void)state;
	pair_start(0, &job);
	UNTIL(job.done);
	pair_wait(0, job.job_id, &end);
	UNTIL(end.done);
	pair_wait(1, job.job_id, &end);
	UNTIL(end.done);
	assert_string_equal(end.message, "");
	assert_string_equal(end.status, "succeeded");
	assert_string_equal(end.job_id, job.job_id);
	pair_wait(1, "11111111-1111-4111-8111-111111111111", &end);
	UNTIL(end.done);
	assert_int_equal(end.code, ERR_NOT_FOUND);
}

/* Whoever asks again with the key gets the result, as long as the key is known. */
static void
test_end_is_kept_for_its_key(void **state)
{
	struct outcome job, end;
	redisReply *ttl;

	(void)state;
	submit_keyed(pair_fixtures[0], 0, "a", PAIR_COMMAND, "key", &job);
	UNTIL(job.done);
	assert_string_equal(job.message, "");
	pair_wait(0, job.job_id, &end);
	UNTIL(end.done && pair_is_idle(pair_fixtures[0]->services[0]));
	ttl = redisCommand(pair_reader, "PTTL test:job:%s", job.job_id);
	assert_true((double)ttl->integer > pair_fixtures[0]->config.orphan_job_ttl_hours * 3600 * 1000 + 60000);
	freeReplyObject(ttl);
}

static void
test_another_tenant_finds_nothing(void **state)
{
	struct outcome job, end = { 0 };

	(void)state;
	pair_fixtures[0]->next = FAKE_HOLD;
	pair_start(0, &job);
	UNTIL(job.done && pair_fixtures[0]->job_count == 1);
	job_get(pair_fixtures[1]->services[0], "other", job.job_id, on_job, &end);
	UNTIL(end.done);
	assert_int_equal(end.code, ERR_NOT_FOUND);
	fake_end(pair_fixtures[0], job.job_id, 0);
	UNTIL(pair_is_idle(pair_fixtures[0]->services[0]));
	end = (struct outcome){ 0 };
	job_get(pair_fixtures[1]->services[0], "other", job.job_id, on_job, &end);
	UNTIL(end.done);
	assert_int_equal(end.code, ERR_NOT_FOUND);
}

/* The client is told at once, the agent only when a second server could tell. */
static void
test_result_is_kept_until_redis_has_it(void **state)
{
	struct outcome job, end;

	(void)state;
	pair_fixtures[0]->next = FAKE_HOLD;
	pair_start(0, &job);
	UNTIL(job.done && pair_fixtures[0]->job_count == 1);
	kill(pair_redis.pid, SIGSTOP);
	fake_end(pair_fixtures[0], job.job_id, 0);
	pair_wait(0, job.job_id, &end);
	UNTIL_WITH(end.done, false);
	assert_string_equal(end.status, "succeeded");
	UNTIL_WITH(!redis_is_up(pair_clients[0]), false);
	assert_int_equal(pair_fixtures[0]->acks, 0);
	kill(pair_redis.pid, SIGCONT);
	UNTIL(pair_fixtures[0]->jobs[0].acked);
	UNTIL(redis_is_up(pair_clients[1]));
	pair_wait(1, job.job_id, &end);
	UNTIL(end.done);
	assert_string_equal(end.status, "succeeded");
}

/* One that Redis refuses holds no other up, is told once it can be, and keeps nobody from leaving. */
static void
test_an_end_that_redis_refuses(void **state)
{
	struct outcome job, end, other;
	struct fixture *f = pair_fixtures[0];

	(void)state;
	f->next = FAKE_HOLD;
	pair_start(0, &job);
	UNTIL(job.done && f->job_count == 1);
	freeReplyObject(redisCommand(pair_reader, "SET test:job:%s spoiled", job.job_id));
	fake_end(f, job.job_id, 0);
	pair_wait(0, job.job_id, &end);
	UNTIL(end.done);
	UNTIL(service_execs(f->services[0]) == 0);
	UNTIL(service_busy(f->services[0]) == 0);
	assert_int_equal(f->acks, 0);
	pair_start(0, &other);
	UNTIL(other.done && f->jobs[1].acked);
	assert_int_equal(f->acks, 1);
	freeReplyObject(redisCommand(pair_reader, "DEL test:job:%s", job.job_id));
	UNTIL(f->jobs[0].acked);
	pair_wait(1, job.job_id, &end);
	UNTIL(end.done);
	assert_string_equal(end.status, "succeeded");
}

/* Again and again the agent is found to keep it: the end that waits is the same one. */
static void
test_tidy_adds_nothing_to_what_waits(void **state)
{
	struct fixture *f = pair_fixtures[0];
	struct sandbox_record record;
	const struct exec_told *waits;
	struct outcome job, end;
	uint32_t slot;

	(void)state;
	f->next = FAKE_HOLD;
	pair_start(0, &job);
	UNTIL(job.done && f->job_count == 1);
	freeReplyObject(redisCommand(pair_reader, "SET test:job:%s spoiled", job.job_id));
	fake_end(f, job.job_id, 0);
	pair_wait(0, job.job_id, &end);
	UNTIL(end.done && service_execs(f->services[0]) == 0);
	assert_true(sandbox_table_find(shm_sandboxes(f->shm), "a", &record, &slot));
	waits = LIST_FIRST(&f->services[0]->tolds);
	assert_non_null(waits);
	for (int i = 0; i < 3; i++) {
		exec_tidy(f->services[0], slot, record.uid);
		UNTIL(LIST_EMPTY(&f->services[0]->tidies));
		assert_ptr_equal(LIST_FIRST(&f->services[0]->tolds), waits);
	}
	freeReplyObject(redisCommand(pair_reader, "DEL test:job:%s", job.job_id));
	UNTIL(f->jobs[0].acked);
	assert_int_equal(f->acks, 1);
}

/* What an agent keeps and this server knows nothing of may be another's. */
static void
test_tidy_leaves_the_others_jobs(void **state)
{
	struct sandbox_record record;
	struct outcome job, end;
	uint32_t slot;

	(void)state;
	pair_fixtures[0]->next = FAKE_HOLD;
	pair_start(0, &job);
	UNTIL(job.done && pair_fixtures[0]->job_count == 1);
	pair_fixtures[0]->jobs[0].ended = true;
	assert_true(sandbox_table_find(shm_sandboxes(pair_fixtures[1]->shm), "a", &record, &slot));
	exec_tidy(pair_fixtures[1]->services[0], slot, record.uid);
	UNTIL(LIST_EMPTY(&pair_fixtures[1]->services[0]->tidies) &&
		LIST_EMPTY(&pair_fixtures[1]->services[0]->tolds));
	assert_false(pair_fixtures[0]->jobs[0].acked);
	pair_fixtures[0]->jobs[0].ended = false;
	fake_end(pair_fixtures[0], job.job_id, 0);
	pair_wait(1, job.job_id, &end);
	UNTIL(end.done);
	assert_string_equal(end.status, "succeeded");
}

static void
test_unknown_while_redis_is_away(void **state)
{
	struct outcome job, end = { 0 }, refused;

	(void)state;
	pair_start(0, &job);
	UNTIL(job.done);
	pair_wait(0, job.job_id, &end);
	UNTIL(end.done);
	kill(pair_redis.pid, SIGSTOP);
	for (int i = 0; i < PAIR_SERVERS; i++) {
		struct outcome look = { 0 };

		/* A question that is not answered is how a stopped one shows. */
		job_get(pair_fixtures[i]->services[0], "t", "11111111-1111-4111-8111-111111111111", on_job, &look);
		UNTIL_WITH(look.done && !redis_is_up(pair_clients[i]), false);
		assert_int_equal(look.code, ERR_UNAVAILABLE);
	}
	/* The last holder goes on, but promises nothing that others would deny; and others don't begin. */
	pair_start(0, &refused);
	UNTIL_WITH(refused.done, false);
	assert_int_equal(refused.code, ERR_UNAVAILABLE);
	submit(pair_fixtures[0], 0, "a", "{\"command\":\"x\"}", &job, NULL);
	UNTIL_WITH(job.done, false);
	assert_int_equal(job.code, ERR_NONE);
	pair_wait(0, job.job_id, &end);
	UNTIL_WITH(end.done, false);
	assert_string_equal(end.status, "succeeded");
	pair_start(1, &refused);
	UNTIL_WITH(refused.done, false);
	assert_int_equal(refused.code, ERR_UNAVAILABLE);
	kill(pair_redis.pid, SIGCONT);
	UNTIL(redis_is_up(pair_clients[0]) && pair_is_idle(pair_fixtures[0]->services[0]));
}

/* Who was promised a job finds it at any server, also when Redis went away just then. */
static void
test_a_promise_waits_until_others_know(void **state)
{
	struct outcome first, job, end;

	(void)state;
	pair_start(0, &first);
	UNTIL(first.done);
	pair_wait(0, first.job_id, &end);
	UNTIL(end.done && pair_is_idle(pair_fixtures[0]->services[0]));
	pair_fixtures[0]->next = FAKE_HOLD;
	kill(pair_redis.pid, SIGSTOP);
	pair_start(0, &job);
	UNTIL_WITH(!redis_is_up(pair_clients[0]), false);
	assert_int_equal(pair_fixtures[0]->job_count, 2);
	assert_false(job.done);
	kill(pair_redis.pid, SIGCONT);
	UNTIL(job.done);
	assert_int_equal(job.code, ERR_NONE);
	end = (struct outcome){ 0 };
	job_get(pair_fixtures[1]->services[0], "t", job.job_id, on_job, &end);
	UNTIL(end.done);
	assert_int_equal(end.code, ERR_NONE);
	fake_end(pair_fixtures[0], job.job_id, 0);
	UNTIL(pair_is_idle(pair_fixtures[0]->services[0]));
}

#define SHARED_TEST(f) cmocka_unit_test_setup_teardown(f, pair_setup, pair_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		SHARED_TEST(test_fence_is_of_the_lease),
		SHARED_TEST(test_servers_take_turns),
		SHARED_TEST(test_waiting_for_another_server_takes_no_place),
		SHARED_TEST(test_turn_of_one_that_has_ended),
		SHARED_TEST(test_overtaken_again_and_again),
		SHARED_TEST(test_a_lane_is_taken_over),
		SHARED_TEST(test_end_is_known_elsewhere),
		SHARED_TEST(test_end_is_kept_for_its_key),
		SHARED_TEST(test_another_tenant_finds_nothing),
		SHARED_TEST(test_result_is_kept_until_redis_has_it),
		SHARED_TEST(test_an_end_that_redis_refuses),
		SHARED_TEST(test_tidy_adds_nothing_to_what_waits),
		SHARED_TEST(test_tidy_leaves_the_others_jobs),
		SHARED_TEST(test_unknown_while_redis_is_away),
		SHARED_TEST(test_a_promise_waits_until_others_know),
	};

	return cmocka_run_group_tests(tests, pair_start_redis, pair_stop_redis);
}
