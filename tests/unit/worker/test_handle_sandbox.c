/* test_handle_sandbox.c - /sandboxes: what is read, what is asked of the domain, what is answered. */
/* SPDX-License-Identifier: MIT */
#include "worker/routes.h"

#include "api_fixture.h"
#include "fake_domain.h"

#include <json-c/json.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void
test_create_answers_the_record(void **state)
{
	AUTO_REPLY reply = fixture_call(*state, "POST", "/sandboxes", "{\"image\":\"default\",\"unknown\":[1]}");

	assert_int_equal(reply.status, 200);
	assert_string_equal(reply_text(&reply, "sandbox_id"), "box-1");
	assert_string_equal(reply_text(&reply, "status"), "pending");
	assert_string_equal(fake.text, "default");
	assert_string_equal(reply_header(&reply, "Content-Type"), "application/json");
}

static void
test_create_tells_every_fault(void **state)
{
	AUTO_REPLY missing = fixture_call(*state, "POST", "/sandboxes", "{}");
	AUTO_REPLY two = fixture_call(*state, "POST", "/sandboxes", "{\"sandbox_id\":5}");
	struct json_object *detail = json_object_object_get(two.json, "detail");

	assert_problem(&missing, 422, "invalid_request");
	assert_fault(&missing, "body", "image");
	assert_int_equal(json_object_array_length(detail), 2);
	assert_int_equal(fake.calls, 0);
}

