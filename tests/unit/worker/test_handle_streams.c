/* test_handle_streams.c - output, live and by offset, and stdin: what goes over the wire. */
/* SPDX-License-Identifier: MIT */
#include "worker/routes.h"

#include "api_fixture.h"
#include "fake_domain.h"

#include "base/alloc.h"
#include "worker/api.h"

#include <event2/event.h>
#include <json-c/json.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define JOB "/jobs/" FAKE_JOB_ID

enum { PIECE = 64 * 1024 };

static void
start(struct fixture *fixture, const char *path, const bool *flag)
{
	fixture_start(fixture, "GET", path, NULL);
	fixture_run_until(fixture, flag, true);
}

/* Reads what there is until it holds `end` (or, NULL, until the connection ends); the caller's. */
static char *
read_until(struct fixture *fixture, const char *end)
{
	char *text = alloc_zero(1, 1);
	size_t len = 0;

	for (;;) {
		struct pollfd ready = { .fd = fixture->client, .events = POLLIN };
		ssize_t n;

		event_base_loop(fixture->base, EVLOOP_NONBLOCK);
		if (poll(&ready, 1, 5) <= 0)
			continue;
		text = alloc_resize(text, len + PIECE + 1);
		n = recv(fixture->client, text + len, PIECE, MSG_DONTWAIT);
		if (n > 0)
			len += (size_t)n;
		text[len] = '\0';
		if (n <= 0 || (end != NULL && strstr(text, end) != NULL))
			return text;
	}
}

static void
test_a_stream_sends_events_as_they_come(void **state)
{
	struct fixture *fixture = *state;
	AUTO_FREE char *queued = NULL, *out = NULL, *ping = NULL, *rest = NULL;

	start(fixture, JOB "/stream", &fake.feeds);
	fake_feed_status("queued", 3);
	queued = read_until(fixture, "\n\n\r\n");
	assert_non_null(strstr(queued, "200 OK"));
	assert_non_null(strstr(queued, "Content-Type: text/event-stream\r\n"));
	assert_non_null(strstr(queued, "Cache-Control: no-store\r\n"));
	assert_non_null(strstr(queued, "event: status\ndata: {\"status\":\"queued\",\"queue_position\":3}\n\n"));
	fake_feed_status("running", UINT32_MAX);
	fake_feed_piece(0, 0, "hello");
	fake_feed_piece(1, 7, "x");
	out = read_until(fixture, "id: 5:8");
	assert_non_null(strstr(out, "event: status\ndata: {\"status\":\"running\"}\n\n"));
	assert_non_null(strstr(out, "event: stdout\nid: 5:0\ndata: {\"offset\":0,\"data\":\"aGVsbG8=\"}\n\n"));
	assert_int_equal(fake.more, 2);
	fake_feed_quiet();
	ping = read_until(fixture, ": ping\n\n");
	fake_end_feed(NULL);
	rest = read_until(fixture, "0\r\n\r\n");
	assert_non_null(strstr(rest, "event: exit\ndata: {\"job_id\":\"" FAKE_JOB_ID "\""));
	assert_int_equal(api_open_requests(fixture->api), 0);
}

static void
test_a_stream_is_refused_with_a_status_before_its_first_event(void **state)
{
	struct fixture *fixture = *state;
	struct err err;

	fixture_start(fixture, "GET", JOB "/stream", NULL);
	fixture_run_until(fixture, &fake.feeds, true);
	err_set(&err, ERR_NOT_FOUND, "no such job");
	fake_end_feed(&err);
	AUTO_REPLY late = fixture_reply(fixture, fixture->client, false);

	assert_problem(&late, 404, "not_found");
	fake_fail(ERR_BUSY, "too many");
	AUTO_REPLY busy = fixture_call(fixture, "GET", JOB "/stream", NULL);

	assert_problem(&busy, 503, "queue_full");
	assert_string_equal(reply_header(&busy, "Retry-After"), "1");
}

static void
test_a_stream_that_cannot_go_on_ends_without_exit(void **state)
{
	struct fixture *fixture = *state;
	AUTO_FREE char *text = NULL;
	struct err err;

	start(fixture, JOB "/stream", &fake.feeds);
	fake_feed_status("running", UINT32_MAX);
	err_set(&err, ERR_AGENT_UNREACHABLE, "gone");
	fake_end_feed(&err);
	text = read_until(fixture, "0\r\n\r\n");
	assert_non_null(strstr(text, "running"));
	assert_null(strstr(text, "exit"));
}

