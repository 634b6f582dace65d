/* test_http_server.c - requests and answers as a client on the wire sees them. */
/* SPDX-License-Identifier: MIT */
#include "http_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define GET_CLOSE(path) "GET " path " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
#define GET(path)       "GET " path " HTTP/1.1\r\nHost: x\r\n\r\n"

static int
setup(void **state)
{
	struct rig *rig = calloc(1, sizeof *rig);

	rig_start(rig);
	*state = rig;
	return 0;
}

static int
teardown(void **state)
{
	rig_stop(*state);
	free(*state);
	return 0;
}

static void
test_get_is_answered_and_kept_alive(void **state)
{
	struct rig *rig = *state;
	int fd = rig_connect(rig);

	for (int i = 0; i < 3; i++) {
		rig_send(rig, fd, GET("/now"));
		assert_true(rig_read(rig, fd, "\r\n\r\nhello"));
		assert_int_equal(strncmp(rig->reply, "HTTP/1.1 200 OK\r\n", 17), 0);
		assert_non_null(strstr(rig->reply, "\r\nContent-Length: 5\r\n"));
		assert_non_null(strstr(rig->reply, "\r\nDate: "));
		assert_null(strstr(rig->reply, "Connection:"));
		assert_null(strstr(rig->reply, "\r\nInjected:"));
	}
	assert_int_equal(http_server_connections(rig->server), 1);
	assert_int_equal(http_server_exchanges(rig->server), 0);
	close(fd);
}

static void
test_pipelined_requests_are_answered_in_order(void **state)
{
	struct rig *rig = *state;
	int fd = rig_connect(rig);

	rig_send(rig, fd, GET("/now") GET("/now") GET("/now") GET("/now") GET("/now") GET("/now") GET("/now"));
	rig_send(rig, fd, "POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nfirst" GET("/now"));
	rig_send(rig, fd, GET_CLOSE("/now"));
	assert_true(rig_read(rig, fd, NULL));
	assert_int_equal(rig_count(rig, "HTTP/1.1 200 OK"), 10);
	assert_int_equal(rig_count(rig, "hello"), 9);
	assert_non_null(strstr(strstr(rig->reply, "first"), "hello"));
	close(fd);
}

static void
test_pipelined_requests_wait_for_a_late_answer(void **state)
{
	struct rig *rig = *state;
	int fd = rig_connect(rig);

	rig_send(rig, fd, GET("/wait") GET_CLOSE("/now"));
	assert_true(rig_wait(rig, &rig->requests, 1));
	rig_spin(rig);
	assert_int_equal(rig->requests, 1);
	http_exchange_respond_text(rig->exchange, 202, NULL, NULL, 0);
	assert_true(rig_read(rig, fd, NULL));
	assert_int_equal(rig_count(rig, "HTTP/1.1 202 Accepted"), 1);
	assert_int_equal(rig_count(rig, "hello"), 1);
	assert_int_equal(rig->gone, 0);
	close(fd);
}

static void
test_head_has_length_but_no_body(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(rig_once(rig, "HEAD /now HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"), 200);
	assert_non_null(strstr(rig->reply, "Content-Length: 5\r\n"));
	assert_string_equal(rig->reply + rig->reply_len - 4, "\r\n\r\n");
}

static void
test_head_with_body_smuggles_nothing(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(rig_once(rig,
				 "HEAD /now HTTP/1.1\r\nHost: x\r\nContent-Length: 33\r\n\r\n"
				 "GET /now HTTP/1.1\r\nHost: smug\r\n\r\n" GET_CLOSE("/now")),
		200);
	assert_int_equal(rig_count(rig, "HTTP/1.1 200"), 2);
	assert_int_equal(rig->requests, 2);
}

static void
test_options_reaches_the_user(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(rig_once(rig, "OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"), 200);
	assert_int_equal(rig->requests, 1);
}

