/* test_api.c - the way of every request: ids, keys, routes, bodies, refusals, draining. */
/* SPDX-License-Identifier: MIT */
#include "worker/api.h"

#include "api_fixture.h"
#include "fake_domain.h"

#include "base/err.h"
#include "base/id.h"
#include "ipc/shm.h"
#include "worker/request.h"

#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct reply
raw_call(struct fixture *fixture, const char *bytes, bool head_only)
{
	int fd = fixture_connect(fixture);
	struct reply reply;

	fixture_send(fd, bytes);
	reply = fixture_reply(fixture, fd, head_only);
	close(fd);
	return reply;
}

static void
test_a_request_id_is_sane_by_length_and_alphabet(void **state)
{
	char longest[REQUEST_ID_MAX + 2];

	(void)state;
	assert_true(request_id_is_sane("a"));
	assert_true(request_id_is_sane("Req-1.2_3"));
	assert_false(request_id_is_sane(""));
	assert_false(request_id_is_sane("a b"));
	assert_false(request_id_is_sane("a\"b"));
	assert_false(request_id_is_sane("a/b"));
	assert_false(request_id_is_sane("\xc3\xa9"));
	memset(longest, 'x', sizeof longest);
	longest[REQUEST_ID_MAX + 1] = '\0';
	assert_false(request_id_is_sane(longest));
	longest[REQUEST_ID_MAX] = '\0';
	assert_true(request_id_is_sane(longest));
}

static void
test_a_sane_request_id_is_echoed_and_another_replaced(void **state)
{
	AUTO_REPLY echoed = raw_call(
		*state, "GET /health HTTP/1.1\r\nHost: t\r\nX-Request-ID: my-id.7\r\n\r\n", false);
	AUTO_REPLY replaced = raw_call(
		*state, "GET /health HTTP/1.1\r\nHost: t\r\nX-Request-ID: my id\r\n\r\n", false);
	AUTO_REPLY refused = raw_call(
		*state, "GET /nosuch HTTP/1.1\r\nHost: t\r\nX-Request-ID: other\r\n\r\n", false);

	assert_int_equal(echoed.status, 200);
	assert_string_equal(reply_header(&echoed, "X-Request-ID"), "my-id.7");
	assert_true(id_is_uuid(reply_header(&replaced, "X-Request-ID")));
	assert_problem(&refused, 404, "not_found");
	assert_string_equal(reply_text(&refused, "request_id"), "other");
}

static void
test_open_routes_need_no_key_and_others_do(void **state)
{
	AUTO_REPLY root = raw_call(*state, "GET / HTTP/1.1\r\nHost: t\r\n\r\n", false);
	AUTO_REPLY missing = raw_call(*state, "GET /sandboxes HTTP/1.1\r\nHost: t\r\n\r\n", false);
	AUTO_REPLY wrong = raw_call(
		*state, "GET /sandboxes HTTP/1.1\r\nHost: t\r\nX-API-Key: test-kez\r\n\r\n", false);
	AUTO_REPLY bearer = raw_call(
		*state, "GET /sandboxes HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer test-key\r\n\r\n", false);
	AUTO_REPLY metrics = raw_call(*state, "GET /metrics HTTP/1.1\r\nHost: t\r\n\r\n", false);

	assert_int_equal(root.status, 200);
	assert_problem(&missing, 401, "missing_api_key");
	assert_string_equal(reply_header(&missing, "WWW-Authenticate"), "Bearer");
	assert_problem(&wrong, 403, "invalid_api_key");
	assert_int_equal(bearer.status, 200);
	assert_string_equal(fake.tenant, "default");
	assert_problem(&metrics, 401, "missing_api_key");
	assert_int_equal(fake.calls, 1);
}

static void
test_settings_open_metrics_or_everything(void **state)
{
	struct fixture *fixture = *state;

	fixture->config.metrics_auth = false;
	AUTO_REPLY metrics = raw_call(fixture, "GET /metrics HTTP/1.1\r\nHost: t\r\n\r\n", false);
	AUTO_REPLY closed = raw_call(fixture, "GET /sandboxes HTTP/1.1\r\nHost: t\r\n\r\n", false);
	fixture->config.auth_enabled = false;
	AUTO_REPLY open = raw_call(fixture, "GET /sandboxes HTTP/1.1\r\nHost: t\r\n\r\n", false);

	assert_int_equal(metrics.status, 200);
	assert_problem(&closed, 401, "missing_api_key");
	assert_int_equal(open.status, 200);
	assert_string_equal(fake.tenant, "default");
}

