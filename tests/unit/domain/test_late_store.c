/* test_late_store.c - stores that answer later, and what happens meanwhile. */
/* SPDX-License-Identifier: MIT */
#include "fixture.h"
#include "late_store.h"
#include "base/err.h"
#include "domain/idempotency.h"
#include "ipc/exec_lock.h"
#include "ipc/job_table.h"
#include "ipc/record_index.h"
#include "ipc/shm.h"

#include <json-c/json.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static int
set_up(void **state)
{
	struct fixture *f;

	if (fixture_setup(state) != 0)
		return -1;
	f = *state;
	late_store_start(f->base);
	return 0;
}

static int
tear_down(void **state)
{
	int rc;

	late_store_hold();
	rc = fixture_teardown(state);
	assert_int_equal(late_store_held(), 0);
	return rc;
}

static bool
something_is_held(struct fixture *f)
{
	(void)f;
	return late_store_held() > 0;
}

/* key: NULL: none. */
static void
post(struct fixture *f, int service, const char *key, bool wait, struct outcome *ret,
	struct exec_submit **ret_submit)
{
	struct idempotency_key name = { .name = key, .digest = "0" };
	struct exec_spec spec = { .lane = "l", .wait = wait, .timeout_ms = 60000, .max_output_bytes = 1024 };

	*ret = (struct outcome){ 0 };
	spec.command = json_object_new_string("x");
	if (key != NULL)
		spec.key = &name;
	exec_submit(f->services[service], "t", "a", &spec, on_submitted, ret, ret_submit);
	json_object_put(spec.command);
	assert_non_null(*ret_submit);
	assert_false(ret->done);
}

static void
test_all_goes_as_with_a_near_one(void **state)
{
	struct fixture *f = *state;
	struct outcome job, end, first, again, list = { 0 };
	struct sandbox_record record;
	struct exec_submit *sent;

	make_sandbox(f, "a", &record);
	post(f, 0, NULL, true, &job, &sent);
	run_until(f, &job.done);
	wait_job(f, 1, job.job_id, &end);
	assert_string_equal(end.status, "succeeded");
	post(f, 0, "k", true, &first, &sent);
	post(f, 1, "k", true, &again, &sent);
	run_until(f, &first.done);
	run_until(f, &again.done);
	assert_string_equal(first.job_id, again.job_id);
	run_until_call(f, nothing_is_left);
	assert_int_equal(f->execs, 2);
	f->next = FAKE_HOLD;
	post(f, 0, NULL, true, &job, &sent);
	run_until(f, &job.done);
	job_list(f->services[1], "t", "a", 10, on_job, &list);
	run_until(f, &list.done);
	assert_int_equal(list.code, ERR_NONE);
	fake_end(f, job.job_id, 0);
	run_until_call(f, nothing_is_left);
}

static void
test_client_leaves_while_its_key_is_looked_up(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct exec_submit *sent;
	struct outcome job;

	make_sandbox(f, "a", &record);
	late_store_hold();
	post(f, 0, "k", true, &job, &sent);
	assert_int_equal(late_store_held(), 1);
	exec_submit_cancel(sent);
	assert_int_equal(late_store_held(), 0);
	late_store_release();
	run_due(f);
	assert_false(job.done);
	assert_true(nothing_is_left(f));
	assert_int_equal(f->execs, 0);
}

static void
test_client_leaves_while_what_it_sent_is_written(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct exec_submit *sent;
	struct outcome job = { 0 };

	make_sandbox(f, "a", &record);
	late_store_hold();
	post(f, 0, NULL, true, &job, &sent);
	assert_int_equal(late_store_held(), 1);
	exec_submit_cancel(sent);
	late_store_release();
	run_until_call(f, nothing_is_left);
	assert_false(job.done);
	assert_int_equal(f->execs, 0);
}

