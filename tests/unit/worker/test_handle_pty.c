/* test_handle_pty.c - handshakes of terminals: refused with a status, or handed over whole. */
/* SPDX-License-Identifier: MIT */
#include "api_fixture.h"
#include "fake_domain.h"

#include "base/err.h"
#include "ipc/shm.h"
#include "ipc/terminal_msg.h"
#include "worker/api.h"

#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define KEY_LINE   "X-API-Key: test-key\r\n"
#define UPGRADE    "Connection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n"
#define VERSION    "Sec-WebSocket-Version: 13\r\n"
#define SOCKET_KEY "dGhlIHNhbXBsZSBub25jZQ=="
#define SOCKET     UPGRADE VERSION "Sec-WebSocket-Key: " SOCKET_KEY "\r\n"
#define SESSION    "0b0e7a52-6f3c-4c5b-9d0a-0123456789ab"

static int channel[2];
static struct proc_ref gateway;

static int
setup(void **state)
{
	struct fixture *fixture;
	struct err err;

	fixture_setup(state);
	fixture = *state;
	fixture->config.max_terminals = 2;
	fixture->config.drain_timeout_seconds = 5;
	assert_int_equal(terminal_channel_open(channel, &err), 0);
	fixture->api->terminal_fd = channel[0];
	assert_int_equal(scoreboard_claim(shm_scoreboard(fixture->shm), PROC_GATEWAY, &gateway, &err), 0);
	scoreboard_set_state(shm_scoreboard(fixture->shm), gateway, PROC_READY);
	strcpy(fake.record.uid, SESSION);
	strcpy(fake.record.endpoint, "unix:/run/x");
	strcpy(fake.record.agent_token, "token");
	return 0;
}

static int
teardown(void **state)
{
	fixture_teardown(state);
	close(channel[0]);
	close(channel[1]);
	return 0;
}

static int
ask(struct fixture *fixture, const char *query, const char *headers)
{
	char bytes[4096];
	int fd = fixture_connect(fixture);

	snprintf(bytes, sizeof bytes, "GET /sandboxes/box-1/exec/pty%s HTTP/1.1\r\nHost: x\r\n%s\r\n", query,
		headers);
	fixture_send(fd, bytes);
	return fd;
}

static void
expect_refusal(struct fixture *fixture, const char *query, const char *headers, int status, const char *code)
{
	int fd = ask(fixture, query, headers);
	AUTO_REPLY reply = fixture_reply(fixture, fd, false);

	assert_problem(&reply, status, code);
	close(fd);
}

/* Waits until it waits for the sandbox, says that this is ready, and takes the offer. */
static struct terminal_offer
expect_offer(struct fixture *fixture, const char *query, const char *headers)
{
	struct terminal_offer offer;
	static char early[TERMINAL_EARLY_MAX];
	int fd = ask(fixture, query, headers), passed;
	struct err err;

	fixture_run_until(fixture, &fake.ready_waits, true);
	fake_end_ready(NULL);
	assert_int_equal(terminal_offer_take(channel[1], &offer, early, &passed, &err), 1);
	assert_int_equal(send(passed, "hello", 5, 0), 5);
	assert_int_equal(recv(fd, early, 5, MSG_WAITALL), 5);
	assert_memory_equal(early, "hello", 5);
	close(passed);
	close(fd);
	return offer;
}

