/* test_http_leave.c - clients that send no more: who still reads is answered, who has left holds nothing. */
/* SPDX-License-Identifier: MIT */
#include "http_rig.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>
#include <event2/event.h>

#define GET(path) "GET " path " HTTP/1.1\r\nHost: x\r\n\r\n"
#define CHUNKED   " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"

enum { LONG_MS = 10000, SHORT_MS = 50 };

/* More than is read of a body that nobody takes, by less than a socket holds. */
enum { HELD = 150000 };

static int
setup(void **state)
{
	struct rig *rig = calloc(1, sizeof *rig);

	if (rig == NULL)
		return -1;
	rig->tcp = true;
	rig->options.half_closed_ms = LONG_MS;
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

/* Sends text and the end of it. */
static int
ask(struct rig *rig, const char *text)
{
	int fd = rig_connect(rig);

	rig_send(rig, fd, text);
	shutdown(fd, SHUT_WR);
	return fd;
}

static void
answer(struct rig *rig)
{
	http_exchange_respond_text(rig->exchange, 200, "text/plain", "late", 4);
}

static void
expect_answers(struct rig *rig, const char *text, int count)
{
	int fd = ask(rig, text);

	rig->reply_len = 0;
	assert_true(rig_read(rig, fd, NULL));
	assert_int_equal(rig_count(rig, "HTTP/1.1 200 "), count);
	close(fd);
	rig_spin(rig);
	assert_int_equal(http_server_connections(rig->server), 0);
}

static void
test_what_was_asked_as_a_whole_is_answered(void **state)
{
	struct rig *rig = *state;

	rig_start(rig);
	expect_answers(rig, GET("/now"), 1);
	expect_answers(rig, GET("/now") GET("/now") "POST /body" CHUNKED "3\r\nabc\r\n0\r\n\r\n" GET("/now"), 4);
	expect_answers(rig, GET("/down?300000"), 1);
	expect_answers(rig, GET("/now") "GET /now HTT", 1);
	expect_answers(rig, "POST /body" CHUNKED "3\r\nab", 0);
	expect_answers(rig, "POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nab", 0);
	expect_answers(rig, "", 0);
	expect_answers(rig, "POST /up" CHUNKED "3\r\nabc\r\n0\r", 0);
	assert_int_equal(rig->gone, 3);
}

static void
test_a_late_answer_comes_and_so_does_what_stands_behind(void **state)
{
	struct rig *rig = *state;
	int fd;

	rig_start(rig);
	fd = ask(rig, GET("/wait") GET("/now"));
	assert_true(rig_wait(rig, &rig->requests, 1));
	rig_spin(rig);
	assert_int_equal(rig->gone, 0);
	answer(rig);
	assert_true(rig_read(rig, fd, NULL));
	assert_int_equal(rig_count(rig, "late"), 1);
	assert_int_equal(rig_count(rig, "hello"), 1);
	close(fd);
}

static void
test_who_waits_too_long_has_left(void **state)
{
	struct rig *rig = *state;
	int fd;

	rig->options.half_closed_ms = SHORT_MS;
	rig_start(rig);
	fd = ask(rig, GET("/wait"));
	assert_true(rig_wait(rig, &rig->gone, 1));
	assert_int_equal(http_server_connections(rig->server), 0);
	close(fd);
}

static void
test_what_needs_its_client_ends_with_it(void **state)
{
	struct rig *rig = *state;
	int fd;

	rig_start(rig);
	fd = rig_connect(rig);
	rig_send(rig, fd, GET("/wait"));
	assert_true(rig_wait(rig, &rig->requests, 1));
	http_exchange_need_client(rig->exchange);
	shutdown(fd, SHUT_WR);
	rig_spin(rig);
	assert_int_equal(rig->gone, 1);
	close(fd);
}

static void
test_one_that_is_gone_is_seen_by_what_is_sent(void **state)
{
	struct rig *rig = *state;
	int fd;

	rig_start(rig);
	fd = ask(rig, GET("/down?200000000"));
	assert_true(rig_wait(rig, &rig->requests, 1));
	close(fd);
	assert_true(rig_wait(rig, &rig->gone, 1));
	assert_int_equal(http_server_connections(rig->server), 0);
}

static void
test_a_held_body_that_came_whole_is_taken(void **state)
{
	struct rig *rig = *state;
	char body[HELD + 1];
	int fd;

	memset(body, 'x', sizeof body - 1);
	body[sizeof body - 1] = '\0';
	rig_start(rig);
	fd = rig_connect(rig);
	rig_send(rig, fd, "POST /hold HTTP/1.1\r\nHost: x\r\nContent-Length: 150000\r\n\r\n");
	rig_send(rig, fd, body);
	shutdown(fd, SHUT_WR);
	assert_true(rig_wait(rig, &rig->requests, 1));
	/* Longer than a tick takes to look who has left. */
	for (int64_t end = clock_boot_ms() + 500; clock_boot_ms() < end;)
		rig_spin(rig);
	assert_int_equal(rig->gone, 0);
	rig->take = true;
	http_exchange_resume(rig->exchange);
	assert_true(rig_read(rig, fd, NULL));
	assert_int_equal(rig->up_bytes, HELD);
	close(fd);
}

static void
test_a_held_body_that_was_cut_is_given_up(void **state)
{
	struct rig *rig = *state;
	char body[HELD + 1];
	int fd;

	memset(body, 'x', sizeof body - 1);
	body[sizeof body - 1] = '\0';
	rig_start(rig);
	fd = rig_connect(rig);
	rig_send(rig, fd, "POST /hold HTTP/1.1\r\nHost: x\r\nContent-Length: 150001\r\n\r\n");
	rig_send(rig, fd, body);
	close(fd);
	assert_true(rig_wait(rig, &rig->gone, 1));
}

static void
test_a_unix_socket_tells_who_closed(void **state)
{
	struct rig *rig = *state;
	int fd;

	rig->tcp = false;
	rig_start(rig);
	expect_answers(rig, GET("/now"), 1);
	fd = rig_connect(rig);
	rig_send(rig, fd, GET("/wait"));
	assert_true(rig_wait(rig, &rig->requests, 2));
	close(fd);
	rig_spin(rig);
	assert_int_equal(rig->gone, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_what_was_asked_as_a_whole_is_answered),
		TEST(test_a_late_answer_comes_and_so_does_what_stands_behind),
		TEST(test_who_waits_too_long_has_left),
		TEST(test_what_needs_its_client_ends_with_it),
		TEST(test_one_that_is_gone_is_seen_by_what_is_sent),
		TEST(test_a_held_body_that_came_whole_is_taken),
		TEST(test_a_held_body_that_was_cut_is_given_up),
		TEST(test_a_unix_socket_tells_who_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
