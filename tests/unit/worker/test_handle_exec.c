/* test_handle_exec.c - exec and jobs: answered with the job, whatever happens to the wait. */
/* SPDX-License-Identifier: MIT */
#include "worker/routes.h"

#include "api_fixture.h"
#include "fake_domain.h"

#include "worker/api.h"

#include <json-c/json.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define EXEC "/sandboxes/box-1/exec"
#define JOB  "/jobs/" FAKE_JOB_ID

static void
start_exec(struct fixture *fixture, const char *body)
{
	fixture_start(fixture, "POST", EXEC, body);
}

static void
test_exec_without_wait_answers_the_job_id(void **state)
{
	AUTO_REPLY reply = fixture_call(*state, "POST", EXEC, "{\"command\":\"ls\",\"wait\":false}");

	assert_int_equal(reply.status, 200);
	assert_string_equal(reply.body, "{\"job_id\":\"" FAKE_JOB_ID "\",\"status\":\"queued\"}");
	assert_string_equal(fake.text, "ls");
	assert_int_equal(fake.calls, 1);
}

static void
test_exec_with_wait_answers_the_ended_job(void **state)
{
	AUTO_REPLY reply = fixture_call(*state, "POST", EXEC, "{\"command\":\"ls\"}");

	assert_int_equal(reply.status, 200);
	assert_string_equal(reply_text(&reply, "job_id"), FAKE_JOB_ID);
	assert_string_equal(reply_text(&reply, "status"), "succeeded");
}

static void
test_exec_waits_longer_than_the_command_may_take(void **state)
{
	AUTO_REPLY by_default = fixture_call(*state, "POST", EXEC, "{\"command\":\"ls\",\"timeout_seconds\":20}");

	assert_int_equal(by_default.status, 200);
	assert_int_equal(fake.timeout_ms, 50 * 1000);
	AUTO_REPLY asked = fixture_call(
		*state, "POST", EXEC, "{\"command\":\"ls\",\"timeout_seconds\":20,\"wait_timeout\":2}");

	assert_int_equal(asked.status, 200);
	assert_int_equal(fake.timeout_ms, 2 * 1000);
	AUTO_REPLY cut = fixture_call(*state, "POST", EXEC, "{\"command\":\"ls\",\"timeout_seconds\":5000}");

	assert_int_equal(cut.status, 200);
	assert_int_equal(fake.timeout_ms, 1000 * 1000);
}

