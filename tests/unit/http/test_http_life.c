/* test_http_life.c - what happens to connections over time: slow, gone, flooding, too many, draining. */
/* SPDX-License-Identifier: MIT */
#include "http_rig.h"

#include "base/clock.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>
#include <event2/buffer.h>
#include <event2/event.h>

#define GET(path) "GET " path " HTTP/1.1\r\nHost: x\r\n\r\n"
#define CHUNKED   " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"

static int
setup(void **state)
{
	*state = calloc(1, sizeof(struct rig));
	return *state == NULL ? -1 : 0;
}

static int
teardown(void **state)
{
	rig_stop(*state);
	free(*state);
	return 0;
}

/*
 * Pushes text again and again until the server takes no more; returns how many bytes it took. Time alone says
 * nothing: this process may not have run in it.
 */
static size_t
rig_flood(struct rig *rig, int fd, const char *text, size_t most)
{
	size_t sent = 0;
	int64_t quiet = clock_boot_ms();
	int refusals = 0;

	while (sent < most && (refusals < 10000 || clock_boot_ms() - quiet < 100)) {
		ssize_t n = send(fd, text, strlen(text), MSG_NOSIGNAL);

		if (n > 0) {
			sent += (size_t)n;
			quiet = clock_boot_ms();
			refusals = 0;
		} else if (errno != EAGAIN) {
			break;
		} else {
			refusals++;
		}
		event_base_loop(rig->base, EVLOOP_NONBLOCK);
	}
	return sent;
}

/* Sends one byte again and again, each well within any deadline; true when the server ended it in spite of that. */
static bool
rig_trickle(struct rig *rig, int fd, const char *head, char byte)
{
	int64_t next = clock_boot_ms(), end = next + 20000;

	rig_send(rig, fd, head);
	while (clock_boot_ms() < end) {
		char text[2] = { byte, '\0' };

		if (clock_boot_ms() >= next) {
			if (send(fd, text, 1, MSG_NOSIGNAL) < 0)
				return true;
			next = clock_boot_ms() + 10;
		}
		event_base_loop(rig->base, EVLOOP_NONBLOCK);
		if (recv(fd, text, 1, MSG_PEEK) > 0)
			return true;
	}
	return false;
}

static void
test_slow_head_gets_408_at_an_absolute_deadline(void **state)
{
	struct rig *rig = *state;

	rig->options.header_timeout_ms = 200;
	rig_start(rig);

	int fd = rig_connect(rig);

	assert_true(rig_trickle(rig, fd, "GET / HTTP/1.1\r\nHost: x\r\nA: ", 'a'));
	assert_true(rig_read(rig, fd, NULL));
	assert_non_null(strstr(rig->reply, "HTTP/1.1 408 "));
	assert_int_equal(rig->requests, 0);
	close(fd);
}

static void
test_slow_body_gets_408_although_bytes_come(void **state)
{
	struct rig *rig = *state;

	rig->options.body_timeout_ms = 200;
	rig_start(rig);

	int fd = rig_connect(rig);

	assert_true(rig_trickle(rig, fd, "POST /up HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n", 'a'));
	assert_true(rig_read(rig, fd, NULL));
	assert_non_null(strstr(rig->reply, "HTTP/1.1 408 "));
	assert_int_equal(rig->gone, 1);
	close(fd);
}

static void
test_idle_connections_end_quietly(void **state)
{
	struct rig *rig = *state;

	rig->options.keepalive_timeout_ms = 100;
	rig_start(rig);

	int fd = rig_connect(rig);

	rig_send(rig, fd, GET("/now"));
	assert_true(rig_read(rig, fd, "hello"));
	assert_true(rig_read(rig, fd, NULL));
	assert_int_equal(rig->reply_len, 0);
	close(fd);
}

static void
test_silent_connections_end_quietly(void **state)
{
	struct rig *rig = *state;

	rig->options.header_timeout_ms = 100;
	rig_start(rig);

	int fd = rig_connect(rig);

	assert_true(rig_read(rig, fd, NULL));
	assert_int_equal(rig->reply_len, 0);
	close(fd);
}