static void
test_create_refusals_have_words_of_their_own(void **state)
{
	static const struct {
		enum err_code err;
		int status;
		const char *code;
	} cases[] = {
		{ ERR_EXISTS, 409, "sandbox_exists" },
		{ ERR_NO_CAPACITY, 503, "no_capacity" },
		{ ERR_INVALID, 422, "image_invalid" },
		{ ERR_DENIED, 403, "image_not_allowed" },
		{ ERR_UNAVAILABLE, 503, "unavailable" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		fake_fail(cases[i].err, "because");
		AUTO_REPLY reply = fixture_call(*state, "POST", "/sandboxes", "{\"image\":\"x\"}");

		assert_problem(&reply, cases[i].status, cases[i].code);
		if (cases[i].err == ERR_INVALID)
			assert_fault(&reply, "body", "image");
		else
			assert_string_equal(reply_text(&reply, "detail"), "because");
	}
}

static void
test_list_has_defaults_and_an_end(void **state)
{
	AUTO_REPLY reply = fixture_call(*state, "GET", "/sandboxes", NULL);
	struct json_object *cursor;

	assert_int_equal(reply.status, 200);
	assert_int_equal(json_object_array_length(json_object_object_get(reply.json, "sandboxes")), 1);
	assert_true(json_object_object_get_ex(reply.json, "next_cursor", &cursor));
	assert_null(cursor);
	assert_int_equal(fake.limit, 100);
	assert_int_equal(fake.status, -1);
	assert_string_equal(fake.text, "");
	assert_string_equal(fake.id, "");
}

static void
test_list_hands_its_filter_on(void **state)
{
	fake.cursor = "next";
	AUTO_REPLY reply = fixture_call(
		*state, "GET", "/sandboxes?label=team%3Da%20b%3Dc&status=failed&limit=7&cursor=here", NULL);

	assert_int_equal(reply.status, 200);
	assert_string_equal(reply_text(&reply, "next_cursor"), "next");
	assert_int_equal(fake.limit, 7);
	assert_int_equal(fake.status, SANDBOX_FAILED);
	assert_string_equal(fake.text, "team=a b=c");
	assert_string_equal(fake.id, "here");
}

static void
test_list_refuses_what_it_cannot_mean(void **state)
{
	static const struct {
		const char *query, *field;
	} cases[] = {
		{ "limit=0", "limit" },
		{ "limit=1001", "limit" },
		{ "limit=-1", "limit" },
		{ "limit=+1", "limit" },
		{ "limit=1x", "limit" },
		{ "limit=", "limit" },
		{ "limit=99999999999999999999", "limit" },
		{ "label=novalue", "label" },
		{ "label=%3Dx", "label" },
		{ "label=%zz", "label" },
		{ "status=nosuch", "status" },
		{ "status=doubtful", "status" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char path[128];

		snprintf(path, sizeof path, "/sandboxes?%s", cases[i].query);
		AUTO_REPLY reply = fixture_call(*state, "GET", path, NULL);

		assert_problem(&reply, 422, "invalid_request");
		assert_fault(&reply, "query", cases[i].field);
	}
	assert_int_equal(fake.calls, 0);
	fake_fail(ERR_INVALID, "no such cursor");
	AUTO_REPLY reply = fixture_call(*state, "GET", "/sandboxes?cursor=x", NULL);

	assert_fault(&reply, "query", "cursor");
}

static void
test_get_and_heartbeat_and_delete(void **state)
{
	AUTO_REPLY get = fixture_call(*state, "GET", "/sandboxes/box-1", NULL);
	AUTO_REPLY beat = fixture_call(*state, "POST", "/sandboxes/box-1/heartbeat", NULL);
	AUTO_REPLY gone = fixture_call(*state, "DELETE", "/sandboxes/box-1", NULL);

	assert_int_equal(get.status, 200);
	assert_string_equal(beat.body, "{\"status\":\"ok\",\"sandbox_id\":\"box-1\"}");
	assert_string_equal(gone.body, "{\"status\":\"deleted\",\"sandbox_id\":\"box-1\"}");
	assert_string_equal(fake.id, "box-1");
	assert_int_equal(fake.calls, 3);
}

static void
test_a_heartbeat_takes_any_body(void **state)
{
	AUTO_REPLY object = fixture_call(*state, "POST", "/sandboxes/box-1/heartbeat", "{}");
	AUTO_REPLY rubbish = fixture_call(*state, "POST", "/sandboxes/box-1/heartbeat", "x");

	assert_int_equal(object.status, 200);
	assert_int_equal(rubbish.status, 200);
}

static void
test_patch_changes_only_what_is_named(void **state)
{
	AUTO_REPLY both = fixture_call(*state, "PATCH", "/sandboxes/box-1",
		"{\"labels\":{\"a\":\"b\"},\"ttl_seconds\":1.5,\"idle_timeout_seconds\":0}");

	assert_int_equal(both.status, 200);
	assert_string_equal(fake.text, "{\"a\":\"b\"}");
	assert_int_equal(fake.ttl_ms, 1500);
	assert_int_equal(fake.idle_ms, 0);
	AUTO_REPLY none = fixture_call(*state, "PATCH", "/sandboxes/box-1", "{\"ttl_seconds\":null}");

	assert_int_equal(none.status, 200);
	assert_string_equal(fake.text, "unchanged");
	assert_int_equal(fake.ttl_ms, -1);
	assert_int_equal(fake.idle_ms, -1);
}

static void
test_patch_refuses_wrong_values(void **state)
{
	static const struct {
		const char *body, *field;
	} cases[] = {
		{ "{\"ttl_seconds\":0}", "ttl_seconds" },
		{ "{\"ttl_seconds\":-1}", "ttl_seconds" },
		{ "{\"ttl_seconds\":\"5\"}", "ttl_seconds" },
		{ "{\"ttl_seconds\":1e300}", "ttl_seconds" },
		{ "{\"idle_timeout_seconds\":-0.1}", "idle_timeout_seconds" },
		{ "{\"labels\":[]}", "labels" },
		{ "{\"labels\":{\"a\":1}}", "labels" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		AUTO_REPLY reply = fixture_call(*state, "PATCH", "/sandboxes/box-1", cases[i].body);

		assert_problem(&reply, 422, "invalid_request");
		assert_fault(&reply, "body", cases[i].field);
	}
	assert_int_equal(fake.calls, 0);
	fake_fail(ERR_INVALID, "too many labels");
	AUTO_REPLY reply = fixture_call(*state, "PATCH", "/sandboxes/box-1", "{\"labels\":{}}");

	assert_fault(&reply, "body", "labels");
}

static void
wait_for(struct fixture *fixture, const char *path)
{
	fixture_start(fixture, "GET", path, NULL);
	fixture_run_until(fixture, &fake.sandbox_waits, true);
}

static void
test_wait_answers_when_the_domain_does(void **state)
{
	struct fixture *fixture = *state;

	wait_for(fixture, "/sandboxes/box-1/wait");
	assert_int_equal(fake.timeout_ms, 300 * 1000);
	fake_end_sandbox_wait(NULL);
	AUTO_REPLY reply = fixture_reply(fixture, fixture->client, false);

	assert_int_equal(reply.status, 200);
	assert_string_equal(reply_text(&reply, "sandbox_id"), "box-1");
	assert_int_equal(fake.cancelled, 0);
}

static void
test_wait_out_of_time_is_408_and_the_connection_lives(void **state)
{
	struct fixture *fixture = *state;
	struct err err;

	wait_for(fixture, "/sandboxes/box-1/wait?timeout=0.25");
	assert_int_equal(fake.timeout_ms, 250);
	err_set(&err, ERR_TIMEOUT, "still pending");
	fake_end_sandbox_wait(&err);
	AUTO_REPLY reply = fixture_reply(fixture, fixture->client, false);

	assert_problem(&reply, 408, "wait_timeout");
	AUTO_REPLY next = fixture_call(fixture, "GET", "/health", NULL);

	assert_int_equal(next.status, 200);
}

static void
test_wait_on_a_sandbox_that_goes_is_404(void **state)
{
	struct fixture *fixture = *state;
	struct err err;

	wait_for(fixture, "/sandboxes/box-1/wait?timeout=1e1");
	assert_int_equal(fake.timeout_ms, 10 * 1000);
	err_set(&err, ERR_DELETED, "deleted meanwhile");
	fake_end_sandbox_wait(&err);
	AUTO_REPLY reply = fixture_reply(fixture, fixture->client, false);

	assert_problem(&reply, 404, "not_found");
}

static void
test_wait_is_cut_to_the_longest_allowed(void **state)
{
	wait_for(*state, "/sandboxes/box-1/wait?timeout=999999");
	assert_int_equal(fake.timeout_ms, 1000 * 1000);
}

static void
test_a_client_that_leaves_ends_its_wait(void **state)
{
	struct fixture *fixture = *state;

	wait_for(fixture, "/sandboxes/box-1/wait");
	close(fixture->client);
	fixture->client = -1;
	fixture_run_until(fixture, &fake.sandbox_waits, false);
	assert_int_equal(fake.cancelled, 1);
}

static void
test_a_timeout_that_is_no_time_is_422(void **state)
{
	static const char *const wrong[] = { "-1", "abc", "", "nan", "inf", "0x10", "1e400", "1+", "%2B1", "-0",
		"1e", "5s", "%00" };

	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		char path[128];

		snprintf(path, sizeof path, "/sandboxes/box-1/wait?timeout=%s", wrong[i]);
		AUTO_REPLY reply = fixture_call(*state, "GET", path, NULL);

		assert_problem(&reply, 422, "invalid_request");
		assert_fault(&reply, "query", "timeout");
	}
	assert_int_equal(fake.calls, 0);
}

static void
test_every_failure_of_the_domain_has_its_status(void **state)
{
	fake_fail(ERR_NOT_FOUND, "there is no such sandbox");
	AUTO_REPLY get = fixture_call(*state, "GET", "/sandboxes/box-1", NULL);
	AUTO_REPLY patch = fixture_call(*state, "PATCH", "/sandboxes/box-1", "{}");
	AUTO_REPLY gone = fixture_call(*state, "DELETE", "/sandboxes/box-1", NULL);
	AUTO_REPLY wait = fixture_call(*state, "GET", "/sandboxes/box-1/wait", NULL);
	AUTO_REPLY beat = fixture_call(*state, "POST", "/sandboxes/box-1/heartbeat", NULL);

	assert_problem(&get, 404, "not_found");
	assert_problem(&patch, 404, "not_found");
	assert_problem(&gone, 404, "not_found");
	assert_problem(&wait, 404, "not_found");
	assert_problem(&beat, 404, "not_found");
}

#define API_TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(test_create_answers_the_record),
		API_TEST(test_create_tells_every_fault),
		API_TEST(test_create_refusals_have_words_of_their_own),
		API_TEST(test_list_has_defaults_and_an_end),
		API_TEST(test_list_hands_its_filter_on),
		API_TEST(test_list_refuses_what_it_cannot_mean),
		API_TEST(test_get_and_heartbeat_and_delete),
		API_TEST(test_a_heartbeat_takes_any_body),
		API_TEST(test_patch_changes_only_what_is_named),
		API_TEST(test_patch_refuses_wrong_values),
		API_TEST(test_wait_answers_when_the_domain_does),
		API_TEST(test_wait_out_of_time_is_408_and_the_connection_lives),
		API_TEST(test_wait_on_a_sandbox_that_goes_is_404),
		API_TEST(test_wait_is_cut_to_the_longest_allowed),
		API_TEST(test_a_client_that_leaves_ends_its_wait),
		API_TEST(test_a_timeout_that_is_no_time_is_422),
		API_TEST(test_every_failure_of_the_domain_has_its_status),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