static void
test_exec_refused_starts_nothing_and_says_why(void **state)
{
	static const struct {
		enum err_code err;
		int status;
		const char *code;
	} cases[] = {
		{ ERR_NOT_FOUND, 404, "not_found" },
		{ ERR_DELETED, 404, "not_found" },
		{ ERR_NOT_READY, 409, "sandbox_not_ready" },
		{ ERR_BUSY, 503, "queue_full" },
		{ ERR_NO_SPACE, 507, "insufficient_storage" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		fake_fail(cases[i].err, "because");
		AUTO_REPLY reply = fixture_call(*state, "POST", EXEC, "{\"command\":\"ls\"}");

		assert_problem(&reply, cases[i].status, cases[i].code);
		assert_string_equal(reply_text(&reply, "job_id"), "");
	}
}

static void
test_exec_faults_are_422(void **state)
{
	AUTO_REPLY reply = fixture_call(*state, "POST", EXEC, "{\"timeout_seconds\":-1}");

	assert_problem(&reply, 422, "invalid_request");
	assert_fault(&reply, "body", "command");
	assert_int_equal(json_object_array_length(json_object_object_get(reply.json, "detail")), 2);
	assert_int_equal(fake.calls, 0);
}

static void
test_exec_goes_through_submit_then_wait(void **state)
{
	struct fixture *fixture = *state;

	fake.defer = true;
	start_exec(fixture, "{\"command\":\"ls\"}");
	fixture_run_until(fixture, &fake.submits, true);
	fake_end_submit(NULL);
	assert_true(fake.job_waits);
	fake_end_job_wait(NULL);
	AUTO_REPLY reply = fixture_reply(fixture, fixture->client, false);

	assert_int_equal(reply.status, 200);
	assert_string_equal(reply_text(&reply, "status"), "succeeded");
	assert_int_equal(fake.cancelled, 0);
}

static void
test_a_wait_refused_after_the_job_was_recorded_still_answers_the_job(void **state)
{
	struct fixture *fixture = *state;
	struct err err;

	fake.defer = true;
	fake.job_status = "running";
	start_exec(fixture, "{\"command\":\"ls\"}");
	fixture_run_until(fixture, &fake.submits, true);
	fake_end_submit(NULL);
	err_set(&err, ERR_BUSY, "too many waits");
	fake_end_job_wait(&err);
	AUTO_REPLY reply = fixture_reply(fixture, fixture->client, false);

	assert_int_equal(reply.status, 200);
	assert_string_equal(reply_text(&reply, "job_id"), FAKE_JOB_ID);
	assert_string_equal(reply_text(&reply, "status"), "running");
	assert_int_equal(fake.left, 0);
}

static void
test_an_error_after_the_job_was_recorded_carries_its_id(void **state)
{
	struct fixture *fixture = *state;
	struct err err;

	fake.defer = true;
	start_exec(fixture, "{\"command\":\"ls\"}");
	fixture_run_until(fixture, &fake.submits, true);
	fake_end_submit(NULL);
	err_set(&err, ERR_UNAVAILABLE, "the store does not answer");
	fake.fail = err;
	fake_end_job_wait(&err);
	AUTO_REPLY reply = fixture_reply(fixture, fixture->client, false);

	assert_problem(&reply, 503, "unavailable");
	assert_string_equal(reply_text(&reply, "job_id"), FAKE_JOB_ID);
}

static void
test_a_client_that_leaves_ends_only_its_waits(void **state)
{
	struct fixture *fixture = *state;

	fake.defer = true;
	start_exec(fixture, "{\"command\":\"ls\"}");
	fixture_run_until(fixture, &fake.submits, true);
	close(fixture->client);
	fixture->client = -1;
	fixture_run_until(fixture, &fake.submits, false);
	start_exec(fixture, "{\"command\":\"ls\"}");
	fixture_run_until(fixture, &fake.submits, true);
	fake_end_submit(NULL);
	close(fixture->client);
	fixture->client = -1;
	fixture_run_until(fixture, &fake.job_waits, false);
	assert_int_equal(fake.cancelled, 2);
	assert_int_equal(fake.calls, 3); /* two submits, one wait: no job was cancelled */
	assert_int_equal(fake.left, 1); /* the one that was recorded */
}

static void
test_a_stopping_worker_answers_the_job_as_it_stands(void **state)
{
	struct fixture *fixture = *state;

	fake.defer = true;
	fake.job_status = "running";
	start_exec(fixture, "{\"command\":\"ls\"}");
	fixture_run_until(fixture, &fake.submits, true);
	fake_end_submit(NULL);
	api_drain(fixture->api);
	api_end_waits(fixture->api);
	AUTO_REPLY reply = fixture_reply(fixture, fixture->client, false);

	assert_int_equal(reply.status, 200);
	assert_string_equal(reply_text(&reply, "job_id"), FAKE_JOB_ID);
	assert_string_equal(reply_text(&reply, "status"), "running");
	assert_false(fake.job_waits);
}

static void
test_a_stopping_worker_refuses_what_was_not_recorded(void **state)
{
	struct fixture *fixture = *state;

	fake.defer = true;
	start_exec(fixture, "{\"command\":\"ls\"}");
	fixture_run_until(fixture, &fake.submits, true);
	api_drain(fixture->api);
	api_end_waits(fixture->api);
	AUTO_REPLY reply = fixture_reply(fixture, fixture->client, false);

	assert_problem(&reply, 503, "unavailable");
	assert_string_equal(reply_text(&reply, "job_id"), "");
}

static void
test_job_get_wait_and_cancel_answer_the_job(void **state)
{
	static const char *const calls[][2] = { { "GET", JOB }, { "GET", JOB "/wait" },
		{ "GET", JOB "/wait?timeout=0" }, { "POST", JOB "/cancel" } };

	for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
		AUTO_REPLY reply = fixture_call(*state, calls[i][0], calls[i][1], NULL);

		assert_int_equal(reply.status, 200);
		assert_string_equal(reply_text(&reply, "job_id"), FAKE_JOB_ID);
		assert_string_equal(fake.id, FAKE_JOB_ID);
	}
}