static void
test_leaving_client_is_seen_at_once(void **state)
{
	struct rig *rig = *state;

	rig_start(rig);

	int fd = rig_connect(rig);

	rig_send(rig, fd, GET("/wait"));
	assert_true(rig_wait(rig, &rig->requests, 1));
	close(fd);
	rig_spin(rig);
	assert_int_equal(rig->gone, 1);
	assert_int_equal(http_server_exchanges(rig->server), 0);
	assert_int_equal(http_server_connections(rig->server), 0);
}

static void
test_leaving_client_is_seen_behind_pipelined_requests(void **state)
{
	struct rig *rig = *state;

	rig_start(rig);

	int fd = rig_connect(rig);

	rig_send(rig, fd, GET("/wait") GET("/now") GET("/now"));
	assert_true(rig_wait(rig, &rig->requests, 1));
	close(fd);
	rig_spin(rig);
	assert_int_equal(rig->gone, 1);
	assert_int_equal(rig->requests, 1);
}

static void
test_leaving_client_is_seen_behind_a_flood(void **state)
{
	struct rig *rig = *state;

	rig_start(rig);

	int fd = rig_connect(rig);

	rig_send(rig, fd, GET("/wait"));
	assert_true(rig_flood(rig, fd, GET("/now"), 100 << 20) < 2 << 20);
	assert_int_equal(rig->requests, 1);
	close(fd);
	assert_true(rig_wait(rig, &rig->gone, 1));
}

static void
test_reset_is_seen_behind_a_paused_body(void **state)
{
	struct rig *rig = *state;
	struct linger reset = { .l_onoff = 1, .l_linger = 0 };
	char body[4097];

	memset(body, 'x', sizeof body - 1);
	body[sizeof body - 1] = '\0';
	rig->tcp = true;
	rig_start(rig);

	int fd = rig_connect(rig);

	rig_send(rig, fd, "POST /hold HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n");
	assert_true(rig_flood(rig, fd, body, 100 << 20) < 32 << 20);
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
	close(fd);
	assert_true(rig_wait(rig, &rig->gone, 1));
	assert_int_equal(http_server_connections(rig->server), 0);
}

static void
test_answering_after_a_flood_goes_on(void **state)
{
	struct rig *rig = *state;

	rig_start(rig);

	int fd = rig_connect(rig);
	size_t sent;

	rig_send(rig, fd, GET("/wait"));
	sent = rig_flood(rig, fd, GET("/now"), 100 << 20);
	http_exchange_respond_text(rig->exchange, 200, NULL, NULL, 0);
	assert_true(rig_wait(rig, &rig->requests, 100));
	/* Not all of them: the client reads nothing, so the answers pile up to their bound. */
	for (int i = 0; i < 100; i++)
		rig_spin(rig);

	int before = rig->requests;

	assert_true((size_t)before < sent / strlen(GET("/now")));
	for (int64_t end = clock_boot_ms() + 20000; rig->requests == before && clock_boot_ms() < end;) {
		(void)!recv(fd, rig->reply, sizeof rig->reply, 0);
		event_base_loop(rig->base, EVLOOP_NONBLOCK);
	}
	assert_true(rig->requests > before);
	close(fd);
}

static void
test_unread_answers_bound_what_is_begun(void **state)
{
	struct rig *rig = *state;

	rig_start(rig);

	int fd = rig_connect(rig);

	assert_true(rig_flood(rig, fd, GET("/now"), 100 << 20) < 4 << 20);
	close(fd);
	for (int64_t end = clock_boot_ms() + 20000;
		http_server_connections(rig->server) > 0 && clock_boot_ms() < end;)
		rig_spin(rig);
	assert_int_equal(http_server_connections(rig->server), 0);
}

static void
test_client_that_never_reads_is_dropped(void **state)
{
	struct rig *rig = *state;

	rig->options.body_timeout_ms = 200;
	rig_start(rig);

	int fd = rig_connect(rig);

	rig_send(rig, fd, GET("/down?100000000"));
	assert_true(rig_wait(rig, &rig->gone, 1));
	assert_in_range(rig->down_queued, 1, 400 * 1024);
	assert_int_equal(http_server_connections(rig->server), 0);
	close(fd);
}