static void
test_unknown_path_and_method_are_told_apart(void **state)
{
	AUTO_REPLY path = fixture_call(*state, "GET", "/sandboxes/box-1/", NULL);
	AUTO_REPLY method = fixture_call(*state, "PUT", "/sandboxes/box-1", "{}");
	AUTO_REPLY options = fixture_call(*state, "OPTIONS", "/sandboxes", NULL);
	AUTO_REPLY all = fixture_call(*state, "OPTIONS", "*", NULL);
	AUTO_REPLY strange = fixture_call(*state, "BREW", "/health", NULL);

	assert_problem(&path, 404, "not_found");
	assert_problem(&method, 405, "method_not_allowed");
	assert_string_equal(reply_header(&method, "Allow"), "GET, HEAD, PATCH, DELETE, OPTIONS");
	assert_int_equal(options.status, 204);
	assert_string_equal(reply_header(&options, "Allow"), "GET, HEAD, POST, OPTIONS");
	assert_non_null(reply_header(&options, "X-Request-ID"));
	assert_int_equal(all.status, 204);
	assert_string_equal(reply_header(&all, "Allow"), "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
	assert_problem(&strange, 405, "method_not_allowed");
	assert_int_equal(fake.calls, 0);
}

static void
test_head_has_the_length_and_no_body(void **state)
{
	AUTO_REPLY head = fixture_call(*state, "HEAD", "/health", NULL);
	AUTO_REPLY get = fixture_call(*state, "GET", "/health", NULL);
	char length[32];

	assert_int_equal(head.status, 200);
	snprintf(length, sizeof length, "%zu", get.body_len);
	assert_string_equal(reply_header(&head, "Content-Length"), length);
	assert_string_equal(get.body, "{\"status\":\"healthy\"}");
}

static void
test_a_malformed_id_never_reaches_the_domain(void **state)
{
	static const char *const paths[] = { "/sandboxes/Foo_Bar", "/sandboxes/a%2Fb", "/sandboxes/%00",
		"/sandboxes/..%2F..%2Fhealth", "/jobs/nosuch", "/jobs/nosuch/wait", "/jobs/%00",
		"/sandboxes/-a/wait" };

	for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
		AUTO_REPLY reply = fixture_call(*state, "GET", paths[i], NULL);

		assert_problem(&reply, 404, "not_found");
	}
	AUTO_REPLY deleted = fixture_call(*state, "DELETE", "/sandboxes/lock:x", NULL);

	assert_problem(&deleted, 404, "not_found");
	assert_int_equal(fake.calls, 0);
}