static void
test_job_wait_hands_its_time_on(void **state)
{
	AUTO_REPLY by_default = fixture_call(*state, "GET", JOB "/wait", NULL);

	assert_int_equal(by_default.status, 200);
	assert_int_equal(fake.timeout_ms, 300 * 1000);
	AUTO_REPLY zero = fixture_call(*state, "GET", JOB "/wait?timeout=0", NULL);

	assert_int_equal(zero.status, 200);
	assert_int_equal(fake.timeout_ms, 0);
	AUTO_REPLY cut = fixture_call(*state, "GET", JOB "/wait?timeout=999999", NULL);

	assert_int_equal(cut.status, 200);
	assert_int_equal(fake.timeout_ms, 1000 * 1000);
	AUTO_REPLY wrong = fixture_call(*state, "GET", JOB "/wait?timeout=-1", NULL);

	assert_fault(&wrong, "query", "timeout");
}

static void
test_too_many_waits_of_others_is_503(void **state)
{
	fake_fail(ERR_BUSY, "too many waits");
	AUTO_REPLY reply = fixture_call(*state, "GET", JOB "/wait", NULL);

	assert_problem(&reply, 503, "queue_full");
}

static void
test_an_unknown_job_is_404_everywhere(void **state)
{
	fake_fail(ERR_NOT_FOUND, "there is no such job");
	AUTO_REPLY get = fixture_call(*state, "GET", JOB, NULL);
	AUTO_REPLY wait = fixture_call(*state, "GET", JOB "/wait", NULL);
	AUTO_REPLY cancel = fixture_call(*state, "POST", JOB "/cancel", NULL);
	AUTO_REPLY list = fixture_call(*state, "GET", "/sandboxes/box-1/jobs", NULL);

	assert_problem(&get, 404, "not_found");
	assert_problem(&wait, 404, "not_found");
	assert_problem(&cancel, 404, "not_found");
	assert_problem(&list, 404, "not_found");
}

static void
test_the_jobs_of_a_sandbox_are_listed(void **state)
{
	AUTO_REPLY reply = fixture_call(*state, "GET", "/sandboxes/box-1/jobs?limit=5", NULL);
	struct json_object *jobs = json_object_object_get(reply.json, "jobs");

	assert_int_equal(reply.status, 200);
	assert_int_equal(json_object_array_length(jobs), 1);
	assert_int_equal(fake.limit, 5);
	AUTO_REPLY wrong = fixture_call(*state, "GET", "/sandboxes/box-1/jobs?limit=0", NULL);

	assert_fault(&wrong, "query", "limit");
}

static void
test_a_late_answer_to_a_client_that_left_is_dropped(void **state)
{
	struct fixture *fixture = *state;

	fake.defer_get = true;
	fixture_start(fixture, "GET", JOB, NULL);
	fixture_run_until(fixture, &fake.gets, true);
	close(fixture->client);
	fixture->client = -1;
	while (api_open_requests(fixture->api) > 0)
		fixture_run_once(fixture);
	fake_end_get();
	fake.defer_get = false;
	AUTO_REPLY next = fixture_call(fixture, "GET", JOB, NULL);

	assert_int_equal(next.status, 200);
}

static void
test_a_big_job_arrives_whole(void **state)
{
	static char big[100 * 1024];

	memset(big, 'x', sizeof big - 1);
	fake.job_status = big;
	AUTO_REPLY reply = fixture_call(*state, "GET", JOB, NULL);

	assert_int_equal(reply.status, 200);
	assert_string_equal(reply_text(&reply, "status"), big);
	AUTO_REPLY head = fixture_call(*state, "HEAD", JOB, NULL);

	assert_int_equal(head.status, 200);
	assert_int_equal(head.body_len, 0);
}

