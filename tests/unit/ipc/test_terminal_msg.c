/* test_terminal_msg.c - connections travel whole or not at all, and a full channel is an answer. */
/* SPDX-License-Identifier: MIT */
#include "ipc/terminal_msg.h"

#include "base/err.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static int channel[2];
static char early[TERMINAL_EARLY_MAX];

static int
setup(void **state)
{
	struct err err;

	(void)state;
	return terminal_channel_open(channel, &err);
}

static int
teardown(void **state)
{
	(void)state;
	close(channel[0]);
	close(channel[1]);
	return 0;
}

static struct terminal_offer
an_offer(uint32_t early_len)
{
	return (struct terminal_offer){ .version = TERMINAL_MSG_VERSION,
		.slot = 3,
		.sandbox_id = "box",
		.protocol = "p",
		.early_len = early_len };
}

static void
test_an_offer_and_its_connection(void **state)
{
	struct terminal_offer offer = an_offer(TERMINAL_EARLY_MAX), got;
	static char bytes[TERMINAL_EARLY_MAX];
	int pair[2], fd;
	char byte;
	struct err err;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	memset(bytes, 'e', sizeof bytes);
	assert_int_equal(terminal_offer_take(channel[1], &got, early, &fd, &err), 0);
	assert_int_equal(terminal_offer_send(channel[0], &offer, bytes, pair[0], &err), 0);
	close(pair[0]);
	assert_int_equal(terminal_offer_take(channel[1], &got, early, &fd, &err), 1);
	assert_memory_equal(&got, &offer, sizeof got);
	assert_memory_equal(early, bytes, sizeof bytes);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(send(fd, "x", 1, 0), 1);
	assert_int_equal(recv(pair[1], &byte, 1, 0), 1);
	close(fd);
	close(pair[1]);
}

static void
test_full_is_an_answer(void **state)
{
	struct terminal_offer offer = an_offer(0), got;
	int null_fd = open("/dev/null", O_RDONLY), fd, sent = 0;
	struct err err;

	(void)state;
	while (terminal_offer_send(channel[0], &offer, NULL, null_fd, &err) == 0)
		sent++;
	assert_int_equal(err.code, ERR_BUSY);
	assert_true(sent > 20);
	assert_int_equal(terminal_offer_take(channel[1], &got, early, &fd, &err), 1);
	close(fd);
	assert_int_equal(terminal_offer_send(channel[0], &offer, NULL, null_fd, &err), 0);
	close(null_fd);
}

static void
expect_dropped(void)
{
	struct terminal_offer got;
	struct err err;
	int fd;

	assert_int_equal(terminal_offer_take(channel[1], &got, early, &fd, &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
}

static void
test_what_is_no_offer_is_dropped(void **state)
{
	struct terminal_offer offer = an_offer(0), got;
	int null_fd = open("/dev/null", O_RDONLY), fd;
	struct err err;

	(void)state;
	assert_int_equal(send(channel[0], "short", 5, 0), 5);
	expect_dropped();
	assert_int_equal(send(channel[0], &offer, sizeof offer, 0), sizeof offer); /* no connection */
	expect_dropped();
	offer.version++;
	assert_int_equal(terminal_offer_send(channel[0], &offer, NULL, null_fd, &err), 0);
	expect_dropped();
	offer = an_offer(0);
	memset(offer.token, 'x', sizeof offer.token);
	assert_int_equal(terminal_offer_send(channel[0], &offer, NULL, null_fd, &err), 0);
	expect_dropped();
	close(channel[0]);
	assert_int_equal(terminal_offer_take(channel[1], &got, early, &fd, &err), -1);
	assert_int_equal(err.code, ERR_CLOSED);
	channel[0] = open("/dev/null", O_RDONLY);
	close(null_fd);
}

static void
test_a_refusal_is_http(void **state)
{
	char answer[1024];
	int pair[2];
	ssize_t n;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	terminal_refuse(pair[0], "r1", "no room");
	n = recv(pair[1], answer, sizeof answer - 1, 0);
	assert_true(n > 0);
	answer[n] = '\0';
	assert_non_null(strstr(answer, "HTTP/1.1 503 Service Unavailable\r\n"));
	assert_non_null(strstr(answer, "\r\nRetry-After: 1\r\n"));
	assert_non_null(
		strstr(answer, "\r\n\r\n{\"detail\":\"no room\",\"code\":\"unavailable\",\"request_id\":\"r1\"}"));
	assert_int_equal(recv(pair[1], answer, sizeof answer, 0), 0);
	close(pair[1]);
}

static void
test_a_refusal_is_no_reset(void **state)
{
	static char frames[8192];
	char answer[1024];
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(send(pair[1], frames, sizeof frames, 0), sizeof frames);
	terminal_refuse(pair[0], "r1", "no room");
	assert_true(recv(pair[1], answer, sizeof answer, 0) > 0);
	assert_int_equal(recv(pair[1], answer, sizeof answer, 0), 0);
	close(pair[1]);
}

int
main(void)
{
#define CHANNEL_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		CHANNEL_TEST(test_an_offer_and_its_connection),
		CHANNEL_TEST(test_full_is_an_answer),
		CHANNEL_TEST(test_what_is_no_offer_is_dropped),
		CHANNEL_TEST(test_a_refusal_is_http),
		CHANNEL_TEST(test_a_refusal_is_no_reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