static void
test_patience_waits_for_a_client_that_is_there(void **state)
{
	struct rig *rig = *state;

	rig->options.body_timeout_ms = 200;
	rig->patient = true;
	rig_start(rig);

	int fd = rig_connect(rig);

	rig_send(rig, fd, GET("/down?100000000"));
	for (int64_t end = clock_boot_ms() + 900; clock_boot_ms() < end;)
		rig_spin(rig);
	assert_int_equal(rig->gone, 0);
	close(fd);
	assert_true(rig_wait(rig, &rig->gone, 1));
}

static void
test_streamed_answer_waits_for_its_reader(void **state)
{
	struct rig *rig = *state;
	size_t total = 0;

	rig_start(rig);

	int fd = rig_connect(rig);

	rig_send(rig, fd, "GET /down?20000000 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
	for (int64_t end = clock_boot_ms() + 20000; clock_boot_ms() < end;) {
		ssize_t n = recv(fd, rig->reply, sizeof rig->reply - 1, 0);

		if (n == 0)
			break;
		total += n > 0 ? (size_t)n : 0;
		event_base_loop(rig->base, EVLOOP_NONBLOCK);
	}
	assert_true(total > 20000000 && total < 20100000);
	assert_in_range(rig->down_queued, 1, 400 * 1024);
	assert_int_equal(rig->gone, 0);
	close(fd);
}

static void
test_upload_pauses_while_nobody_takes_it(void **state)
{
	struct rig *rig = *state;
	char chunk[8 + 4096 + 3] = "1000\r\n";

	memset(chunk + 6, 'x', 4096);
	memcpy(chunk + 6 + 4096, "\r\n", 3);
	rig->options.body_timeout_ms = 400;
	rig_start(rig);

	int fd = rig_connect(rig);

	rig_send(rig, fd, "POST /hold" CHUNKED);
	assert_true(rig_flood(rig, fd, chunk, 100 << 20) < 2 << 20);
	/* It is us who wait, so no deadline of the client runs. */
	for (int64_t end = clock_boot_ms() + 900; clock_boot_ms() < end;)
		rig_spin(rig);
	assert_int_equal(rig->gone, 0);
	rig->take = true;
	http_exchange_resume(rig->exchange);
	assert_true(rig_flood(rig, fd, chunk, 8 << 20) >= 8 << 20);
	close(fd);
	assert_true(rig_wait(rig, &rig->gone, 1));
	assert_true(rig->up_bytes > 7 << 20);
}

static void
test_both_directions_stream_at_once(void **state)
{
	struct rig *rig = *state;

	rig_start(rig);

	int fd = rig_connect(rig);

	rig_send(rig, fd, "POST /echo" CHUNKED "3\r\none\r\n");
	assert_true(rig_read(rig, fd, "3\r\none\r\n"));
	rig_send(rig, fd, "3\r\ntwo\r\n");
	assert_true(rig_read(rig, fd, "3\r\ntwo\r\n"));
	rig_send(rig, fd, "0\r\n\r\n");
	assert_true(rig_read(rig, fd, NULL));
	assert_non_null(strstr(rig->reply, "0\r\n\r\n"));
	close(fd);
}

static void
test_broken_body_under_a_started_answer_cuts_it(void **state)
{
	struct rig *rig = *state;

	rig_start(rig);

	int fd = rig_connect(rig);

	rig_send(rig, fd, "POST /echo" CHUNKED "3\r\none\r\n");
	assert_true(rig_read(rig, fd, "one"));
	rig_send(rig, fd, "zz\r\n");
	assert_true(rig_read(rig, fd, NULL));
	assert_null(strstr(rig->reply, "HTTP/1.1"));
	assert_null(strstr(rig->reply, "0\r\n\r\n"));
	assert_int_equal(rig->gone, 1);
	close(fd);
}

static void
test_counted_answer_that_ends_short_is_cut(void **state)
{
	struct rig *rig = *state;
	struct evbuffer *piece = evbuffer_new();

	rig_start(rig);

	int fd = rig_connect(rig);

	rig_send(rig, fd, GET("/wait"));
	assert_true(rig_wait(rig, &rig->requests, 1));
	http_exchange_start(rig->exchange, 200, NULL, 10, NULL, NULL);
	evbuffer_add(piece, "12345", 5);
	http_exchange_send(rig->exchange, piece);
	evbuffer_free(piece);
	assert_true(rig_read(rig, fd, "12345"));
	http_exchange_end(rig->exchange);
	assert_true(rig_read(rig, fd, NULL));
	assert_int_equal(rig->gone, 0);
	close(fd);
}

static void
test_accepting_stops_at_max_connections(void **state)
{
	struct rig *rig = *state;

	rig->options.max_connections = 2;
	rig_start(rig);

	int first = rig_connect(rig);
	int second = rig_connect(rig);
	int third = rig_connect(rig);

	rig_send(rig, third, GET("/now"));
	for (int i = 0; i < 5; i++)
		rig_spin(rig);
	assert_int_equal(http_server_connections(rig->server), 2);
	assert_int_equal(rig->requests, 0);
	close(first);
	assert_true(rig_read(rig, third, "hello"));
	close(second);
	close(third);
}

static void
test_drain_ends_idle_and_lets_running_finish(void **state)
{
	struct rig *rig = *state;
	char byte;

	rig_start(rig);

	int idle = rig_connect(rig);
	int busy = rig_connect(rig);
	int fresh = rig_connect(rig);
	int late = rig_connect(rig);

	rig_send(rig, idle, GET("/now"));
	assert_true(rig_read(rig, idle, "hello"));
	rig_send(rig, late, GET("/now"));
	assert_true(rig_read(rig, late, "hello"));
	rig_send(rig, busy, GET("/wait"));
	assert_true(rig_wait(rig, &rig->requests, 3));
	/* On its way when draining begins: answered. */
	assert_true(send(late, GET("/now"), strlen(GET("/now")), 0) > 0);
	http_server_drain(rig->server, false);
	http_server_drain(rig->server, false);
	assert_true(rig_read(rig, late, NULL));
	assert_non_null(strstr(rig->reply, "Connection: close\r\n"));
	assert_int_equal(recv(idle, &byte, 1, 0), 0);
	http_exchange_respond_text(rig->exchange, 200, NULL, "bye", 3);
	assert_true(rig_read(rig, busy, NULL));
	assert_non_null(strstr(rig->reply, "Connection: close\r\n"));
	assert_non_null(strstr(rig->reply, "bye"));
	rig_send(rig, fresh, GET("/now"));
	assert_true(rig_read(rig, fresh, NULL));
	assert_non_null(strstr(rig->reply, "hello"));
	close(idle);
	close(busy);
	close(fresh);
	close(late);
	for (int64_t end = clock_boot_ms() + 20000; rig->opened > 0 && clock_boot_ms() < end;)
		rig_spin(rig);
	assert_int_equal(http_server_connections(rig->server), 0);
}

/* Others are there for new connections: a client that has not heard of the end yet may send one more request. */
static void
test_patient_drain_answers_what_is_on_its_way(void **state)
{
	struct rig *rig = *state;
	struct evbuffer *piece = evbuffer_new();

	rig_start(rig);

	int idle = rig_connect(rig);
	int silent = rig_connect(rig);
	int told = rig_connect(rig); /* its answer has begun before, so it promises to stay */

	rig_send(rig, idle, GET("/now"));
	assert_true(rig_read(rig, idle, "hello"));
	rig_send(rig, silent, GET("/now"));
	assert_true(rig_read(rig, silent, "hello"));
	rig_send(rig, told, GET("/wait"));
	assert_true(rig_wait(rig, &rig->requests, 3));
	http_exchange_start(rig->exchange, 200, NULL, 5, NULL, NULL);
	http_server_drain(rig->server, true);
	assert_int_equal(http_server_hears(rig->server), 2);
	rig_send(rig, idle, GET("/now"));
	assert_true(rig_read(rig, idle, NULL));
	assert_non_null(strstr(rig->reply, "Connection: close\r\n"));
	assert_non_null(strstr(rig->reply, "hello"));
	evbuffer_add(piece, "there", 5);
	http_exchange_send(rig->exchange, piece);
	http_exchange_end(rig->exchange);
	assert_true(rig_read(rig, told, "there"));
	assert_null(strstr(rig->reply, "Connection: close\r\n"));
	rig_send(rig, told, GET("/now"));
	assert_true(rig_read(rig, told, NULL));
	assert_non_null(strstr(rig->reply, "Connection: close\r\n"));
	assert_true(rig_read(rig, silent, NULL));
	assert_int_equal(http_server_hears(rig->server), 0);
	evbuffer_free(piece);
	close(idle);
	close(silent);
	close(told);
}

static void
test_free_tells_every_pending_user(void **state)
{
	struct rig *rig = *state;

	rig_start(rig);

	int fd = rig_connect(rig);

	rig_send(rig, fd, GET("/wait"));
	assert_true(rig_wait(rig, &rig->requests, 1));
	http_server_free(rig->server);
	rig->server = NULL;
	assert_int_equal(rig->gone, 1);
	assert_int_equal(rig->opened, 0);
	close(fd);
}

static void
free_server(struct http_exchange *exchange, void *arg)
{
	struct rig *rig = arg;

	(void)exchange;
	http_server_free(rig->server);
	rig->server = NULL;
}

static void
test_server_may_be_freed_inside_a_request(void **state)
{
	struct rig *rig = *state;

	rig_start(rig);
	rig->on_other = free_server;

	int fd = rig_connect(rig);

	rig_send(rig, fd, GET("/other") GET("/now"));
	assert_int_equal(rig->gone, 1);
	assert_int_equal(rig->requests, 1);
	close(fd);
}

static void
answer_and_leave(struct http_exchange *exchange, void *arg)
{
	(void)arg;
	http_exchange_abort(exchange);
}

static void
test_abort_inside_a_request_is_a_cut(void **state)
{
	struct rig *rig = *state;

	rig_start(rig);
	rig->on_other = answer_and_leave;

	int fd = rig_connect(rig);

	rig_send(rig, fd, GET("/other") GET("/now"));
	assert_true(rig_read(rig, fd, NULL));
	assert_int_equal(rig->reply_len, 0);
	assert_int_equal(rig->gone, 0);
	assert_int_equal(rig->requests, 1);
	close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_slow_head_gets_408_at_an_absolute_deadline),
		TEST(test_slow_body_gets_408_although_bytes_come),
		TEST(test_idle_connections_end_quietly),
		TEST(test_silent_connections_end_quietly),
		TEST(test_leaving_client_is_seen_at_once),
		TEST(test_leaving_client_is_seen_behind_pipelined_requests),
		TEST(test_leaving_client_is_seen_behind_a_flood),
		TEST(test_reset_is_seen_behind_a_paused_body),
		TEST(test_answering_after_a_flood_goes_on),
		TEST(test_unread_answers_bound_what_is_begun),
		TEST(test_client_that_never_reads_is_dropped),
		TEST(test_patience_waits_for_a_client_that_is_there),
		TEST(test_streamed_answer_waits_for_its_reader),
		TEST(test_upload_pauses_while_nobody_takes_it),
		TEST(test_both_directions_stream_at_once),
		TEST(test_broken_body_under_a_started_answer_cuts_it),
		TEST(test_counted_answer_that_ends_short_is_cut),
		TEST(test_accepting_stops_at_max_connections),
		TEST(test_drain_ends_idle_and_lets_running_finish),
		TEST(test_patient_drain_answers_what_is_on_its_way),
		TEST(test_free_tells_every_pending_user),
		TEST(test_server_may_be_freed_inside_a_request),
		TEST(test_abort_inside_a_request_is_a_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
