/* test_http_take.c - a connection that leaves the server for another protocol, with every byte it brought. */
/* SPDX-License-Identifier: MIT */
#include "http_rig.h"

#include "base/err.h"
#include "http/http_parser.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/buffer.h>
#include <event2/event.h>

#define GET(path)     "GET " path " HTTP/1.1\r\nHost: x\r\n\r\n"
#define UPGRADE(path) "GET " path " HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"

static struct http_taken taken;
static struct err why;
static int takes;

static int
setup(void **state)
{
	*state = calloc(1, sizeof(struct rig));
	memset(&taken, 0, sizeof taken);
	memset(&why, 0, sizeof why);
	takes = 0;
	return *state == NULL ? -1 : 0;
}

static void
drop_taken(void)
{
	evbuffer_free(taken.read);
	http_head_free(taken.head);
	close(taken.fd);
	taken.read = NULL;
}

static int
teardown(void **state)
{
	if (taken.read != NULL)
		drop_taken();
	rig_stop(*state);
	free(*state);
	return 0;
}

static void
take(struct http_exchange *exchange, void *arg)
{
	(void)arg;
	if (http_exchange_take(exchange, &taken, &why) == 0)
		takes++;
	else
		http_exchange_respond_text(exchange, 409, "text/plain", why.msg, strlen(why.msg));
}

static void
assert_is_a_plain_socket(int client)
{
	char text[8];

	assert_int_equal(write(taken.fd, "hi", 2), 2);
	assert_int_equal(recv(client, text, sizeof text, MSG_DONTWAIT), 2);
	assert_int_equal(send(client, "back", 4, 0), 4);
	assert_int_equal(recv(taken.fd, text, sizeof text, MSG_DONTWAIT), 4);
	assert_memory_equal(text, "back", 4);
}

