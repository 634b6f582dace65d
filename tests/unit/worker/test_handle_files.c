/* test_handle_files.c - what reaches the agent, what comes back, and who waits for whom. */
/* SPDX-License-Identifier: MIT */
#include "worker/routes.h"

#include "api_fixture.h"
#include "fake_domain.h"
#include "fake_file_call.h"

#include "base/err.h"
#include "worker/api.h"

#include <json-c/json.h>
#include <sys/socket.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FILES "/sandboxes/box-1/files"

static void
start(struct fixture *fixture, const char *method, const char *path, const char *body)
{
	fixture_start(fixture, method, path, body);
	fixture_run_until(fixture, &fake_file.open, true);
}

static void
test_every_byte_of_a_path_reaches_the_agent(void **state)
{
	static const struct {
		const char *method, *path, *body, *sent_method, *target;
	} cases[] = {
		{ "GET", FILES "/raw?path=%2Fa%20b%2Bc%25%23%ff%0a", NULL, "GET",
			"/files?path=/a%20b%2Bc%25%23%FF%0A" },
		{ "HEAD", FILES "/raw?path=x&user=u", NULL, "HEAD", "/files?path=x&user=u" },
		{ "PUT", FILES "/raw?path=x&mode=0755", "data", "PUT", "/files?path=x&mode=0755&fsync=0" },
		{ "DELETE", FILES "?path=x&recursive=1", NULL, "DELETE", "/files?path=x&recursive=1" },
		{ "GET", FILES "/stat?path=x&follow=0", NULL, "GET", "/files/stat?path=x&follow=0" },
		{ "GET", FILES "/list", NULL, "GET", "/files/list?path=." },
		{ "GET", FILES "/list?path=x&limit=5&after=%26", NULL, "GET",
			"/files/list?path=x&after=%26&limit=5" },
		{ "GET", FILES "?path=x", NULL, "GET", "/files?path=x" },
		{ "POST", FILES, "{\"path\":\"\\udcff\",\"content\":\"aGk=\",\"mode\":\"7\"}", "PUT",
			"/files?path=%FF&mode=7&fsync=0" },
		{ "POST", FILES "/mkdir", "{\"path\":\"d\",\"parents\":true}", "POST",
			"/files/mkdir?path=d&parents=1" },
		{ "POST", FILES "/move", "{\"from\":\"a\",\"to\":\"b\",\"overwrite\":true}", "POST",
			"/files/move?from=a&to=b&overwrite=1" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct err err;

		start(*state, cases[i].method, cases[i].path, cases[i].body);
		assert_string_equal(fake_file.method, cases[i].sent_method);
		assert_string_equal(fake_file.target, cases[i].target);
		err_set(&err, ERR_AGENT_UNREACHABLE, "no agent");
		fake_file_end(&err);
		AUTO_REPLY reply = fixture_reply(
			*state, ((struct fixture *)*state)->client, strcmp(cases[i].method, "HEAD") == 0);

		assert_int_equal(reply.status, 503);
	}
}

static void
test_what_is_wrong_reaches_nobody(void **state)
{
	static const struct {
		const char *method, *path, *body;
	} cases[] = {
		{ "GET", FILES "/raw", NULL },
		{ "GET", FILES "/raw?path=", NULL },
		{ "GET", FILES "/raw?path=a%00b", NULL },
		{ "GET", FILES "/raw?path=a&path=b", NULL },
		{ "PUT", FILES "/raw?path=x&mode=8", "x" },
		{ "PUT", FILES "/raw?path=x&mode=77777", "x" },
		{ "GET", FILES "/list?limit=0", NULL },
		{ "DELETE", FILES "?path=x&recursive=maybe", NULL },
		{ "POST", FILES, "{\"path\":\"x\"}" },
		{ "POST", FILES, "{\"path\":\"x\",\"content\":\"@@@@\"}" },
		{ "POST", FILES, "{\"path\":\"x\",\"content\":\"aGk\"}" },
		{ "POST", FILES, "{\"path\":\"\",\"content\":\"\"}" },
		{ "POST", FILES, "{\"path\":\"x\",\"content\":\"\",\"mode\":493}" },
		{ "POST", FILES "/move", "{\"from\":\"x\"}" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		AUTO_REPLY reply = fixture_call(*state, cases[i].method, cases[i].path, cases[i].body);

		assert_int_equal(reply.status, 422);
	}
	assert_int_equal(fake.calls, 0);
}

static void
test_a_part_of_an_upload_or_one_with_a_condition_reaches_nobody(void **state)
{
	static const char *const fields[] = { "Content-Range", "If-Match", "If-None-Match", "If-Unmodified-Since" };
	static const char *const paths[] = { FILES "/raw?path=x", "/sandboxes/box-1/archive?path=x" };
	struct fixture *fixture = *state;
	char text[512];

	fixture->client = fixture_connect(fixture);
	for (size_t i = 0; i < 2 * sizeof fields / sizeof fields[0]; i++) {
		snprintf(text, sizeof text,
			"PUT %s HTTP/1.1\r\nHost: x\r\nX-API-Key: test-key\r\n%s: *\r\nContent-Length: 1\r\n\r\nx",
			paths[i % 2], fields[i / 2]);
		fixture_send(fixture->client, text);
		AUTO_REPLY reply = fixture_reply(fixture, fixture->client, false);

		assert_fault(&reply, "header", fields[i / 2]);
	}
	assert_int_equal(fake.calls, 0);
}

static void
test_a_file_passes_with_its_headers(void **state)
{
	struct fixture *fixture = *state;

	start(fixture, "GET", FILES "/raw?path=x", NULL);
	fake_file_head(
		"HTTP/1.1 206 Partial Content\r\nContent-Type: application/octet-stream\r\nContent-Length: 5\r\n"
		"ETag: \"e\"\r\nContent-Range: bytes 0-4/9\r\nX-Other: no\r\n\r\n");
	assert_int_equal(fake_file_data("hello", 5), 0);
	fake_file_end(NULL);
	AUTO_REPLY reply = fixture_reply(fixture, fixture->client, false);

	assert_int_equal(reply.status, 206);
	assert_string_equal(reply.body, "hello");
	assert_non_null(strstr(reply.head, "ETag: \"e\""));
	assert_non_null(strstr(reply.head, "Content-Range: bytes 0-4/9"));
	assert_non_null(strstr(reply.head, "Content-Length: 5"));
	assert_null(strstr(reply.head, "X-Other"));
}

/* In chunks: what of them stands between does not matter here. */
static void
test_base64_is_one_text_however_the_bytes_come(void **state)
{
	static const char *const parts[] = { "{\"path\":\"a\\\"\",\"content\":\"", "aGVs", "bG8g", "d29y",
		"bGQ=", "\",\"size\":11}", "0\r\n\r\n" };
	struct fixture *fixture = *state;
	char text[4096] = "";
	const char *at = text;
	size_t len = 0;

	start(fixture, "GET", FILES "?path=a%22", NULL);
	fake_file_head("HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n");
	for (const char *p = "hello world"; *p != '\0'; p++)
		assert_int_equal(fake_file_data(p, 1), 0);
	fake_file_end(NULL);
	while (strstr(text, "0\r\n\r\n") == NULL) {
		ssize_t n;

		fixture_run_once(fixture);
		n = recv(fixture->client, text + len, sizeof text - 1 - len, MSG_DONTWAIT);
		len += n > 0 ? (size_t)n : 0;
		text[len] = '\0';
		assert_int_not_equal(n, 0);
	}
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
		at = strstr(at, parts[i]);
		assert_non_null(at);
		at += strlen(parts[i]);
	}
}

static void
test_refusals_become_ours(void **state)
{
	static const struct {
		const char *head, *body;
		int status;
		const char *code;
	} cases[] = {
		{ "400 Bad Request", "{\"code\":\"is_directory\",\"detail\":\"d\"}", 400, "is_directory" },
		{ "404 Not Found", "{\"code\":\"not_found\",\"detail\":\"d\"}", 404, "not_found" },
		{ "507 Insufficient", "{\"code\":\"no_space\",\"detail\":\"d\"}", 507, "no_space" },
		{ "503 Unavailable", "{\"code\":\"busy\",\"detail\":\"d\"}", 503, "queue_full" },
		{ "503 Unavailable", "{\"code\":\"stopping\",\"detail\":\"d\"}", 503, "unavailable" },
		{ "503 Unavailable", "{\"code\":\"no_memory\",\"detail\":\"d\"}", 503, "unavailable" },
		{ "503 Unavailable", "", 503, "queue_full" },
		{ "416 Range", "", 416, "range_not_satisfiable" },
		{ "403 Forbidden", "{\"code\":\"denied\",\"detail\":\"d\"}", 503, "agent_unreachable" },
		{ "418 Teapot", "not json", 503, "agent_unreachable" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct fixture *fixture = *state;
		char head[128];

		start(fixture, "GET", FILES "/raw?path=x", NULL);
		snprintf(head, sizeof head, "HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n", cases[i].head,
			strlen(cases[i].body));
		fake_file_head(head);
		fake_file_data(cases[i].body, strlen(cases[i].body));
		fake_file_end(NULL);
		AUTO_REPLY reply = fixture_reply(fixture, fixture->client, false);

		assert_problem(&reply, cases[i].status, cases[i].code);
	}
}

static struct reply
refused_call(struct fixture *fixture, const char *method, const char *path, const char *body, const char *answer)
{
	start(fixture, method, path, body);
	fake_file_head(answer);
	if (strstr(answer, "422") != NULL)
		fake_file_data("{\"detail\":\"no user x\"}", 22);
	fake_file_end(NULL);
	return fixture_reply(fixture, fixture->client, false);
}

static void
test_a_refused_user_is_told_where_it_stood(void **state)
{
	static const char answer[] = "HTTP/1.1 422 Unprocessable\r\nContent-Length: 22\r\n\r\n";
	AUTO_REPLY query = refused_call(*state, "GET", FILES "/stat?path=x&user=x", NULL, answer);
	AUTO_REPLY body = refused_call(*state, "POST", FILES "/mkdir", "{\"path\":\"d\",\"user\":\"x\"}", answer);

	assert_fault(&query, "query", "user");
	assert_fault(&body, "body", "user");
}

static void
test_a_refused_range_tells_the_size(void **state)
{
	AUTO_REPLY reply = refused_call(*state, "GET", FILES "/raw?path=x", NULL,
		"HTTP/1.1 416 Range\r\nContent-Length: 0\r\nContent-Range: bytes */9\r\n\r\n");

	assert_problem(&reply, 416, "range_not_satisfiable");
	assert_string_equal(reply_text(&reply, "detail"), "the file has 9 bytes");
	assert_string_equal(reply_header(&reply, "Content-Range"), "bytes */9");
}

static void
test_a_body_is_asked_for_when_the_agent_wants_it(void **state)
{
	struct fixture *fixture = *state;

	start(fixture, "PUT", FILES "/raw?path=x", "some bytes");
	assert_int_equal(fake_file.length, 10);
	assert_int_equal(fake_file.sent, 0);
	fake_file_want();
	fixture_run_until(fixture, &fake_file.sent_end, true);
	assert_string_equal(fake_file.body, "some bytes");
	fake_file_head("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n");
	fake_file_data("{}", 2);
	fake_file_end(NULL);
	AUTO_REPLY reply = fixture_reply(fixture, fixture->client, false);

	assert_int_equal(reply.status, 200);
}

static void
test_an_answer_that_the_client_does_not_take_stops_the_agent(void **state)
{
	struct fixture *fixture = *state;
	static char piece[64 * 1024];
	size_t given = 0;

	start(fixture, "GET", FILES "/raw?path=x", NULL);
	fake_file_head("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n");
	while (given < 64 * 1024 * 1024 && fake_file_data(piece, sizeof piece) == 0)
		given += sizeof piece;
	assert_true(given < 8 * 1024 * 1024);
	close(fixture->client);
	fixture->client = -1;
	fixture_run_until(fixture, &fake_file.open, false);
	assert_int_equal(fake_file.cancelled, 1);
}

#define API_TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(test_every_byte_of_a_path_reaches_the_agent),
		API_TEST(test_what_is_wrong_reaches_nobody),
		API_TEST(test_a_part_of_an_upload_or_one_with_a_condition_reaches_nobody),
		API_TEST(test_a_file_passes_with_its_headers),
		API_TEST(test_base64_is_one_text_however_the_bytes_come),
		API_TEST(test_refusals_become_ours),
		API_TEST(test_a_refused_user_is_told_where_it_stood),
		API_TEST(test_a_refused_range_tells_the_size),
		API_TEST(test_a_body_is_asked_for_when_the_agent_wants_it),
		API_TEST(test_an_answer_that_the_client_does_not_take_stops_the_agent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