static void
test_refusals(void **state)
{
	struct fixture *f = *state;

	expect_refusal(f, "", SOCKET, 401, "missing_api_key");
	expect_refusal(f, "?api_key=wrong", SOCKET, 403, "invalid_api_key");
	expect_refusal(f, "", SOCKET "Sec-WebSocket-Protocol: a, api_key.wrong\r\n", 403, "invalid_api_key");
	expect_refusal(f, "?api_key=test-key", SOCKET "X-API-Key: wrong\r\n", 403, "invalid_api_key");
	expect_refusal(f, "", KEY_LINE, 426, "upgrade_required");
	expect_refusal(f, "", KEY_LINE UPGRADE "Sec-WebSocket-Version: 8\r\n", 426, "upgrade_required");
	expect_refusal(f, "", KEY_LINE VERSION "Sec-WebSocket-Key: " SOCKET_KEY "\r\nUpgrade: websocket\r\n", 426,
		"upgrade_required");
	expect_refusal(f, "",
		KEY_LINE VERSION "Sec-WebSocket-Key: " SOCKET_KEY "\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n",
		426, "upgrade_required");
	expect_refusal(f, "", KEY_LINE UPGRADE VERSION, 400, "bad_request");
	expect_refusal(f, "", KEY_LINE UPGRADE VERSION "Sec-WebSocket-Key: short\r\n", 400, "bad_request");
	expect_refusal(f, "", KEY_LINE SOCKET "Sec-WebSocket-Key: " SOCKET_KEY "\r\n", 400, "bad_request");
	expect_refusal(f, "?session=x", KEY_LINE SOCKET, 422, "invalid_request");
	expect_refusal(f, "?session=" SESSION "&offset=-1", KEY_LINE SOCKET, 422, "invalid_request");
	fake_fail(ERR_NOT_FOUND, "there is no sandbox");
	expect_refusal(f, "", KEY_LINE SOCKET, 404, "not_found");
}

static void
test_a_sandbox_that_is_not_ready(void **state)
{
	struct fixture *f = *state;
	struct err err;
	int fd = ask(f, "", KEY_LINE SOCKET);

	fixture_run_until(f, &fake.ready_waits, true);
	err_set(&err, ERR_NOT_READY, "still pending");
	fake_end_ready(&err);
	AUTO_REPLY reply = fixture_reply(f, fd, false);

	assert_problem(&reply, 409, "sandbox_not_ready");
	close(fd);
	/* Its client leaves while it waits. */
	fd = ask(f, "", KEY_LINE SOCKET);
	fixture_run_until(f, &fake.ready_waits, true);
	close(fd);
	fixture_run_until(f, &fake.ready_waits, false);
	assert_int_equal(fake.cancelled, 1);
}

static void
test_no_gateway_no_room(void **state)
{
	struct fixture *f = *state;
	struct shm_scoreboard *board = shm_scoreboard(f->shm);

	scoreboard_set_state(board, gateway, PROC_DRAINING);
	expect_refusal(f, "", KEY_LINE SOCKET, 503, "unavailable");
	scoreboard_set_state(board, gateway, PROC_READY);
	scoreboard_add(board, gateway, METRIC_TERMINALS, 2);
	expect_refusal(f, "", KEY_LINE SOCKET, 503, "unavailable");
	scoreboard_add(board, gateway, METRIC_TERMINALS, -1);
	expect_offer(f, "", KEY_LINE SOCKET);
	assert_int_equal(scoreboard_sum(board, METRIC_TERMINALS_REFUSED), 2);
}

static void
test_a_full_channel_is_told_to_the_client(void **state)
{
	struct fixture *f = *state;
	char packet[4096] = { 0 };
	int fd = ask(f, "", KEY_LINE SOCKET);

	while (send(channel[0], packet, sizeof packet, MSG_DONTWAIT) > 0)
		;
	while (send(channel[0], packet, 1, MSG_DONTWAIT) > 0)
		;
	fixture_run_until(f, &fake.ready_waits, true);
	fake_end_ready(NULL);
	AUTO_REPLY reply = fixture_reply(f, fd, false);

	assert_problem(&reply, 503, "unavailable");
	assert_string_equal(reply_header(&reply, "Retry-After"), "1");
	close(fd);
}

static void
test_what_is_handed_over(void **state)
{
	struct fixture *f = *state;
	struct terminal_offer offer = expect_offer(f, "", KEY_LINE SOCKET "X-Request-ID: r1\r\n");

	assert_int_equal(offer.slot, 7);
	assert_string_equal(offer.sandbox_id, "box-1");
	assert_string_equal(offer.sandbox_uid, SESSION);
	assert_string_equal(offer.endpoint, "unix:/run/x");
	assert_string_equal(offer.token, "token");
	assert_string_equal(offer.request_id, "r1");
	assert_string_equal(offer.websocket_key, SOCKET_KEY);
	assert_string_equal(offer.protocol, "");
	assert_string_equal(offer.session, "");
	assert_int_equal(offer.offset, -1);
	offer = expect_offer(f, "?session=" SESSION "&offset=17", KEY_LINE SOCKET);
	assert_string_equal(offer.session, SESSION);
	assert_int_equal(offer.offset, 17);
	assert_int_equal(api_open_connections(f->api), 0);
	assert_int_equal(api_open_requests(f->api), 0);
}