static void
test_a_body_must_be_a_json_object(void **state)
{
	static const struct {
		const char *body, *code;
	} cases[] = {
		{ "", "invalid_json" },
		{ "{", "invalid_json" },
		{ "{} x", "invalid_json" },
		{ "\xef\xbb\xbf{}", "invalid_json" },
		{ "{\"image\":\"a\",\"image\":\"b\"}", "invalid_json" },
		{ "[]", "invalid_request" },
		{ "null", "invalid_json" },
		{ "\"text\"", "invalid_request" },
		{ "5", "invalid_request" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		AUTO_REPLY reply = fixture_call(*state, "POST", "/sandboxes", cases[i].body);

		assert_problem(&reply, 422, cases[i].code);
		assert_fault(&reply, "body", NULL);
	}
	assert_int_equal(fake.calls, 0);
}

static void
test_an_empty_body_is_an_object_where_nothing_is_required(void **state)
{
	AUTO_REPLY empty = fixture_call(*state, "PATCH", "/sandboxes/box-1", "");
	AUTO_REPLY none = fixture_call(*state, "PATCH", "/sandboxes/box-1", NULL);

	assert_int_equal(empty.status, 200);
	assert_int_equal(none.status, 200);
	assert_int_equal(fake.calls, 2);
}

/* len bytes of white space, of a body that has length. */
static int
begin_body(struct fixture *fixture, size_t length, size_t len)
{
	static char request[256 * 1024];
	int fd = fixture_connect(fixture);
	int head = snprintf(request, sizeof request,
		"PATCH /sandboxes/box-1 HTTP/1.1\r\nHost: t\r\nX-API-Key: test-key\r\nContent-Length: %zu\r\n\r\n",
		length);

	memset(request + head, ' ', len);
	request[(size_t)head + len] = '\0';
	fixture_send(fd, request);
	return fd;
}

static void
expect_body(struct fixture *fixture, size_t len, int status, const char *code)
{
	int fd = begin_body(fixture, len, len);
	AUTO_REPLY reply = fixture_reply(fixture, fd, false);

	assert_problem(&reply, status, code);
	close(fd);
}

static void
test_bodies_hold_so_much_together(void **state)
{
	struct fixture *fixture = *state;
	struct shm_scoreboard *board = shm_scoreboard(fixture->shm);
	int held;

	fixture->config.max_body_bytes = 200000;
	fixture->config.body_memory_bytes = 50000;
	held = begin_body(fixture, 100000, 60000);
	while (fixture->api->body_bytes < 60000 - 16 * 1024)
		fixture_run_once(fixture);
	assert_int_equal(scoreboard_sum(board, METRIC_BODY_BYTES), fixture->api->body_bytes);
	expect_body(fixture, 40000, 503, "unavailable");
	expect_body(fixture, 10000, 422, "invalid_json");
	close(held);
	while (fixture->api->body_bytes > 0)
		fixture_run_once(fixture);
	expect_body(fixture, 100000, 422, "invalid_json");
	assert_int_equal(fixture->api->body_bytes, 0);
	assert_int_equal(scoreboard_sum(board, METRIC_BODY_BYTES), 0);
	assert_int_equal(scoreboard_sum(board, METRIC_BODIES_REFUSED), 1);
}

static void
test_a_body_over_the_limit_is_413(void **state)
{
	struct fixture *fixture = *state;
	char body[5001], request[6000];

	memset(body, ' ', sizeof body - 1);
	body[sizeof body - 1] = '\0';
	AUTO_REPLY known = fixture_call(fixture, "POST", "/sandboxes", body);
	snprintf(request, sizeof request,
		"POST /sandboxes HTTP/1.1\r\nHost: t\r\nX-API-Key: test-key\r\nX-Request-ID: mine\r\n"
		"Transfer-Encoding: chunked\r\n\r\nfffff\r\n%s",
		body);
	AUTO_REPLY chunked = raw_call(fixture, request, false);

	assert_problem(&known, 413, "payload_too_large");
	assert_problem(&chunked, 413, "payload_too_large");
	assert_string_equal(reply_text(&chunked, "request_id"), "mine");
	assert_int_equal(fake.calls, 0);
}

static void
test_what_the_codec_refuses_is_an_error_like_any_other(void **state)
{
	AUTO_REPLY reply = raw_call(*state, "GET /health HTTP/1.1\r\nHost : t\r\n\r\n", false);

	assert_problem(&reply, 400, "bad_request");
	assert_true(id_is_uuid(reply_text(&reply, "request_id")));
}

static void
test_requests_and_answers_are_counted(void **state)
{
	struct fixture *fixture = *state;
	struct shm_scoreboard *board = shm_scoreboard(fixture->shm);
	AUTO_REPLY good = fixture_call(fixture, "GET", "/health", NULL);
	AUTO_REPLY bad = fixture_call(fixture, "GET", "/nosuch", NULL);

	fake_fail(ERR_UNAVAILABLE, "no driver");
	AUTO_REPLY ugly = fixture_call(fixture, "GET", "/resources", NULL);

	assert_int_equal(good.status, 200);
	assert_int_equal(bad.status, 404);
	assert_int_equal(ugly.status, 503);
	assert_int_equal(scoreboard_sum(board, METRIC_REQUESTS_TOTAL), 3);
	assert_int_equal(scoreboard_sum(board, METRIC_RESPONSES_2XX), 1);
	assert_int_equal(scoreboard_sum(board, METRIC_RESPONSES_4XX), 1);
	assert_int_equal(scoreboard_sum(board, METRIC_RESPONSES_5XX), 1);
	assert_int_equal(scoreboard_sum(board, METRIC_CONNECTIONS), 1);
	assert_int_equal(scoreboard_sum(board, METRIC_CONNECTIONS_TOTAL), 1);
}

static void
test_an_internal_error_tells_nothing_of_the_inside(void **state)
{
	fake_fail(ERR_INTERNAL, "/secret/path: broken");
	AUTO_REPLY reply = fixture_call(*state, "GET", "/sandboxes/box-1", NULL);

	assert_problem(&reply, 500, "internal");
	assert_null(strstr(reply.body, "secret"));
}

static void
test_a_message_cut_inside_a_character_is_still_utf8(void **state)
{
	fake_fail(ERR_CONFLICT, "half a letter: \xc3");
	AUTO_REPLY reply = fixture_call(*state, "GET", "/sandboxes/box-1", NULL);

	assert_problem(&reply, 409, "conflict");
	assert_string_equal(reply_text(&reply, "detail"), "half a letter: ?");
}

static void
test_draining_turns_readiness_off_and_ends_waits(void **state)
{
	struct fixture *fixture = *state;

	fixture_start(fixture, "GET", "/sandboxes/box-1/wait", NULL);
	fixture_run_until(fixture, &fake.sandbox_waits, true);
	api_drain(fixture->api);
	assert_int_equal(api_open_requests(fixture->api), 1);
	api_end_waits(fixture->api);
	AUTO_REPLY reply = fixture_reply(fixture, fixture->client, false);

	assert_problem(&reply, 503, "unavailable");
	assert_string_equal(reply_header(&reply, "Connection"), "close");
	assert_int_equal(api_open_requests(fixture->api), 0);
	assert_int_equal(fake.cancelled, 1);
}

static void
test_freeing_the_api_cancels_what_is_open(void **state)
{
	struct fixture *fixture = *state;

	fixture_start(fixture, "GET", "/sandboxes/box-1/wait", NULL);
	fixture_run_until(fixture, &fake.sandbox_waits, true);
	api_free(fixture->api);
	fixture->api = NULL;
	assert_false(fake.sandbox_waits);
	assert_int_equal(fake.cancelled, 1);
}

/* Before its body is read, and whatever the route. */
static void
test_an_unknown_id_is_asked_for_first(void **state)
{
	struct fixture *fixture = *state;
	struct err err;

	fake.looks = true;
	fixture_start(fixture, "PATCH", "/sandboxes/far", "{\"ttl_seconds\": 5}");
	fixture_run_until(fixture, &fake.look_waits, true);
	assert_string_equal(fake.id, "far");
	assert_int_equal(fake.ttl_ms, 0);
	fake_end_look(NULL);
	AUTO_REPLY found = fixture_reply(fixture, fixture->client, false);
	assert_int_equal(found.status, 200);
	assert_int_equal(fake.ttl_ms, 5000);
	fixture_start(fixture, "GET", "/sandboxes/far", NULL);
	fixture_run_until(fixture, &fake.look_waits, true);
	err_set(&err, ERR_UNAVAILABLE, "Redis is away");
	fake_end_look(&err);
	AUTO_REPLY away = fixture_reply(fixture, fixture->client, false);
	assert_problem(&away, 503, "unavailable");
	assert_string_equal(reply_header(&away, "Retry-After"), "1");
	fake_fail(ERR_UNAVAILABLE, "Redis is away");
	AUTO_REPLY refused = fixture_call(fixture, "GET", "/sandboxes/far", NULL);
	assert_problem(&refused, 503, "unavailable");
}

static void
test_who_leaves_meanwhile_asks_no_more(void **state)
{
	struct fixture *fixture = *state;

	fake.looks = true;
	fixture_start(fixture, "GET", "/sandboxes/far", NULL);
	fixture_run_until(fixture, &fake.look_waits, true);
	close(fixture->client);
	fixture->client = -1;
	fixture_run_until(fixture, &fake.look_waits, false);
	assert_int_equal(fake.cancelled, 1);
}

#define API_TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_request_id_is_sane_by_length_and_alphabet),
		API_TEST(test_an_unknown_id_is_asked_for_first),
		API_TEST(test_who_leaves_meanwhile_asks_no_more),
		API_TEST(test_a_sane_request_id_is_echoed_and_another_replaced),
		API_TEST(test_open_routes_need_no_key_and_others_do),
		API_TEST(test_settings_open_metrics_or_everything),
		API_TEST(test_unknown_path_and_method_are_told_apart),
		API_TEST(test_head_has_the_length_and_no_body),
		API_TEST(test_a_malformed_id_never_reaches_the_domain),
		API_TEST(test_a_body_must_be_a_json_object),
		API_TEST(test_an_empty_body_is_an_object_where_nothing_is_required),
		API_TEST(test_a_body_over_the_limit_is_413),
		API_TEST(test_bodies_hold_so_much_together),
		API_TEST(test_what_the_codec_refuses_is_an_error_like_any_other),
		API_TEST(test_requests_and_answers_are_counted),
		API_TEST(test_an_internal_error_tells_nothing_of_the_inside),
		API_TEST(test_a_message_cut_inside_a_character_is_still_utf8),
		API_TEST(test_draining_turns_readiness_off_and_ends_waits),
		API_TEST(test_freeing_the_api_cancels_what_is_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
