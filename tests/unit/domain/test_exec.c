/* test_exec.c - a command runs at most once, and its true end is known to all. */
/* SPDX-License-Identifier: MIT */
#include "fixture.h"
#include "base/err.h"
#include "base/id.h"
#include "ipc/exec_lock.h"
#include "ipc/job_table.h"
#include "ipc/notify.h"
#include "ipc/shm.h"

#include <json-c/json.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static bool
agent_was_acked(struct fixture *f)
{
	return f->acks > 0;
}

static void
test_result_is_stored_and_acknowledged(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct outcome job, again;

	make_sandbox(f, "a", &record);
	run_command(f, 0, "a", COMMAND, &job);
	assert_string_equal(job.status, "succeeded");
	assert_string_equal(job.verdict, "exited");
	assert_int_equal(job.exit_code, 0);
	assert_string_equal(job.output, "hi\xef\xbf\xbd\n");
	wait_job(f, 1, job.job_id, &again);
	assert_string_equal(again.status, "succeeded");
	assert_string_equal(again.output, job.output);
	run_until_call(f, agent_was_acked);
	assert_idle(f);
	assert_int_equal(fake_started(f, job.job_id), 1);
}

static void
test_base64_output_stays_as_it_is(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct outcome job;

	make_sandbox(f, "a", &record);
	run_command(f, 0, "a", "{\"command\":\"x\",\"encoding\":\"base64\"}", &job);
	assert_string_equal(job.output, "aGn/Cg==");
}

static void
test_timeout_is_told_in_plain_numbers(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct outcome job;

	make_sandbox(f, "a", &record);
	f->next = FAKE_HOLD;
	submit(f, 0, "a", "{\"command\":\"x\",\"timeout_seconds\":0.5}", &job, NULL);
	run_until_call(f, agent_has_a_job);
	fake_end(f, job.job_id, 124);
	wait_job(f, 0, job.job_id, &job);
	assert_string_equal(job.status, "failed");
	assert_string_equal(job.error, "Command timed out after 0.5s");
	assert_int_equal(job.exit_code, 124);
}

static void
test_waiters_of_another_process_get_the_end(void **state)
{
	struct fixture *f = *state;
	struct outcome job, here = { 0 }, there = { 0 }, now = { 0 }, foreign = { 0 };
	struct sandbox_record record;
	struct job_wait *wait;

	make_sandbox(f, "a", &record);
	hold_command(f, 0, COMMAND, &job);
	job_wait_start(f->services[0], "t", job.job_id, 4000, on_job, &here, &wait);
	assert_non_null(wait);
	job_wait_start(f->services[1], "t", job.job_id, 4000, on_job, &there, &wait);
	assert_non_null(wait);
	job_get(f->services[1], "t", job.job_id, on_job, &now);
	assert_string_equal(now.status, "running");
	assert_int_equal(now.exit_code, -1);
	job_get(f->services[1], "other", job.job_id, on_job, &foreign);
	assert_int_equal(foreign.code, ERR_NOT_FOUND);
	fake_end(f, job.job_id, 3);
	run_until(f, &here.done);
	run_until(f, &there.done);
	assert_string_equal(here.status, "failed");
	assert_int_equal(here.exit_code, 3);
	assert_string_equal(there.status, "failed");
	foreign = (struct outcome){ 0 };
	job_get(f->services[1], "other", job.job_id, on_job, &foreign);
	assert_int_equal(foreign.code, ERR_NOT_FOUND);
	assert_idle(f);
}