static void
test_bytes_behind_the_request_come_along(void **state)
{
	struct fixture *f = *state;
	struct terminal_offer offer;
	char early[TERMINAL_EARLY_MAX];
	int fd = fixture_connect(f), passed;
	struct err err;

	fixture_send(fd, "GET /sandboxes/box-1/exec/pty HTTP/1.1\r\nHost: x\r\n" KEY_LINE SOCKET "\r\nframes");
	fixture_run_until(f, &fake.ready_waits, true);
	fake_end_ready(NULL);
	assert_int_equal(terminal_offer_take(channel[1], &offer, early, &passed, &err), 1);
	assert_int_equal(offer.early_len, 6);
	assert_memory_equal(early, "frames", 6);
	close(passed);
	close(fd);
}

static void
test_where_a_browser_puts_the_key(void **state)
{
	static char odd[] = "a+/=&b", *const odd_keys[] = { odd };
	struct fixture *f = *state;
	struct terminal_offer offer;

	expect_offer(f, "?api_key=test-key", SOCKET);
	offer = expect_offer(f, "", SOCKET "Sec-WebSocket-Protocol: api_key.test-key, orchard.pty.v1, other\r\n");
	assert_string_equal(offer.protocol, "orchard.pty.v1");
	offer = expect_offer(
		f, "", SOCKET "Sec-WebSocket-Protocol: api_key.test-key\r\nSec-WebSocket-Protocol: , b\r\n");
	assert_string_equal(offer.protocol, "b");
	offer = expect_offer(f, "", SOCKET "Sec-WebSocket-Protocol: api_key.test-key\r\n");
	assert_string_equal(offer.protocol, "api_key.test-key");
	/* A place that holds none is no place. */
	expect_offer(f, "?api_key=test-key", SOCKET "Authorization: Basic dTpw\r\n");
	expect_offer(f, "?api_key=test-key", SOCKET "X-API-Key:\r\nAuthorization: Bearer \r\n");
	expect_offer(f, "?api_key=", SOCKET "Sec-WebSocket-Protocol: api_key.test-key\r\n");
	expect_refusal(f, "?api_key=", SOCKET "Authorization: Basic dTpw\r\n", 401, "missing_api_key");
	f->config.api_keys.items = (char **)(uintptr_t)odd_keys;
	expect_offer(f, "?api_key=a%2B%2F%3D%26b", SOCKET);
	expect_offer(f, "", SOCKET "Sec-WebSocket-Protocol: api_key.a+/=&b\r\n");
	/* Other routes know nothing of that. */
	AUTO_REPLY reply = fixture_call(f, "GET", "/sandboxes/box-1?api_key=a%2B%2F%3D%26b", NULL);

	assert_int_equal(reply.status, 403);
}

static void
test_names_that_cannot_be_answered(void **state)
{
	char headers[1024], name[TERMINAL_PROTOCOL_SIZE + 1];
	struct fixture *f = *state;
	struct terminal_offer offer;

	memset(name, 'n', sizeof name);
	name[TERMINAL_PROTOCOL_SIZE] = '\0';
	snprintf(headers, sizeof headers, KEY_LINE SOCKET "Sec-WebSocket-Protocol: %s\r\n", name);
	expect_refusal(f, "", headers, 400, "bad_request");
	snprintf(headers, sizeof headers, KEY_LINE SOCKET "Sec-WebSocket-Protocol: %s\r\n", name + 1);
	offer = expect_offer(f, "", headers);
	assert_string_equal(offer.protocol, name + 1);
	expect_refusal(f, "", KEY_LINE SOCKET "Sec-WebSocket-Protocol: a b\r\n", 400, "bad_request");
}

int
main(void)
{
#define PTY_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		PTY_TEST(test_refusals),
		PTY_TEST(test_a_sandbox_that_is_not_ready),
		PTY_TEST(test_no_gateway_no_room),
		PTY_TEST(test_a_full_channel_is_told_to_the_client),
		PTY_TEST(test_what_is_handed_over),
		PTY_TEST(test_bytes_behind_the_request_come_along),
		PTY_TEST(test_where_a_browser_puts_the_key),
		PTY_TEST(test_names_that_cannot_be_answered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