static void
test_positions_come_from_the_query_or_the_last_id(void **state)
{
	struct fixture *fixture = *state;
	struct err err;

	err_set(&err, ERR_NOT_FOUND, "no such job");
	start(fixture, JOB "/stream?stdout_offset=17&stderr_offset=9007199254740992", &fake.feeds);
	assert_int_equal(fake.offset[0], 17);
	assert_int_equal(fake.offset[1], INT64_C(9007199254740992));
	fake_end_feed(&err);
	AUTO_REPLY first = fixture_reply(fixture, fixture->client, false);

	assert_int_equal(first.status, 404);
	fixture_send(fixture->client,
		"GET " JOB "/stream?stderr_offset=1 HTTP/1.1\r\nHost: x\r\nX-API-Key: test-key\r\n"
		"Last-Event-ID: 5:6\r\n\r\n");
	fixture_run_until(fixture, &fake.feeds, true);
	assert_int_equal(fake.offset[0], 5);
	assert_int_equal(fake.offset[1], 1);
	fake_end_feed(&err);
	AUTO_REPLY second = fixture_reply(fixture, fixture->client, false);

	assert_int_equal(second.status, 404);
	fixture_send(fixture->client,
		"GET " JOB "/stream HTTP/1.1\r\nHost: x\r\nX-API-Key: test-key\r\nLast-Event-ID: five\r\n\r\n");
	AUTO_REPLY wrong = fixture_reply(fixture, fixture->client, false);

	assert_fault(&wrong, "header", "Last-Event-ID");
}

static void
test_wrong_numbers_are_422(void **state)
{
	static const struct {
		const char *path, *field;
	} wrong[] = {
		{ JOB "/stream?stdout_offset=-1", "stdout_offset" },
		{ JOB "/stream?stderr_offset=9007199254740993", "stderr_offset" },
		{ JOB "/stream?stdout_offset=", "stdout_offset" },
		{ JOB "/output?offset=99999999999999999999999", "offset" },
		{ JOB "/output?offset=1.5", "offset" },
		{ JOB "/output?limit=0", "limit" },
		{ JOB "/output?stream=both", "stream" },
	};

	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		AUTO_REPLY reply = fixture_call(*state, "GET", wrong[i].path, NULL);

		assert_fault(&reply, "query", wrong[i].field);
	}
	AUTO_REPLY flag = fixture_call(*state, "POST", JOB "/stdin?eof=maybe", "x");

	assert_fault(&flag, "query", "eof");
	assert_int_equal(fake.calls, 0);
}

static void
test_a_client_that_reads_nothing_is_not_given_more(void **state)
{
	struct fixture *fixture = *state;
	static char text[PIECE];
	int sent = 0;

	memset(text, 'x', sizeof text - 1);
	start(fixture, JOB "/stream", &fake.feeds);
	do {
		fake.more = 0;
		fake_feed_piece(0, (int64_t)sent * PIECE, text);
		fixture_run_once(fixture);
	} while (fake.more > 0 && ++sent < 1000);
	assert_true(sent < 1000);
	fake_feed_quiet(); /* a ping would only make it longer */
	while (fake.more == 0) {
		AUTO_FREE char *some = read_until(fixture, "Hh4");

		(void)some;
	}
	close(fixture->client);
	fixture->client = -1;
	fixture_run_until(fixture, &fake.feeds, false);
	assert_int_equal(fake.cancelled, 1);
}

static void
test_a_worker_that_stops_ends_its_streams_at_once(void **state)
{
	struct fixture *fixture = *state;
	AUTO_FREE char *text = NULL;

	start(fixture, JOB "/stream", &fake.feeds);
	fake_feed_status("running", UINT32_MAX);
	api_drain(fixture->api);
	assert_false(fake.feeds);
	assert_int_equal(api_open_requests(fixture->api), 0);
	text = read_until(fixture, NULL);
	assert_non_null(strstr(text, "running"));
	assert_null(strstr(text, "exit"));
	assert_non_null(strstr(text, "\r\n0\r\n\r\n"));
}

static void
test_output_comes_with_its_place(void **state)
{
	struct fixture *fixture = *state;

	start(fixture, JOB "/output?stream=stderr&offset=4&limit=10", &fake.outputs);
	assert_int_equal(fake.stream, 1);
	assert_int_equal(fake.offset[0], 4);
	assert_int_equal(fake.count, 10);
	fake.job_status = "running";
	assert_true(fake_output_open(5, 9));
	fake_output_piece("\377\1", 2);
	fake_output_piece("abc", 3);
	assert_int_equal(fake.more, 2);
	fake_end_output(NULL);
	AUTO_REPLY reply = fixture_reply(fixture, fixture->client, false);

	assert_int_equal(reply.status, 200);
	assert_string_equal(reply_header(&reply, "Content-Type"), "application/octet-stream");
	assert_string_equal(reply_header(&reply, "X-Output-Offset"), "4");
	assert_string_equal(reply_header(&reply, "X-Output-Bytes"), "9");
	assert_string_equal(reply_header(&reply, "X-Job-Status"), "running");
	assert_int_equal(reply.body_len, 5);
	assert_memory_equal(reply.body, "\377\1abc", 5);
}

