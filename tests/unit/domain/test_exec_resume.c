/* test_exec_resume.c - commands of a process that has died end truthfully, once. */
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

static void
test_a_dead_processs_running_job_ends_truthfully(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct outcome job;
	uint32_t slot;

	make_sandbox(f, "a", &record);
	hold_command(f, 0, COMMAND, &job);
	slot = slot_of(f, job.job_id);
	exec_resume(f->services[1], slot); /* its owner lives: nothing happens */
	assert_int_equal(service_execs(f->services[1]), 0);
	fixture_kill(f, 0);
	exec_resume(f->services[1], slot);
	assert_int_equal(service_execs(f->services[1]), 1);
	run_due(f);
	fake_end(f, job.job_id, 3);
	wait_job(f, 1, job.job_id, &job);
	assert_string_equal(job.status, "failed");
	assert_int_equal(job.exit_code, 3);
	assert_int_equal(f->execs, 1);
	assert_idle(f);
}

/* Service 0 dies while its command runs, whose record is at the slot that is returned. */
static uint32_t
die_while_running(struct fixture *f, struct outcome *ret_job)
{
	struct sandbox_record record;
	uint32_t slot;

	make_sandbox(f, "a", &record);
	hold_command(f, 0, COMMAND, ret_job);
	slot = slot_of(f, ret_job->job_id);
	fixture_kill(f, 0);
	return slot;
}

/* Its owner had stored the result and told the agent, and died before it could free the record. */
static void
test_a_job_that_the_agent_has_forgotten_is_in_the_store(void **state)
{
	struct fixture *f = *state;
	struct outcome job;
	uint32_t slot;

	slot = die_while_running(f, &job);
	store_result(f, 1, job.job_id,
		"{\"job_id\":\"x\",\"status\":\"succeeded\",\"verdict\":\"exited\","
		"\"exit_code\":0,\"_tenant\":\"t\",\"_prev\":\"\"}");
	f->forgets = true;
	exec_resume(f->services[1], slot);
	run_until_call(f, nothing_is_left);
	wait_job(f, 1, job.job_id, &job);
	assert_string_equal(job.status, "succeeded");
	assert_string_equal(job.verdict, "exited");
}

static void
test_an_end_that_cannot_be_read_is_lost(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct outcome job;

	make_sandbox(f, "a", &record);
	f->next = FAKE_CUT_AFTER;
	f->garbles = true;
	submit(f, 0, "a", COMMAND, &job, NULL);
	wait_job(f, 0, job.job_id, &job);
	assert_string_equal(job.verdict, "agent_lost");
	assert_int_equal(job.exit_code, -1);
	assert_true(job.started);
	assert_int_equal(f->execs, 1);
	assert_idle(f);
}

static void
test_a_job_that_nobody_remembers_is_lost(void **state)
{
	struct fixture *f = *state;
	struct outcome job;
	uint32_t slot;

	slot = die_while_running(f, &job);
	f->forgets = true;
	exec_resume(f->services[1], slot);
	run_until_call(f, nothing_is_left);
	wait_job(f, 1, job.job_id, &job);
	assert_string_equal(job.verdict, "agent_lost");
	assert_int_equal(job.exit_code, -1);
	assert_true(job.started);
}

/* A job of service 0, which dies when nobody knows whether its request will reach the agent. Returns its slot. */
static uint32_t
lose_request(struct fixture *f, struct outcome *ret_job)
{
	struct sandbox_record record;
	uint32_t slot;

	make_sandbox(f, "a", &record);
	f->next = FAKE_CUT_BEFORE;
	submit(f, 0, "a", COMMAND, ret_job, NULL);
	run_due(f);
	slot = slot_of(f, ret_job->job_id);
	fixture_kill(f, 0);
	return slot;
}

static void
test_what_is_said_never_to_have_started_is_barred_first(void **state)
{
	struct fixture *f = *state;
	struct outcome job;
	uint32_t slot = lose_request(f, &job);

	exec_resume(f->services[1], slot);
	wait_job(f, 1, job.job_id, &job);
	assert_string_equal(job.verdict, "never_started");
	assert_int_equal(f->bars, 1);
	assert_int_equal(fake_started(f, job.job_id), 0);
	assert_idle(f);
}

