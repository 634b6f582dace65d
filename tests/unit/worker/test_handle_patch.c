/* test_handle_patch.c - a patch is answered once it has ended, or by its job's id. */
/* SPDX-License-Identifier: MIT */
#include "worker/routes.h"

#include "api_fixture.h"
#include "fake_domain.h"

#include "worker/api.h"

#include <json-c/json.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define PATCH "/sandboxes/box-1/apply_patch"
#define BODY  "{\"command\":\"x\",\"timeout_seconds\":20}"

static void
test_the_end_is_answered_in_its_own_shape(void **state)
{
	AUTO_REPLY reply = fixture_call(*state, "POST", PATCH, BODY);

	assert_int_equal(reply.status, 200);
	assert_string_equal(reply.body, "{\"answer\":\"succeeded\"}");
	assert_int_equal(fake.timeout_ms, 50 * 1000);
}

static void
test_what_is_wrong_starts_nothing(void **state)
{
	AUTO_REPLY wrong = fixture_call(*state, "POST", PATCH, "{}");

	assert_fault(&wrong, "body", "command");
	assert_int_equal(fake.calls, 0);
	fake_fail(ERR_NOT_READY, "still pending");
	AUTO_REPLY early = fixture_call(*state, "POST", PATCH, BODY);

	assert_problem(&early, 409, "sandbox_not_ready");
	assert_string_equal(reply_text(&early, "job_id"), "");
}

static void
test_one_that_has_not_ended_is_never_told_as_failed(void **state)
{
	fake.job_status = "running";
	AUTO_REPLY reply = fixture_call(*state, "POST", PATCH, BODY);

	assert_problem(&reply, 408, "wait_timeout");
	assert_string_equal(reply_text(&reply, "job_id"), FAKE_JOB_ID);
	assert_int_equal(fake.detached, 1);
}

static void
test_a_stopping_worker_tells_the_job(void **state)
{
	struct fixture *fixture = *state;

	fake.defer = true;
	fixture_start(fixture, "POST", PATCH, BODY);
	fixture_run_until(fixture, &fake.submits, true);
	fake_end_submit(NULL);
	assert_true(fake.job_waits);
	api_drain(fixture->api);
	api_end_waits(fixture->api);
	AUTO_REPLY reply = fixture_reply(fixture, fixture->client, false);

	assert_problem(&reply, 503, "unavailable");
	assert_string_equal(reply_text(&reply, "job_id"), FAKE_JOB_ID);
	assert_int_equal(fake.detached, 1);
	assert_false(fake.job_waits);
}

static void
test_a_refused_wait_tells_the_job(void **state)
{
	struct fixture *fixture = *state;
	struct err err;

	fake.defer = true;
	fixture_start(fixture, "POST", PATCH, BODY);
	fixture_run_until(fixture, &fake.submits, true);
	fake_end_submit(NULL);
	err_set(&err, ERR_BUSY, "too many waits");
	fake_end_job_wait(&err);
	AUTO_REPLY reply = fixture_reply(fixture, fixture->client, false);

	assert_problem(&reply, 503, "queue_full");
	assert_string_equal(reply_text(&reply, "job_id"), FAKE_JOB_ID);
	assert_int_equal(fake.detached, 1);
}

#define API_TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(test_the_end_is_answered_in_its_own_shape),
		API_TEST(test_what_is_wrong_starts_nothing),
		API_TEST(test_one_that_has_not_ended_is_never_told_as_failed),
		API_TEST(test_a_stopping_worker_tells_the_job),
		API_TEST(test_a_refused_wait_tells_the_job),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