static void
test_output_that_breaks_off_is_cut(void **state)
{
	struct fixture *fixture = *state;
	AUTO_FREE char *text = NULL;
	struct err err;

	start(fixture, JOB "/output", &fake.outputs);
	assert_int_equal(fake.count, INT64_MAX);
	fake_output_open(-1, 9);
	fake_output_piece("abc", 3);
	err_set(&err, ERR_AGENT_UNREACHABLE, "gone");
	fake_end_output(&err);
	text = read_until(fixture, NULL);
	assert_null(strstr(text, "\r\n0\r\n"));
}

static void
test_output_refused(void **state)
{
	static const struct {
		enum err_code err;
		int status;
		const char *code;
	} cases[] = {
		{ ERR_NOT_FOUND, 404, "not_found" },
		{ ERR_RANGE, 416, "offset_out_of_range" },
		{ ERR_GONE, 410, "output_gone" },
		{ ERR_AGENT_UNREACHABLE, 503, "agent_unreachable" },
	};
	struct fixture *fixture = *state;
	struct err err;

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		start(fixture, JOB "/output", &fake.outputs);
		err_set(&err, cases[i].err, "so it is");
		fake_end_output(&err);
		AUTO_REPLY reply = fixture_reply(fixture, fixture->client, false);

		assert_problem(&reply, cases[i].status, cases[i].code);
	}
}

static void
test_head_wants_no_bytes(void **state)
{
	struct fixture *fixture = *state;

	fixture_start(fixture, "HEAD", JOB "/output", NULL);
	fixture_run_until(fixture, &fake.outputs, true);
	assert_false(fake_output_open(1000, 1000));
	fake_end_output(NULL);
	AUTO_REPLY reply = fixture_reply(fixture, fixture->client, true);

	assert_int_equal(reply.status, 200);
	assert_string_equal(reply_header(&reply, "Content-Length"), "1000");
	AUTO_REPLY stream = fixture_call(fixture, "HEAD", JOB "/stream", NULL);

	assert_int_equal(stream.status, 200);
	assert_string_equal(reply_header(&stream, "Content-Type"), "text/event-stream");
	assert_false(fake.feeds);
}

static void
test_a_write_is_answered_with_what_was_taken(void **state)
{
	struct fixture *fixture = *state;

	fixture_start(fixture, "POST", JOB "/stdin?eof=1", "not json");
	fixture_run_until(fixture, &fake.writes, true);
	assert_string_equal(fake.text, "not json");
	assert_true(fake.eof);
	fake_end_write(NULL);
	AUTO_REPLY reply = fixture_reply(fixture, fixture->client, false);

	assert_int_equal(reply.status, 200);
	assert_string_equal(
		reply.body, "{\"job_id\":\"" FAKE_JOB_ID "\",\"accepted\":8,\"stdin_bytes\":18,\"closed\":true}");
}

static void
test_writes_refused(void **state)
{
	static const struct {
		enum err_code err;
		int status;
		const char *code;
	} cases[] = {
		{ ERR_NOT_FOUND, 404, "not_found" },
		{ ERR_CLOSED, 409, "stdin_closed" },
		{ ERR_NOT_READY, 409, "job_not_running" },
		{ ERR_BUSY, 503, "queue_full" },
		{ ERR_AGENT_UNREACHABLE, 503, "agent_unreachable" },
	};
	struct fixture *fixture = *state;
	struct err err;

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		fixture_start(fixture, "POST", JOB "/stdin", "x");
		fixture_run_until(fixture, &fake.writes, true);
		err_set(&err, cases[i].err, "so it is");
		fake_end_write(&err);
		AUTO_REPLY reply = fixture_reply(fixture, fixture->client, false);

		assert_problem(&reply, cases[i].status, cases[i].code);
	}
}

static void
test_a_client_that_leaves_takes_its_write_back(void **state)
{
	struct fixture *fixture = *state;

	fixture_start(fixture, "POST", JOB "/stdin", "x");
	fixture_run_until(fixture, &fake.writes, true);
	close(fixture->client);
	fixture->client = -1;
	fixture_run_until(fixture, &fake.writes, false);
	assert_int_equal(fake.cancelled, 1);
}

#define API_TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(test_a_stream_sends_events_as_they_come),
		API_TEST(test_a_stream_is_refused_with_a_status_before_its_first_event),
		API_TEST(test_a_stream_that_cannot_go_on_ends_without_exit),
		API_TEST(test_positions_come_from_the_query_or_the_last_id),
		API_TEST(test_wrong_numbers_are_422),
		API_TEST(test_a_client_that_reads_nothing_is_not_given_more),
		API_TEST(test_a_worker_that_stops_ends_its_streams_at_once),
		API_TEST(test_output_comes_with_its_place),
		API_TEST(test_output_that_breaks_off_is_cut),
		API_TEST(test_output_refused),
		API_TEST(test_head_wants_no_bytes),
		API_TEST(test_a_write_is_answered_with_what_was_taken),
		API_TEST(test_writes_refused),
		API_TEST(test_a_client_that_leaves_takes_its_write_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