static void
test_http_1_0_closes_unless_asked(void **state)
{
	struct rig *rig = *state;
	int fd = rig_connect(rig);

	assert_int_equal(rig_once(rig, "GET /now HTTP/1.0\r\n\r\n"), 200);
	assert_non_null(strstr(rig->reply, "Connection: close\r\n"));
	rig_send(rig, fd, "GET /now HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
	assert_true(rig_read(rig, fd, "hello"));
	assert_non_null(strstr(rig->reply, "Connection: keep-alive\r\n"));
	rig_send(rig, fd, "GET /down?5 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
	assert_true(rig_read(rig, fd, NULL));
	assert_null(strstr(rig->reply, "chunked"));
	close(fd);
}

static void
test_bad_requests_are_answered_and_closed(void **state)
{
	static const struct {
		int status;
		const char *text;
	} cases[] = {
		{ 400, "GET /now HTTP/1.1\n" },
		{ 400, "GET /now HTTP/1.1\r\nHost : x\r\n\r\n" GET("/now") },
		{ 400,
			"POST /up HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
			"0\r\n\r\n" GET("/now") },
		{ 400, "POST /up HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello" },
		{ 400, "POST /up HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n" GET("/now") },
		{ 501, "POST /up HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n" GET("/now") },
		{ 417, "POST /up HTTP/1.1\r\nHost: x\r\nExpect: x\r\nContent-Length: 1\r\n\r\n" },
		{ 505, "GET /now HTTP/3.0\r\nHost: x\r\n\r\n" },
	};
	struct rig *rig = *state;

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		assert_int_equal(rig_once(rig, cases[i].text), cases[i].status);
		assert_non_null(strstr(rig->reply, "Connection: close\r\n"));
		assert_non_null(strstr(rig->reply, "\"code\":\""));
		assert_int_equal(rig_count(rig, "\r\nDate: "), 1);
	}
	assert_int_equal(rig->gone, 1);
	assert_int_equal(http_server_exchanges(rig->server), 0);
}

static char *
repeated(const char *prefix, char c, size_t n, const char *suffix)
{
	char *text = malloc(strlen(prefix) + n + strlen(suffix) + 1);

	strcpy(text, prefix);
	memset(text + strlen(prefix), c, n);
	strcpy(text + strlen(prefix) + n, suffix);
	return text;
}

static void
test_too_large_heads_get_an_answer(void **state)
{
	struct rig *rig = *state;
	char *text = repeated("GET /now HTTP/1.1\r\nHost: x\r\nConnection: close\r\nA: ", 'a', 7000, "\r\n\r\n");

	assert_int_equal(rig_once(rig, text), 200);
	free(text);
	text = repeated("GET /now HTTP/1.1\r\nHost: x\r\nA: ", 'a', 70000, "\r\n\r\n");
	assert_int_equal(rig_once(rig, text), 431);
	free(text);
	text = repeated("GET /", 'a', 70000, " HTTP/1.1\r\n\r\n");
	assert_int_equal(rig_once(rig, text), 414);
	free(text);
}

static void
test_collected_body_is_given_whole(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(rig_once(rig,
				 "POST /body HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
				 "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"),
		200);
	assert_non_null(strstr(rig->reply, "\r\n\r\nabcde"));
	assert_int_equal(rig_once(rig, "POST /body HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"), 200);
	assert_int_equal(rig->collected, 2);
}

static void
test_413_comes_before_the_body(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(rig_once(rig,
				 "POST /body HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
				 "Content-Length: 65\r\n\r\n"),
		413);
	assert_null(strstr(rig->reply, "100 Continue"));
	assert_int_equal(rig->gone, 1);
	assert_int_equal(rig->collected, 0);
}

static void
test_413_for_chunks_when_they_exceed(void **state)
{
	struct rig *rig = *state;
	char *text = repeated(
		"POST /body HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n41\r\n", 'x', 65, "\r\n");

	assert_int_equal(rig_once(rig, text), 413);
	assert_non_null(strstr(rig->reply, "\"code\":\"payload_too_large\""));
	assert_int_equal(rig->collected, 0);
	free(text);
}

static void
test_100_continue_only_when_the_body_is_wanted(void **state)
{
	struct rig *rig = *state;
	int fd = rig_connect(rig);

	rig_send(rig, fd, "POST /body HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
	assert_true(rig_read(rig, fd, "HTTP/1.1 100 Continue\r\n\r\n"));
	rig_send(rig, fd, "abc");
	assert_true(rig_read(rig, fd, "\r\n\r\nabc"));
	/* Answered without the body: nobody knows whether it comes, so the connection ends. */
	rig_send(rig, fd, "POST /now HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
	assert_true(rig_read(rig, fd, NULL));
	assert_null(strstr(rig->reply, "100 Continue"));
	assert_non_null(strstr(rig->reply, "Connection: close\r\n"));
	close(fd);
}

static void
test_early_answer_ends_the_connection_unless_the_body_is_here(void **state)
{
	struct rig *rig = *state;
	int fd = rig_connect(rig);

	rig_send(rig, fd, "POST /now HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc");
	assert_true(rig_read(rig, fd, "hello"));
	assert_null(strstr(rig->reply, "Connection: close"));
	rig_send(rig, fd, "POST /now HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nabc");
	assert_true(rig_read(rig, fd, NULL));
	assert_non_null(strstr(rig->reply, "Connection: close"));
	close(fd);
}

static void
test_answer_survives_a_client_that_still_sends(void **state)
{
	struct rig *rig = *state;
	int fd = rig_connect(rig);
	char *text = repeated("POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n\r\n", 'x', 900000, "");

	rig_send(rig, fd, text);
	assert_true(rig_read(rig, fd, NULL));
	assert_non_null(strstr(rig->reply, "HTTP/1.1 413 "));
	free(text);
	close(fd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_get_is_answered_and_kept_alive, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pipelined_requests_are_answered_in_order, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pipelined_requests_wait_for_a_late_answer, setup, teardown),
		cmocka_unit_test_setup_teardown(test_head_has_length_but_no_body, setup, teardown),
		cmocka_unit_test_setup_teardown(test_head_with_body_smuggles_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_options_reaches_the_user, setup, teardown),
		cmocka_unit_test_setup_teardown(test_http_1_0_closes_unless_asked, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_requests_are_answered_and_closed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_large_heads_get_an_answer, setup, teardown),
		cmocka_unit_test_setup_teardown(test_collected_body_is_given_whole, setup, teardown),
		cmocka_unit_test_setup_teardown(test_413_comes_before_the_body, setup, teardown),
		cmocka_unit_test_setup_teardown(test_413_for_chunks_when_they_exceed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_100_continue_only_when_the_body_is_wanted, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_early_answer_ends_the_connection_unless_the_body_is_here, setup, teardown),
		cmocka_unit_test_setup_teardown(test_answer_survives_a_client_that_still_sends, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