static void
test_what_an_earlier_agent_may_have_run_is_lost(void **state)
{
	struct fixture *f = *state;
	struct outcome job;
	uint32_t slot = lose_request(f, &job);

	f->age_ms = -1;
	exec_resume(f->services[1], slot);
	wait_job(f, 1, job.job_id, &job);
	assert_string_equal(job.verdict, "agent_lost");
	assert_int_equal(fake_started(f, job.job_id), 0);
	assert_idle(f);
}

static void
test_a_request_that_arrives_late_ends_truthfully(void **state)
{
	struct fixture *f = *state;
	struct outcome job;
	uint32_t slot = lose_request(f, &job);

	f->late = true;
	exec_resume(f->services[1], slot);
	run_due(f);
	fake_end(f, job.job_id, 5);
	wait_job(f, 1, job.job_id, &job);
	assert_string_equal(job.verdict, "exited");
	assert_int_equal(job.exit_code, 5);
	assert_idle(f);
}

static void
test_a_dead_processs_queued_jobs_do_not_run_unless_detached(void **state)
{
	struct fixture *f = *state;
	struct outcome running, waited, detached;
	struct sandbox_record record;
	uint32_t slots[3];

	make_sandbox(f, "a", &record);
	hold_command(f, 0, COMMAND, &running);
	submit(f, 0, "a", COMMAND, &waited, NULL);
	submit(f, 0, "a", "{\"command\":\"x\",\"wait\":false}", &detached, NULL);
	slots[0] = slot_of(f, running.job_id);
	slots[1] = slot_of(f, waited.job_id);
	slots[2] = slot_of(f, detached.job_id);
	fixture_kill(f, 0);
	f->next = FAKE_BUSY; /* the first one still runs */
	for (int i = 0; i < 3; i++)
		exec_resume(f->services[1], slots[i]);
	wait_job(f, 1, waited.job_id, &waited);
	assert_string_equal(waited.verdict, "never_started");
	run_due(f);
	fake_end(f, running.job_id, 0);
	wait_job(f, 1, detached.job_id, &detached);
	assert_string_equal(detached.status, "succeeded");
	assert_int_equal(fake_started(f, waited.job_id), 0);
	assert_int_equal(fake_started(f, detached.job_id), 1);
	assert_idle(f);
}

/* Its successor finds it in front of what came later. */
static void
test_a_dead_processs_detached_job_keeps_its_turn(void **state)
{
	struct fixture *f = *state;
	struct outcome running, detached, later;
	struct sandbox_record record;
	uint32_t slot;

	make_sandbox(f, "a", &record);
	hold_command(f, 1, COMMAND, &running);
	submit(f, 0, "a", "{\"command\":\"x\",\"wait\":false}", &detached, NULL);
	submit(f, 1, "a", "{\"command\":\"y\",\"wait\":false}", &later, NULL);
	slot = slot_of(f, detached.job_id);
	fixture_kill(f, 0);
	fake_end(f, running.job_id, 0);
	wait_job(f, 1, running.job_id, &running);
	run_due(f);
	assert_int_equal(fake_started(f, later.job_id), 0);
	exec_resume(f->services[1], slot);
	wait_job(f, 1, later.job_id, &later);
	wait_job(f, 1, detached.job_id, &detached);
	assert_string_equal(detached.status, "succeeded");
	assert_string_equal(f->jobs[1].id, detached.job_id);
	assert_string_equal(f->jobs[2].id, later.job_id);
	assert_int_equal(f->execs, 3);
	assert_idle(f);
}

static int
change_to_saving(struct job_record *record, void *arg, struct err *err)
{
	(void)arg;
	(void)err;
	record->state = JOB_SAVING;
	return 0;
}

static int
change_to_canceled(struct job_record *record, void *arg, struct err *err)
{
	record->cancel = true;
	return change_to_saving(record, arg, err);
}

/* A job that never reached the agent is ended by service 0, which dies while it writes that down. */
static void
die_while_saving_unsent(struct fixture *f, const char *body, job_change_f *change, const char *verdict)
{
	struct outcome running, queued;
	struct sandbox_record record;
	uint32_t slot;
	struct err err;

	make_sandbox(f, "a", &record);
	hold_command(f, 1, COMMAND, &running);
	submit(f, 0, "a", body, &queued, NULL);
	slot = slot_of(f, queued.job_id);
	assert_int_equal(job_table_change(shm_jobs(f->shm), slot, queued.job_id, change, NULL, &err), 0);
	fixture_kill(f, 0);
	exec_resume(f->services[1], slot);
	wait_job(f, 1, queued.job_id, &queued);
	assert_string_equal(queued.verdict, verdict);
	assert_false(queued.started);
	assert_int_equal(fake_started(f, queued.job_id), 0);
	fake_end(f, running.job_id, 0);
	wait_job(f, 1, running.job_id, &running);
	assert_idle(f);
}