static struct reply
exec_with_keys(struct fixture *fixture, const char *key_lines)
{
	static const char body[] = "{\"command\":\"ls\"}";
	char text[2048];

	if (fixture->client < 0)
		fixture->client = fixture_connect(fixture);
	snprintf(text, sizeof text,
		"POST " EXEC " HTTP/1.1\r\nHost: test\r\nX-API-Key: test-key\r\n%s"
		"Content-Length: %zu\r\n\r\n%s",
		key_lines, strlen(body), body);
	fixture_send(fixture->client, text);
	return fixture_reply(fixture, fixture->client, false);
}

static void
test_the_key_is_handed_on_as_it_came(void **state)
{
	char longest[300] = "", lines[400];

	AUTO_REPLY reply = exec_with_keys(*state, "idempotency-key:  a \"b\" ~  \r\n");
	assert_int_equal(reply.status, 200);
	assert_string_equal(fake.key, "a \"b\" ~");
	memset(longest, 'k', 255);
	snprintf(lines, sizeof lines, "Idempotency-Key: %s\r\n", longest);
	AUTO_REPLY most = exec_with_keys(*state, lines);
	assert_int_equal(most.status, 200);
	assert_string_equal(fake.key, longest);
	AUTO_REPLY none = exec_with_keys(*state, "");
	assert_int_equal(none.status, 200);
	assert_string_equal(fake.key, "");
}

static void
test_a_wrong_key_is_422_and_starts_nothing(void **state)
{
	static const char *const wrong[] = { "Idempotency-Key:\r\n", "Idempotency-Key: a\xc3\xa4\r\n",
		"Idempotency-Key: a\tb\r\n", "Idempotency-Key: a\r\nidempotency-key: a\r\n", NULL };
	char lines[400] = "Idempotency-Key: ";

	for (int i = 0; i < 5; i++) {
		if (wrong[i] == NULL) {
			memset(lines + strlen(lines), 'k', 256);
			strcat(lines, "\r\n");
		}
		AUTO_REPLY reply = exec_with_keys(*state, wrong[i] != NULL ? wrong[i] : lines);

		assert_problem(&reply, 422, "invalid_request");
		assert_fault(&reply, "header", "Idempotency-Key");
	}
	assert_int_equal(fake.calls, 0);
}

static void
test_a_key_of_another_request_or_lost_outcome(void **state)
{
	fake_fail(ERR_KEY_CONFLICT, "because");
	AUTO_REPLY conflict = exec_with_keys(*state, "Idempotency-Key: k\r\n");

	assert_problem(&conflict, 409, "idempotency_conflict");
	fake_fail(ERR_OUTCOME_LOST, "because");
	AUTO_REPLY lost = exec_with_keys(*state, "Idempotency-Key: k\r\n");

	assert_problem(&lost, 410, "outcome_lost");
}

#define API_TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(test_exec_without_wait_answers_the_job_id),
		API_TEST(test_exec_with_wait_answers_the_ended_job),
		API_TEST(test_exec_waits_longer_than_the_command_may_take),
		API_TEST(test_exec_refused_starts_nothing_and_says_why),
		API_TEST(test_exec_faults_are_422),
		API_TEST(test_exec_goes_through_submit_then_wait),
		API_TEST(test_a_wait_refused_after_the_job_was_recorded_still_answers_the_job),
		API_TEST(test_an_error_after_the_job_was_recorded_carries_its_id),
		API_TEST(test_a_client_that_leaves_ends_only_its_waits),
		API_TEST(test_a_stopping_worker_answers_the_job_as_it_stands),
		API_TEST(test_a_stopping_worker_refuses_what_was_not_recorded),
		API_TEST(test_job_get_wait_and_cancel_answer_the_job),
		API_TEST(test_job_wait_hands_its_time_on),
		API_TEST(test_too_many_waits_of_others_is_503),
		API_TEST(test_an_unknown_job_is_404_everywhere),
		API_TEST(test_the_jobs_of_a_sandbox_are_listed),
		API_TEST(test_a_late_answer_to_a_client_that_left_is_dropped),
		API_TEST(test_a_big_job_arrives_whole),
		API_TEST(test_the_key_is_handed_on_as_it_came),
		API_TEST(test_a_wrong_key_is_422_and_starts_nothing),
		API_TEST(test_a_key_of_another_request_or_lost_outcome),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