static void
test_client_leaves_while_the_end_is_read(void **state)
{
	struct fixture *f = *state;
	struct outcome job, end = { 0 };
	struct sandbox_record record;
	struct exec_submit *sent;
	struct job_wait *wait;

	make_sandbox(f, "a", &record);
	post(f, 0, NULL, true, &job, &sent);
	run_until_call(f, agent_has_a_job);
	run_until_call(f, nothing_is_left);
	late_store_hold();
	job_wait_start(f->services[1], record.tenant, job.job_id, 1000, on_job, &end, &wait);
	assert_non_null(wait);
	assert_int_equal(late_store_held(), 1);
	job_wait_cancel(wait);
	late_store_release();
	run_due(f);
	assert_false(end.done);
}

static void
test_wait_runs_out_while_the_job_ends(void **state)
{
	struct fixture *f = *state;
	struct outcome job = { 0 }, end = { 0 };
	struct sandbox_record record;
	struct exec_submit *sent;
	struct job_wait *wait;

	make_sandbox(f, "a", &record);
	f->next = FAKE_HOLD;
	post(f, 0, NULL, true, &job, &sent);
	run_until_call(f, agent_has_a_job);
	late_store_hold();
	job_wait_start(f->services[0], record.tenant, job.job_id, 1, on_job, &end, &wait);
	assert_non_null(wait);
	run_until_call(f, something_is_held);
	fake_end(f, job.job_id, 0);
	run_due(f);
	assert_false(end.done);
	late_store_release();
	run_until(f, &end.done);
	assert_int_equal(end.code, ERR_NONE);
	run_until_call(f, nothing_is_left);
}

/* What still waits when the services are freed is told, once. */
static void
test_worker_stops_meanwhile(void **state)
{
	static struct outcome job, waiting, list, sent;
	struct fixture *f = *state;
	struct sandbox_record record;
	struct exec_submit *submitted;
	struct job_wait *wait;

	job = waiting = list = sent = (struct outcome){ 0 };
	make_sandbox(f, "a", &record);
	post(f, 0, NULL, true, &job, &submitted);
	run_until_call(f, agent_has_a_job);
	run_until_call(f, nothing_is_left);
	late_store_hold();
	job_wait_start(f->services[0], record.tenant, job.job_id, 1000, on_job, &waiting, &wait);
	job_list(f->services[0], record.tenant, "a", 10, on_job, &list);
	post(f, 0, "k", true, &sent, &submitted);
	assert_int_equal(late_store_held(), 3);
	fixture_kill(f, 0);
	fixture_revive(f, 0);
	assert_true(waiting.done && list.done && sent.done);
	assert_int_equal(waiting.code, ERR_UNAVAILABLE);
	late_store_release();
}

static void
test_sandbox_is_deleted_meanwhile(void **state)
{
	struct fixture *f = *state;
	struct outcome job = { 0 }, end;
	struct sandbox_record record;
	struct exec_submit *sent;
	struct err err;

	make_sandbox(f, "a", &record);
	late_store_hold();
	post(f, 0, NULL, false, &job, &sent);
	assert_int_equal(late_store_held(), 1);
	assert_int_equal(delete_sandbox(f, 1, record.tenant, "a", &err), 0);
	run_due(f);
	late_store_release();
	run_until(f, &job.done);
	run_until_call(f, nothing_is_left);
	assert_int_equal(f->execs, 0);
	wait_job(f, 0, job.job_id, &end);
	assert_string_equal(end.verdict, "sandbox_deleted");
}

int
main(void)
{
#define RULE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		RULE(test_all_goes_as_with_a_near_one),
		RULE(test_client_leaves_while_its_key_is_looked_up),
		RULE(test_client_leaves_while_what_it_sent_is_written),
		RULE(test_client_leaves_while_the_end_is_read),
		RULE(test_wait_runs_out_while_the_job_ends),
		RULE(test_worker_stops_meanwhile),
		RULE(test_sandbox_is_deleted_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