static void
test_an_end_before_the_start_stays_one_whoever_writes_it_down(void **state)
{
	die_while_saving_unsent(*state, COMMAND, change_to_saving, "never_started");
}

static void
test_an_end_before_the_start_of_a_detached_job_stays_one(void **state)
{
	die_while_saving_unsent(*state, "{\"command\":\"x\",\"wait\":false}", change_to_saving, "never_started");
}

static void
test_a_cancel_before_the_start_stays_one_whoever_writes_it_down(void **state)
{
	die_while_saving_unsent(*state, COMMAND, change_to_canceled, "canceled");
}

static int
change_last(struct sandbox_record *record, void *arg, struct err *err)
{
	(void)err;
	memcpy(record->last_prev, record->last_job, sizeof record->last_prev);
	snprintf(record->last_job, sizeof record->last_job, "%s", (const char *)arg);
	return 0;
}

/*
 * Its process dies while it puts the job into the sandbox's list, and another one ends before the reaper comes. There
 * are three jobs then, the oldest of them before all this.
 */
static void
die_while_listing(struct fixture *f, bool listed)
{
	struct outcome oldest, first, second, list = { 0 };
	struct sandbox_record record;
	uint32_t slot, box;
	struct err err;

	make_sandbox(f, "a", &record);
	run_command(f, 0, "a", COMMAND, &oldest);
	assert_true(sandbox_table_find(shm_sandboxes(f->shm), "a", &record, &box));
	hold_command(f, 0, COMMAND, &first);
	slot = slot_of(f, first.job_id);
	assert_int_equal(job_table_change(shm_jobs(f->shm), slot, first.job_id, change_to_saving, NULL, &err), 0);
	if (listed)
		assert_int_equal(sandbox_table_change(
					 shm_sandboxes(f->shm), box, record.uid, change_last, first.job_id, &err),
			0);
	fixture_kill(f, 0);
	job_list(f->services[1], "t", "a", 0, on_job, &list);
	assert_int_equal(list.items, 2);
	submit(f, 1, "a", "{\"command\":\"x\",\"lane\":\"b\"}", &second, NULL);
	wait_job(f, 1, second.job_id, &second);
	list = (struct outcome){ 0 };
	job_list(f->services[1], "t", "a", 0, on_job, &list);
	assert_int_equal(list.items, 3);
	exec_resume(f->services[1], slot);
	fake_end(f, first.job_id, 0);
	wait_job(f, 1, first.job_id, &first);
	list = (struct outcome){ 0 };
	job_list(f->services[1], "t", "a", 0, on_job, &list);
	assert_int_equal(list.items, 3);
	assert_idle(f);
}

static void
test_a_job_that_was_listed_before_a_death_is_listed_once(void **state)
{
	die_while_listing(*state, true);
}

static void
test_a_job_that_was_not_listed_before_a_death_is_listed(void **state)
{
	die_while_listing(*state, false);
}

#define RULE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		RULE(test_a_dead_processs_running_job_ends_truthfully),
		RULE(test_a_job_that_the_agent_has_forgotten_is_in_the_store),
		RULE(test_an_end_that_cannot_be_read_is_lost),
		RULE(test_a_job_that_nobody_remembers_is_lost),
		RULE(test_what_is_said_never_to_have_started_is_barred_first),
		RULE(test_what_an_earlier_agent_may_have_run_is_lost),
		RULE(test_a_request_that_arrives_late_ends_truthfully),
		RULE(test_a_dead_processs_queued_jobs_do_not_run_unless_detached),
		RULE(test_a_dead_processs_detached_job_keeps_its_turn),
		RULE(test_an_end_before_the_start_stays_one_whoever_writes_it_down),
		RULE(test_an_end_before_the_start_of_a_detached_job_stays_one),
		RULE(test_a_cancel_before_the_start_stays_one_whoever_writes_it_down),
		RULE(test_a_job_that_was_listed_before_a_death_is_listed_once),
		RULE(test_a_job_that_was_not_listed_before_a_death_is_listed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