static bool
is_kicked(struct fixture *f, int service)
{
	struct pollfd p = { .fd = notify_fd(f->notify, f->refs[service].slot), .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

/* The end is handed over here and posted there; and the next one that posts that slot finds nobody here. */
static void
test_the_end_wakes_only_processes_that_do_not_know_it(void **state)
{
	struct fixture *f = *state;
	struct outcome job, here = { 0 };
	struct sandbox_record record;
	struct job_record live;
	struct job_wait *wait;
	uint32_t slot;

	make_sandbox(f, "a", &record);
	hold_command(f, 0, COMMAND, &job);
	assert_true(job_table_find(shm_jobs(f->shm), job.job_id, &live, &slot));
	job_wait_start(f->services[0], "t", job.job_id, 4000, on_job, &here, &wait);
	run_due(f);
	notify_watch(f->notify, f->refs[1].slot, NOTIFY_JOB, slot);
	fake_end(f, job.job_id, 0);
	run_until(f, &here.done);
	assert_false(is_kicked(f, 0));
	assert_true(is_kicked(f, 1));
	run_due(f);
	notify_post(f->notify, NOTIFY_JOB, slot);
	assert_false(is_kicked(f, 0));
	assert_idle(f);
}

static void
test_wait_that_runs_out_shows_it_as_it_stands(void **state)
{
	struct fixture *f = *state;
	struct outcome job, outcome = { 0 };
	struct sandbox_record record;
	struct job_wait *wait;

	make_sandbox(f, "a", &record);
	hold_command(f, 0, COMMAND, &job);
	job_wait_start(f->services[1], "t", job.job_id, 10, on_job, &outcome, &wait);
	run_until(f, &outcome.done);
	assert_int_equal(outcome.code, ERR_NONE);
	assert_string_equal(outcome.status, "running");
	fake_end(f, job.job_id, 0);
	assert_idle(f);
}

static void
test_commands_of_a_lane_run_in_order_over_processes(void **state)
{
	struct fixture *f = *state;
	struct outcome first, second, third, queued = { 0 };
	struct sandbox_record record;

	make_sandbox(f, "a", &record);
	hold_command(f, 0, COMMAND, &first);
	submit(f, 1, "a", COMMAND, &second, NULL);
	submit(f, 0, "a", COMMAND, &third, NULL);
	run_due(f);
	assert_int_equal(f->execs, 1);
	job_get(f->services[0], "t", second.job_id, on_job, &queued);
	assert_string_equal(queued.status, "queued");
	fake_end(f, first.job_id, 0);
	wait_job(f, 0, third.job_id, &third);
	assert_string_equal(f->jobs[0].id, first.job_id);
	assert_string_equal(f->jobs[1].id, second.job_id);
	assert_string_equal(f->jobs[2].id, third.job_id);
	assert_idle(f);
}

static void
test_a_queued_job_names_who_runs(void **state)
{
	struct fixture *f = *state;
	struct outcome first, second, third, look = { 0 };
	struct sandbox_record record;

	make_sandbox(f, "a", &record);
	hold_command(f, 0, COMMAND, &first);
	submit(f, 1, "a", COMMAND, &second, NULL);
	submit(f, 0, "a", COMMAND, &third, NULL);
	job_get(f->services[1], "t", third.job_id, on_job, &look);
	assert_string_equal(look.blocked_by, first.job_id);
	assert_true(look.queue_s >= 0);
	look = (struct outcome){ 0 };
	job_get(f->services[1], "t", first.job_id, on_job, &look);
	assert_string_equal(look.blocked_by, "");
	fake_end(f, first.job_id, 0);
	wait_job(f, 0, third.job_id, &third);
	assert_true(third.queue_s >= 0 && third.queue_s < 60);
	assert_idle(f);
}

/* It ends with nothing sent, and the next one takes its turn. */
static void
test_a_client_that_leaves_gives_its_place_up(void **state)
{
	struct fixture *f = *state;
	struct outcome first, second, third;
	struct sandbox_record record;

	make_sandbox(f, "a", &record);
	hold_command(f, 0, COMMAND, &first);
	submit(f, 1, "a", COMMAND, &second, NULL);
	submit(f, 0, "a", COMMAND, &third, NULL);
	job_leave(f->services[0], "other", second.job_id);
	run_due(f);
	assert_int_equal(job_table_count(shm_jobs(f->shm)), 3);
	job_leave(f->services[1], "t", second.job_id);
	wait_job(f, 0, second.job_id, &second);
	assert_string_equal(second.verdict, "never_started");
	assert_non_null(strstr(second.error, "left"));
	job_leave(f->services[0], "t", first.job_id);
	run_due(f);
	fake_end(f, first.job_id, 0);
	wait_job(f, 0, first.job_id, &first);
	assert_string_equal(first.status, "succeeded");
	wait_job(f, 1, third.job_id, &third);
	assert_string_equal(third.status, "succeeded");
	assert_int_equal(fake_started(f, second.job_id), 0);
	assert_idle(f);
}

static void
test_a_job_that_was_asked_to_outlive_its_client_keeps_its_place(void **state)
{
	struct fixture *f = *state;
	struct outcome first, background, keyed;
	struct sandbox_record record;

	make_sandbox(f, "a", &record);
	hold_command(f, 0, COMMAND, &first);
	submit(f, 1, "a", "{\"command\":\"x\",\"wait\":false}", &background, NULL);
	submit_keyed(f, 1, "a", COMMAND, "k", &keyed);
	job_leave(f->services[1], "t", background.job_id);
	job_leave(f->services[1], "t", keyed.job_id);
	run_due(f);
	fake_end(f, first.job_id, 0);
	wait_job(f, 1, background.job_id, &background);
	wait_job(f, 1, keyed.job_id, &keyed);
	assert_string_equal(background.status, "succeeded");
	assert_string_equal(keyed.status, "succeeded");
	assert_idle(f);
}

/* Its client was told to come back: the death of the process takes nothing from it. */
static void
test_a_detached_command_is_queued_again_by_a_successor(void **state)
{
	struct fixture *f = *state;
	struct outcome first, second;
	struct sandbox_record record;
	struct job_record live;
	uint32_t slot;

	make_sandbox(f, "a", &record);
	hold_command(f, 1, COMMAND, &first);
	submit(f, 0, "a", COMMAND, &second, NULL);
	exec_detach(f->services[1], second.job_id);
	assert_true(job_table_find(shm_jobs(f->shm), second.job_id, &live, &slot));
	assert_false(live.detached);
	exec_detach(f->services[0], second.job_id);
	fixture_kill(f, 0);
	exec_resume(f->services[1], slot);
	fake_end(f, first.job_id, 0);
	wait_job(f, 1, second.job_id, &second);
	assert_string_equal(second.status, "succeeded");
	assert_idle(f);
}

/* The place is granted already, but its owner does not know yet: leaving wins. Once it is started, it loses. */
static void
test_leaving_at_the_moment_of_the_grant_is_decided_by_the_record(void **state)
{
	struct fixture *f = *state;
	struct outcome first, second, third;
	struct exec_lock_stats stats;
	struct sandbox_record record;
	struct job_record head;
	uint32_t slot;

	make_sandbox(f, "a", &record);
	hold_command(f, 0, COMMAND, &first);
	submit(f, 1, "a", COMMAND, &second, NULL);
	assert_true(job_table_find(shm_jobs(f->shm), first.job_id, &head, &slot));
	exec_lock_release(shm_exec_lock(f->shm), f->notify,
		&(struct exec_lock_limits){ .running = 100, .per_sandbox = 4 },
		(struct exec_ticket){ .node = head.lock_node, .number = head.fence });
	exec_lock_stats(shm_exec_lock(f->shm), &stats);
	assert_int_equal(stats.running, 1); /* the second one has the lane */
	job_leave(f->services[1], "t", second.job_id);
	wait_job(f, 1, second.job_id, &second);
	assert_string_equal(second.verdict, "never_started");
	assert_int_equal(fake_started(f, second.job_id), 0);
	f->next = FAKE_HOLD;
	submit(f, 1, "a", "{\"command\":\"x\",\"lane\":\"l\"}", &third, NULL);
	job_leave(f->services[1], "t", third.job_id); /* written RUNNING before submit() returned */
	while (fake_started(f, third.job_id) == 0)
		event_base_loop(f->base, EVLOOP_ONCE);
	fake_end(f, third.job_id, 0);
	fake_end(f, first.job_id, 0);
	wait_job(f, 1, third.job_id, &third);
	assert_string_equal(third.status, "succeeded");
	assert_idle(f);
}

static void
test_no_room_to_wait_refuses_before_anything_is_recorded(void **state)
{
	struct fixture *f = *state;
	struct outcome refused, background;
	struct sandbox_record record;

	make_sandbox(f, "a", &record);
	f->config.max_waiters = 0;
	submit(f, 0, "a", COMMAND, &refused, NULL);
	assert_int_equal(refused.code, ERR_BUSY);
	assert_int_equal(f->execs, 0);
	submit(f, 0, "a", "{\"command\":\"x\",\"wait\":false}", &background, NULL);
	assert_int_equal(background.code, ERR_NONE);
	assert_idle(f);
}

static void
test_a_full_queue_refuses_and_leaves_nothing(void **state)
{
	struct fixture *f = *state;
	struct outcome jobs[4], refused;
	struct sandbox_record record;

	make_sandbox(f, "a", &record);
	hold_command(f, 0, COMMAND, &jobs[0]);
	for (int i = 1; i < 4; i++)
		submit(f, i % 2, "a", COMMAND, &jobs[i], NULL);
	submit(f, 1, "a", COMMAND, &refused, NULL);
	assert_int_equal(refused.code, ERR_BUSY);
	assert_int_equal(job_table_count(shm_jobs(f->shm)), 4);
	fake_end(f, jobs[0].job_id, 0);
	assert_idle(f);
}

static void
test_busy_waits_for_the_job_that_runs(void **state)
{
	struct fixture *f = *state;
	struct outcome other, job, now = { 0 };
	struct sandbox_record record;

	make_sandbox(f, "a", &record);
	hold_command(f, 0, COMMAND, &other);
	/* Another lane, so the lock lets it pass; the agent says busy all the same. */
	f->next = FAKE_BUSY;
	submit(f, 1, "a", "{\"command\":\"x\",\"lane\":\"b\"}", &job, NULL);
	while (f->gets == 0)
		event_base_loop(f->base, EVLOOP_ONCE);
	job_get(f->services[0], "t", job.job_id, on_job, &now);
	assert_string_equal(now.status, "queued");
	assert_int_equal(fake_started(f, job.job_id), 0);
	fake_end(f, other.job_id, 0);
	wait_job(f, 1, job.job_id, &job);
	assert_string_equal(job.status, "succeeded");
	assert_int_equal(fake_started(f, job.job_id), 1);
	assert_idle(f);
}

static void
test_stale_fence_takes_a_newer_one_for_the_same_job(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct outcome job;
	uint64_t first;

	make_sandbox(f, "a", &record);
	f->next = FAKE_STALE;
	submit(f, 0, "a", COMMAND, &job, NULL);
	while (f->execs == 0)
		event_base_loop(f->base, EVLOOP_ONCE);
	first = f->last_fence;
	wait_job(f, 0, job.job_id, &job);
	assert_string_equal(job.status, "succeeded");
	assert_true(f->last_fence > first + 100);
	assert_int_equal(f->execs, 2);
	assert_int_equal(fake_started(f, job.job_id), 1);
	assert_idle(f);
}

static void
test_lost_answer_is_asked_for_by_id(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct outcome job;

	make_sandbox(f, "a", &record);
	f->next = FAKE_CUT_AFTER;
	run_command(f, 0, "a", COMMAND, &job);
	assert_string_equal(job.status, "succeeded");
	assert_int_equal(f->execs, 1);
	assert_int_equal(fake_started(f, job.job_id), 1);
	assert_idle(f);
}

static void
test_lost_request_is_sent_again_under_its_id(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct outcome job;

	make_sandbox(f, "a", &record);
	f->next = FAKE_CUT_BEFORE;
	run_command(f, 0, "a", COMMAND, &job);
	assert_string_equal(job.status, "succeeded");
	assert_int_equal(f->execs, 2);
	assert_int_equal(fake_started(f, job.job_id), 1);
	assert_idle(f);
}

static void
test_what_was_sent_to_an_earlier_agent_is_not_sent_again(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct outcome job;

	make_sandbox(f, "a", &record);
	f->next = FAKE_CUT_BEFORE;
	f->age_ms = -1;
	submit(f, 0, "a", COMMAND, &job, NULL);
	wait_job(f, 0, job.job_id, &job);
	assert_string_equal(job.verdict, "agent_lost");
	assert_non_null(strstr(job.error, "its agent is no more"));
	assert_true(job.started);
	assert_int_equal(f->execs, 1);
	assert_int_equal(fake_started(f, job.job_id), 0);
	assert_idle(f);
}

static void
test_refused_request_never_started(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct outcome job;

	make_sandbox(f, "a", &record);
	f->next = FAKE_REFUSE;
	run_command(f, 0, "a", COMMAND, &job);
	assert_string_equal(job.status, "failed");
	assert_string_equal(job.verdict, "never_started");
	assert_non_null(strstr(job.error, "no such user"));
	assert_idle(f);
}

static void
test_full_journal_is_waited_for_and_is_no_fault_of_the_sandbox(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct outcome job;
	struct err err;

	make_sandbox(f, "a", &record);
	f->next = FAKE_FULL;
	submit(f, 0, "a", COMMAND, &job, NULL);
	while (f->execs == 0)
		event_base_loop(f->base, EVLOOP_ONCE);
	run_due(f);
	assert_int_equal(sandbox_get(f->services[1], "t", "a", &record, &err), 0);
	assert_true(record.ready);
	wait_job(f, 0, job.job_id, &job);
	assert_string_equal(job.status, "succeeded");
	assert_int_equal(f->execs, 2);
	assert_idle(f);
}

static bool
not_ready(struct fixture *f)
{
	struct sandbox_record record;
	struct err err;

	return sandbox_get(f->services[1], "t", "a", &record, &err) == 0 && !record.ready;
}

static bool
is_ready(struct fixture *f)
{
	return !not_ready(f);
}

static void
test_unreachable_agent_clears_ready_until_it_answers(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct outcome job;

	make_sandbox(f, "a", &record);
	fake_agent_stop(f);
	submit(f, 0, "a", COMMAND, &job, NULL);
	run_until_call(f, not_ready);
	fake_agent_start(f);
	run_until_call(f, is_ready);
	wait_job(f, 0, job.job_id, &job);
	assert_string_equal(job.status, "succeeded");
	assert_idle(f);
}

static void
test_exec_waits_for_readiness(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct outcome job, refused;
	struct exec_submit *handle;
	struct err err;
	bool existing;

	f->hold_creates = true;
	assert_int_equal(
		create_sandbox(f, 0, "{\"image\":\"default\",\"sandbox_id\":\"a\"}", &record, &existing, &err), 0);
	submit(f, 1, "a", COMMAND, &job, NULL);
	run_due(f);
	assert_false(job.done);
	/* One whose client leaves meanwhile is nothing. */
	submit(f, 1, "a", COMMAND, &refused, &handle);
	exec_submit_cancel(handle);
	f->config.readiness_wait_seconds = 0;
	submit(f, 1, "a", COMMAND, &refused, NULL);
	run_until(f, &refused.done);
	assert_int_equal(refused.code, ERR_NOT_READY);
	fixture_release_creates(f);
	run_until(f, &job.done);
	wait_job(f, 1, job.job_id, &job);
	assert_string_equal(job.status, "succeeded");
	assert_int_equal(f->execs, 1);
	assert_idle(f);
}

static void
test_delete_ends_jobs_of_every_process(void **state)
{
	struct fixture *f = *state;
	struct outcome running, queued, run_end = { 0 }, queue_end = { 0 };
	struct sandbox_record record;
	struct job_wait *wait;
	struct err err;

	make_sandbox(f, "a", &record);
	hold_command(f, 0, COMMAND, &running);
	submit(f, 1, "a", COMMAND, &queued, NULL);
	job_wait_start(f->services[1], "t", running.job_id, 4000, on_job, &run_end, &wait);
	job_wait_start(f->services[0], "t", queued.job_id, 4000, on_job, &queue_end, &wait);
	assert_int_equal(delete_sandbox(f, 1, "t", "a", &err), 0);
	run_until(f, &run_end.done);
	run_until(f, &queue_end.done);
	assert_string_equal(run_end.status, "failed");
	assert_string_equal(run_end.verdict, "sandbox_deleted");
	assert_string_equal(run_end.error, "sandbox deleted");
	assert_string_equal(queue_end.verdict, "sandbox_deleted");
	assert_int_equal(f->execs, 1);
	assert_idle(f);
}

static void
test_lost_sandbox_ends_jobs_with_its_reason(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct outcome job;
	uint32_t slot;

	make_sandbox(f, "a", &record);
	hold_command(f, 0, COMMAND, &job);
	assert_true(sandbox_table_find(shm_sandboxes(f->shm), "a", &record, &slot));
	sandbox_lost(f->services[1], slot, record.uid, "its agent was killed by signal 9");
	wait_job(f, 0, job.job_id, &job);
	assert_string_equal(job.verdict, "agent_lost");
	assert_non_null(strstr(job.error, "signal 9"));
	submit(f, 0, "a", COMMAND, &job, NULL);
	assert_int_equal(job.code, ERR_NOT_READY);
	assert_idle(f);
}

static void
cancel(struct fixture *f, int service, const char *job_id, struct outcome *ret)
{
	struct job_wait *wait;

	*ret = (struct outcome){ 0 };
	job_cancel(f->services[service], "t", job_id, on_job, ret, &wait);
	run_until(f, &ret->done);
}

static void
test_cancel_reaches_the_owner_in_another_process(void **state)
{
	struct fixture *f = *state;
	struct outcome running, queued, end;
	struct sandbox_record record;

	make_sandbox(f, "a", &record);
	hold_command(f, 0, COMMAND, &running);
	submit(f, 0, "a", COMMAND, &queued, NULL);
	cancel(f, 1, queued.job_id, &end);
	assert_string_equal(end.status, "failed");
	assert_string_equal(end.verdict, "canceled");
	assert_int_equal(end.exit_code, -1);
	assert_int_equal(fake_started(f, queued.job_id), 0);
	cancel(f, 1, running.job_id, &end);
	assert_string_equal(end.verdict, "canceled");
	assert_int_equal(end.exit_code, 137);
	/* One that has ended stays as it is; one that never was is not found. */
	cancel(f, 0, running.job_id, &end);
	assert_string_equal(end.verdict, "canceled");
	cancel(f, 0, "00000000-0000-4000-8000-000000000000", &end);
	assert_int_equal(end.code, ERR_NOT_FOUND);
	cancel(f, 0, "nosuch", &end);
	assert_int_equal(end.code, ERR_NOT_FOUND);
	assert_idle(f);
}

static void
test_jobs_of_a_sandbox_are_listed_newest_first(void **state)
{
	struct fixture *f = *state;
	struct outcome first, second, live, list = { 0 };
	struct sandbox_record record;

	make_sandbox(f, "a", &record);
	run_command(f, 0, "a", COMMAND, &first);
	run_command(f, 1, "a", COMMAND, &second);
	hold_command(f, 0, COMMAND, &live);
	job_list(f->services[1], "t", "a", 0, on_job, &list);
	assert_int_equal(list.items, 3);
	assert_string_equal(list.first, live.job_id);
	list = (struct outcome){ 0 };
	job_list(f->services[1], "t", "a", 2, on_job, &list);
	assert_int_equal(list.items, 2);
	list = (struct outcome){ 0 };
	job_list(f->services[1], "other", "a", 2, on_job, &list);
	assert_int_equal(list.code, ERR_NOT_FOUND);
	fake_end(f, live.job_id, 0);
	assert_idle(f);
}

static void
test_waits_are_bounded(void **state)
{
	struct fixture *f = *state;
	struct outcome job, first = { 0 }, second = { 0 };
	struct job_wait *wait, *none;
	struct sandbox_record record;

	make_sandbox(f, "a", &record);
	hold_command(f, 0, COMMAND, &job);
	f->config.max_waiters = 1;
	job_wait_start(f->services[0], "t", job.job_id, 4000, on_job, &first, &wait);
	job_wait_start(f->services[0], "t", job.job_id, 4000, on_job, &second, &none);
	assert_int_equal(second.code, ERR_BUSY);
	assert_int_equal(scoreboard_sum(shm_scoreboard(f->shm), METRIC_WAITERS), 1);
	job_wait_cancel(wait);
	assert_int_equal(scoreboard_sum(shm_scoreboard(f->shm), METRIC_WAITERS), 0);
	fake_end(f, job.job_id, 0);
	assert_idle(f);
}

int
main(void)
{
#define RULE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		RULE(test_result_is_stored_and_acknowledged),
		RULE(test_base64_output_stays_as_it_is),
		RULE(test_timeout_is_told_in_plain_numbers),
		RULE(test_waiters_of_another_process_get_the_end),
		RULE(test_the_end_wakes_only_processes_that_do_not_know_it),
		RULE(test_wait_that_runs_out_shows_it_as_it_stands),
		RULE(test_commands_of_a_lane_run_in_order_over_processes),
		RULE(test_a_queued_job_names_who_runs),
		RULE(test_a_client_that_leaves_gives_its_place_up),
		RULE(test_a_job_that_was_asked_to_outlive_its_client_keeps_its_place),
		RULE(test_leaving_at_the_moment_of_the_grant_is_decided_by_the_record),
		RULE(test_a_detached_command_is_queued_again_by_a_successor),
		RULE(test_no_room_to_wait_refuses_before_anything_is_recorded),
		RULE(test_a_full_queue_refuses_and_leaves_nothing),
		RULE(test_busy_waits_for_the_job_that_runs),
		RULE(test_stale_fence_takes_a_newer_one_for_the_same_job),
		RULE(test_lost_answer_is_asked_for_by_id),
		RULE(test_lost_request_is_sent_again_under_its_id),
		RULE(test_what_was_sent_to_an_earlier_agent_is_not_sent_again),
		RULE(test_refused_request_never_started),
		RULE(test_full_journal_is_waited_for_and_is_no_fault_of_the_sandbox),
		RULE(test_unreachable_agent_clears_ready_until_it_answers),
		RULE(test_exec_waits_for_readiness),
		RULE(test_delete_ends_jobs_of_every_process),
		RULE(test_lost_sandbox_ends_jobs_with_its_reason),
		RULE(test_cancel_reaches_the_owner_in_another_process),
		RULE(test_jobs_of_a_sandbox_are_listed_newest_first),
		RULE(test_waits_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