static void
test_connection_is_taken_inside_its_request(void **state)
{
	struct rig *rig = *state;

	rig_start(rig);
	rig->on_other = take;

	int fd = rig_connect(rig);

	rig_send(rig, fd, GET("/now"));
	assert_true(rig_read(rig, fd, "hello"));
	rig_send(rig, fd, UPGRADE("/other?a=b") "\x81\x80GET /now HTTP/1.1\r\n\r\n");
	assert_true(rig_wait(rig, &takes, 1));
	assert_int_equal(rig->opened, 0);
	assert_int_equal(http_server_exchanges(rig->server), 0);
	assert_string_equal(http_head_query(taken.head), "a=b");
	assert_string_equal(http_head_upgrade(taken.head), "websocket");
	assert_int_equal(evbuffer_get_length(taken.read), 23);
	assert_memory_equal(evbuffer_pullup(taken.read, 5), "\x81\x80GET", 5);
	assert_int_equal(fcntl(taken.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	rig_spin(rig);
	assert_is_a_plain_socket(fd);
	assert_int_equal(rig->gone, 0);
	assert_int_equal(rig->requests, 2);
	close(fd);
}

static void
test_connection_is_taken_later_with_what_came_meanwhile(void **state)
{
	struct rig *rig = *state;

	rig_start(rig);

	int fd = rig_connect(rig);

	rig_send(rig, fd, UPGRADE("/wait"));
	assert_true(rig_wait(rig, &rig->requests, 1));
	rig_send(rig, fd, "early");
	rig_spin(rig);
	take(rig->exchange, rig);
	assert_int_equal(takes, 1);
	assert_int_equal(evbuffer_get_length(taken.read), 5);
	rig_spin(rig);
	assert_is_a_plain_socket(fd);
	http_server_free(rig->server);
	rig->server = NULL;
	assert_is_a_plain_socket(fd);
	close(fd);
}

/* What stands at the read mark is watched by another event, which has to go too. */
static void
test_connection_is_taken_behind_a_flood(void **state)
{
	struct rig *rig = *state;
	static char flood[140 * 1024 + 1];

	rig_start(rig);
	memset(flood, 'x', sizeof flood - 1);

	int fd = rig_connect(rig);

	rig_send(rig, fd, UPGRADE("/wait"));
	rig_send(rig, fd, flood);
	assert_true(rig_wait(rig, &rig->requests, 1));
	rig_spin(rig);
	take(rig->exchange, rig);
	assert_int_equal(takes, 1);
	assert_true(evbuffer_get_length(taken.read) >= 128 * 1024);
	close(fd);
	rig_spin(rig);
	assert_int_equal(rig->gone, 0);
}

static void
test_client_that_left_is_told_as_ever(void **state)
{
	struct rig *rig = *state;

	rig_start(rig);

	int fd = rig_connect(rig);

	rig_send(rig, fd, UPGRADE("/wait"));
	assert_true(rig_wait(rig, &rig->requests, 1));
	close(fd);
	assert_true(rig_wait(rig, &rig->gone, 1));
}

/* Each is answered as if it had not said Upgrade, and the connection goes on. */
static void
test_other_requests_are_not_taken(void **state)
{
	static const char *const requests[] = {
		GET("/other"),
		"GET /other HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n\r\n",
		"GET /other HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n\r\n",
		"GET /other HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrades\r\n\r\n",
		"GET /other HTTP/1.1\r\nHost: x\r\nUpgrade: \r\nConnection: Upgrade\r\n\r\n",
		"GET /other HTTP/1.1\r\nHost: x\r\nUpgrade: websocket, h2c\r\nConnection: Upgrade\r\n\r\n",
		"GET /other HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nUpgrade: websocket\r\nConnection: "
		"Upgrade\r\n\r\n",
		"GET /other HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nContent-Length: "
		"1\r\n\r\nx",
		"POST /other HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
		"GET /other HTTP/1.0\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade, keep-alive\r\n\r\n",
	};
	struct rig *rig = *state;

	rig_start(rig);
	rig->on_other = take;
	for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
		int fd = rig_connect(rig);

		rig_send(rig, fd, requests[i]);
		if (!rig_read(rig, fd, "another protocol") || rig_count(rig, "HTTP/1.1 409 ") != 1)
			fail_msg("%s\n%s", requests[i], rig->reply);
		rig_send(rig, fd, GET("/now"));
		if (!rig_read(rig, fd, "hello"))
			fail_msg("ended: %s", requests[i]);
		close(fd);
	}
	assert_int_equal(takes, 0);
}

static void
test_started_answer_keeps_its_connection(void **state)
{
	struct rig *rig = *state;

	rig_start(rig);

	int fd = rig_connect(rig);

	rig_send(rig, fd, UPGRADE("/wait"));
	assert_true(rig_wait(rig, &rig->requests, 1));
	http_exchange_start(rig->exchange, 200, NULL, -1, NULL, NULL);
	assert_int_equal(http_exchange_take(rig->exchange, &taken, &why), -1);
	assert_int_equal(why.code, ERR_INVALID);
	http_exchange_end(rig->exchange);
	assert_true(rig_read(rig, fd, "0\r\n\r\n"));
	close(fd);
}

/* Bytes of an answer that the client has not taken would get between the protocols. */
static void
test_unread_answers_come_first(void **state)
{
	struct rig *rig = *state;

	rig_start(rig);
	rig->on_other = take;

	int fd = rig_connect(rig);

	rig_send(rig, fd, GET("/down?250000") UPGRADE("/other"));
	assert_true(rig_wait(rig, &rig->requests, 2));
	assert_int_equal(takes, 0);
	assert_int_equal(why.code, ERR_BUSY);
	shutdown(fd, SHUT_WR);
	assert_true(rig_read(rig, fd, NULL));
	assert_non_null(memmem(rig->reply, rig->reply_len, "HTTP/1.1 409 ", 13));
	close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_connection_is_taken_inside_its_request),
		TEST(test_connection_is_taken_later_with_what_came_meanwhile),
		TEST(test_connection_is_taken_behind_a_flood),
		TEST(test_client_that_left_is_told_as_ever),
		TEST(test_other_requests_are_not_taken),
		TEST(test_started_answer_keeps_its_connection),
		TEST(test_unread_answers_come_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
