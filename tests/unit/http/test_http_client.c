/* test_http_client.c - calls against a server that is played by hand, byte for byte. */
/* SPDX-License-Identifier: MIT */
#include "http/http_client.h"

#include "base/clock.h"
#include "base/err.h"
#include "http/http_parser.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cmocka.h>
#include <event2/buffer.h>
#include <event2/event.h>

struct rig {
	struct event_base *base;
	struct http_pool *pool;
	char dir[32];
	char path[64];
	char endpoint[80];
	int listen_fd;
	int done;
	int failed;
	int status;
	char body[256];
	struct err why;
	enum http_sent sent;
	struct http_call *other; /* cancelled by on_done_cancel */
	char request[1 << 16]; /* what rig_accept and rig_expect read */
};

static void
on_done(const struct http_head *head, struct evbuffer *body, void *arg)
{
	struct rig *rig = arg;
	ssize_t n = evbuffer_copyout(body, rig->body, sizeof rig->body - 1);

	rig->body[n] = '\0';
	rig->status = http_head_status(head);
	rig->done++;
}

static void
on_failed(const struct err *why, enum http_sent sent, void *arg)
{
	struct rig *rig = arg;

	rig->why = *why;
	rig->sent = sent;
	rig->failed++;
}

static void
rig_listen(struct rig *rig, int backlog)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	strcpy(addr.sun_path, rig->path);
	unlink(rig->path);
	rig->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(rig->listen_fd, (struct sockaddr *)&addr, sizeof addr), 0);
	assert_int_equal(listen(rig->listen_fd, backlog), 0);
}

static int
setup(void **state)
{
	struct rig *rig = calloc(1, sizeof *rig);
	struct err err;

	strcpy(rig->dir, "/tmp/http-client-XXXXXX");
	assert_non_null(mkdtemp(rig->dir));
	snprintf(rig->path, sizeof rig->path, "%s/socket", rig->dir);
	snprintf(rig->endpoint, sizeof rig->endpoint, "unix:%s", rig->path);
	rig->base = event_base_new();
	rig_listen(rig, 16);

	struct http_pool_options options = { rig->endpoint, 2, 10000, 1000 };

	assert_int_equal(http_pool_create(rig->base, &options, &rig->pool, &err), 0);
	*state = rig;
	return 0;
}

static int
teardown(void **state)
{
	struct rig *rig = *state;

	http_pool_free(rig->pool);
	event_base_free(rig->base);
	close(rig->listen_fd);
	unlink(rig->path);
	rmdir(rig->dir);
	free(rig);
	return 0;
}

static struct http_call *
rig_call(struct rig *rig, const char *method, bool idempotent, int64_t timeout_ms)
{
	struct http_call_options options = {
		.method = method,
		.target = "/x?y",
		.idempotent = idempotent,
		.timeout_ms = timeout_ms,
		.max_response_bytes = 200,
		.done = on_done,
		.failed = on_failed,
		.arg = rig,
	};
	struct http_call *call;
	struct err err;
	int before = rig->done + rig->failed;

	assert_int_equal(http_call_start(rig->pool, &options, &call, &err), 0);
	assert_int_equal(rig->done + rig->failed, before);
	return call;
}

static void
rig_turn(struct rig *rig)
{
	event_base_loop(rig->base, EVLOOP_NONBLOCK);
	poll(NULL, 0, 1);
}

/* Reads one request without a body. */
static void
rig_expect(struct rig *rig, int fd)
{
	int64_t end = clock_boot_ms() + 5000;
	size_t len = 0;

	memset(rig->request, 0, sizeof rig->request);
	while (strstr(rig->request, "\r\n\r\n") == NULL && clock_boot_ms() < end) {
		ssize_t n = recv(fd, rig->request + len, sizeof rig->request - 1 - len, MSG_DONTWAIT);

		len += n > 0 ? (size_t)n : 0;
		rig_turn(rig);
	}
	assert_non_null(strstr(rig->request, "\r\n\r\n"));
}

/* The next connection, and one request from it. */
static int
rig_accept(struct rig *rig)
{
	int64_t end = clock_boot_ms() + 5000;
	int fd;

	while ((fd = accept4(rig->listen_fd, NULL, NULL, SOCK_CLOEXEC)) < 0 && clock_boot_ms() < end)
		rig_turn(rig);
	assert_true(fd >= 0);
	rig_expect(rig, fd);
	return fd;
}

static void
rig_answer(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static void
rig_end(struct rig *rig)
{
	int64_t end = clock_boot_ms() + 5000;

	while (rig->done + rig->failed == 0 && clock_boot_ms() < end)
		rig_turn(rig);
	assert_int_equal(rig->done + rig->failed, 1);
	rig->done = rig->failed = 0;
}

#define OK "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

static void
rig_serve(struct rig *rig, int fd, const char *answer, int status)
{
	rig->status = 0;
	rig_answer(fd, answer);
	rig_end(rig);
	assert_int_equal(rig->status, status);
}

static bool
rig_has_connection(struct rig *rig)
{
	struct pollfd wait = { .fd = rig->listen_fd, .events = POLLIN };

	for (int i = 0; i < 10; i++)
		rig_turn(rig);
	return poll(&wait, 1, 0) == 1;
}

static void
test_connections_are_reused(void **state)
{
	struct rig *rig = *state;

	rig_call(rig, "GET", true, 0);

	int fd = rig_accept(rig);

	assert_int_equal(strncmp(rig->request, "GET /x?y HTTP/1.1\r\nHost: localhost\r\n", 36), 0);
	rig_serve(rig, fd, OK, 200);
	assert_string_equal(rig->body, "ok");
	rig_call(rig, "POST", false, 0);
	rig_expect(rig, fd);
	assert_non_null(strstr(rig->request, "Content-Length: 0\r\n"));
	rig_serve(rig, fd, "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n", 201);
	assert_int_equal(http_pool_calls(rig->pool), 0);
	close(fd);
}

static void
test_every_kind_of_body_is_read(void **state)
{
	struct rig *rig = *state;
	int fd;

	rig_call(rig, "GET", true, 0);
	fd = rig_accept(rig);
	rig_serve(rig, fd,
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nA: b\r\n\r\n"
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
		200);
	assert_string_equal(rig->body, "abc");
	rig_call(rig, "HEAD", true, 0);
	rig_expect(rig, fd);
	rig_serve(rig, fd, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", 200);
	assert_string_equal(rig->body, "");
	rig_call(rig, "GET", true, 0);
	rig_expect(rig, fd);
	rig_serve(rig, fd, "HTTP/1.1 304 Not Modified\r\nContent-Length: 1000\r\n\r\n", 304);
	rig_call(rig, "GET", true, 0);
	rig_expect(rig, fd);
	rig_answer(fd, "HTTP/1.1 200 OK\r\n\r\nto the ");
	rig_turn(rig);
	rig_answer(fd, "end");
	close(fd);
	rig_end(rig);
	assert_string_equal(rig->body, "to the end");
}

static void
test_cut_answers_fail_as_maybe_sent(void **state)
{
	static const char *const answers[] = {
		"",
		"HTTP/1.1 200 OK\r\nConte",
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhell\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
	};
	struct rig *rig = *state;

	for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
		rig_call(rig, "GET", true, 0);

		int fd = rig_accept(rig);

		rig_answer(fd, answers[i]);
		close(fd);
		rig->sent = HTTP_NOT_SENT;
		rig_end(rig);
		assert_int_equal(rig->sent, HTTP_MAYBE_SENT);
		assert_int_equal(rig->why.code, ERR_UNAVAILABLE);
	}
	assert_false(rig_has_connection(rig));
}

static void
test_invalid_answers_fail(void **state)
{
	static const char *const answers[] = {
		"SSH-2.0-x\r\n\r\n",
		"HTTP/1.1 200 OK\nContent-Length: 0\n\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
		"HTTP/1.1 101 Switching Protocols\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
	};
	struct rig *rig = *state;

	for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
		rig_call(rig, "GET", true, 0);

		int fd = rig_accept(rig);

		rig_serve(rig, fd, answers[i], 0);
		assert_int_equal(rig->why.code, ERR_UNAVAILABLE);
		close(fd);
	}
}

static void
test_no_listener_is_not_sent(void **state)
{
	struct rig *rig = *state;

	close(rig->listen_fd);
	rig->sent = HTTP_MAYBE_SENT;
	rig_call(rig, "POST", false, 0);
	rig_end(rig);
	assert_int_equal(rig->sent, HTTP_NOT_SENT);
	assert_int_equal(rig->why.code, ERR_UNAVAILABLE);
	rig_listen(rig, 1);
}

static void
test_closed_idle_connection_is_noticed_before_use(void **state)
{
	struct rig *rig = *state;

	rig_call(rig, "GET", true, 0);

	int fd = rig_accept(rig);

	rig_serve(rig, fd, OK, 200);
	/* The loop has no chance to see it: the call itself must look. */
	close(fd);
	rig_call(rig, "POST", false, 0);
	fd = rig_accept(rig);
	rig_serve(rig, fd, OK, 200);
	close(fd);
}

static void
test_connection_with_unasked_bytes_is_not_used(void **state)
{
	struct rig *rig = *state;

	rig_call(rig, "GET", true, 0);

	int fd = rig_accept(rig);

	rig_serve(rig, fd, OK, 200);
	rig_answer(fd, OK);
	rig_call(rig, "POST", false, 0);

	int fresh = rig_accept(rig);

	rig_serve(rig, fresh, OK, 200);
	close(fresh);
	close(fd);
}

static void
test_post_is_never_sent_twice(void **state)
{
	struct rig *rig = *state;

	rig_call(rig, "GET", true, 0);

	int fd = rig_accept(rig);

	rig_serve(rig, fd, OK, 200);
	rig_call(rig, "POST", false, 0);
	rig_expect(rig, fd);
	close(fd);
	rig->sent = HTTP_NOT_SENT;
	rig_end(rig);
	assert_int_equal(rig->sent, HTTP_MAYBE_SENT);
	assert_false(rig_has_connection(rig));
}

static void
test_idempotent_call_is_sent_again_once(void **state)
{
	struct rig *rig = *state;

	rig_call(rig, "GET", true, 0);

	int fd = rig_accept(rig);

	rig_serve(rig, fd, OK, 200);
	rig_call(rig, "PUT", true, 0);
	rig_expect(rig, fd);
	close(fd);
	fd = rig_accept(rig);
	assert_int_equal(strncmp(rig->request, "PUT /x?y ", 9), 0);
	close(fd);
	rig->sent = HTTP_NOT_SENT;
	rig_end(rig);
	assert_int_equal(rig->sent, HTTP_MAYBE_SENT);
	assert_false(rig_has_connection(rig));
}

static void
test_timeout_ends_a_call(void **state)
{
	struct rig *rig = *state;

	rig_call(rig, "GET", true, 30);

	int fd = rig_accept(rig);

	rig_end(rig);
	assert_int_equal(rig->why.code, ERR_TIMEOUT);
	assert_int_equal(rig->sent, HTTP_MAYBE_SENT);
	close(fd);
}

/* Fills the backlog of a listener with backlog 0, then frees it. */
static void
test_full_backlog_is_waited_for(void **state)
{
	struct rig *rig = *state;
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fillers[4];
	int count = 0;

	close(rig->listen_fd);
	rig_listen(rig, 0);
	strcpy(addr.sun_path, rig->path);
	while (count < 4) {
		fillers[count] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (connect(fillers[count++], (struct sockaddr *)&addr, sizeof addr) < 0)
			break;
	}
	assert_int_equal(errno, EAGAIN);
	rig_call(rig, "POST", false, 20);
	rig->sent = HTTP_MAYBE_SENT;
	rig_end(rig);
	assert_int_equal(rig->sent, HTTP_NOT_SENT);
	assert_int_equal(rig->why.code, ERR_TIMEOUT);
	rig_call(rig, "POST", false, 0);
	rig_turn(rig);
	for (int i = 0; i < count - 1; i++)
		close(accept(rig->listen_fd, NULL, NULL));

	int fd = rig_accept(rig);

	rig_serve(rig, fd, OK, 200);
	close(fd);
	for (int i = 0; i < count; i++)
		close(fillers[i]);
}

static void
test_cancel_closes_the_connection(void **state)
{
	struct rig *rig = *state;
	struct http_call *call = rig_call(rig, "GET", true, 0);
	int fd = rig_accept(rig);
	char byte;

	http_call_cancel(call);
	for (int i = 0; i < 5; i++)
		rig_turn(rig);
	assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), 0);
	assert_int_equal(rig->done + rig->failed, 0);
	http_call_cancel(rig_call(rig, "GET", true, 0));
	close(fd);
}

static void
on_done_cancel(const struct http_head *head, struct evbuffer *body, void *arg)
{
	struct rig *rig = arg;

	on_done(head, body, arg);
	http_call_cancel(rig->other);
	rig->other = rig_call(rig, "GET", true, 0);
	http_pool_free(rig->pool);
	rig->pool = NULL;
}

static void
test_callbacks_may_start_cancel_and_free(void **state)
{
	struct rig *rig = *state;
	struct http_call_options options = {
		.method = "GET", .target = "/", .done = on_done_cancel, .failed = on_failed, .arg = rig
	};
	struct http_call *call;
	struct err err;

	rig->other = rig_call(rig, "GET", true, 0);

	int other_fd = rig_accept(rig);

	assert_int_equal(http_call_start(rig->pool, &options, &call, &err), 0);

	int fd = rig_accept(rig);

	rig_answer(fd, OK);
	while (rig->done == 0)
		rig_turn(rig);
	/* What was started inside ended with the pool. */
	assert_int_equal(rig->failed, 1);
	assert_int_equal(rig->why.code, ERR_UNAVAILABLE);
	close(fd);
	close(other_fd);
}

static void
test_answer_over_the_limit_fails(void **state)
{
	struct rig *rig = *state;
	char answer[600] = "HTTP/1.1 200 OK\r\nContent-Length: 201\r\n\r\n";

	memset(answer + strlen(answer), 'x', 201);
	rig_call(rig, "GET", true, 0);

	int fd = rig_accept(rig);

	rig_serve(rig, fd, answer, 0);
	assert_int_equal(rig->why.code, ERR_TOO_LARGE);
	close(fd);
}

static void
test_answer_before_the_whole_request_counts(void **state)
{
	static const char block[64 * 65536];
	struct rig *rig = *state;
	struct http_call_options options = { .method = "POST",
		.target = "/",
		.body = block,
		.body_len = sizeof block,
		.done = on_done,
		.failed = on_failed,
		.arg = rig };
	struct http_call *call;
	struct err err;

	assert_int_equal(http_call_start(rig->pool, &options, &call, &err), 0);

	int fd = rig_accept(rig);

	rig_serve(rig, fd, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno", 413);
	close(fd);
	/* Half a request is out there: never reused. */
	rig_call(rig, "GET", true, 0);
	fd = rig_accept(rig);
	rig_serve(rig, fd, OK, 200);
	close(fd);
}

static void
test_idle_connections_are_bounded_and_expire(void **state)
{
	struct rig *rig = *state;
	struct http_pool_options options = { rig->endpoint, 1, 50, 1000 };
	struct err err;
	int fds[2];
	char byte;

	http_pool_free(rig->pool);
	assert_int_equal(http_pool_create(rig->base, &options, &rig->pool, &err), 0);
	for (int i = 0; i < 2; i++) {
		rig_call(rig, "GET", true, 0);
		fds[i] = rig_accept(rig);
	}
	for (int i = 0; i < 2; i++)
		rig_serve(rig, fds[i], OK, 200);
	for (int i = 0; i < 5; i++)
		rig_turn(rig);
	assert_int_equal(recv(fds[0], &byte, 1, MSG_DONTWAIT), 0);
	assert_int_equal(recv(fds[1], &byte, 1, MSG_DONTWAIT), -1);
	for (int64_t end = clock_boot_ms() + 5000; clock_boot_ms() < end;) {
		rig_turn(rig);
		if (recv(fds[1], &byte, 1, MSG_DONTWAIT) == 0)
			break;
	}
	assert_int_equal(recv(fds[1], &byte, 1, MSG_DONTWAIT), 0);
	close(fds[0]);
	close(fds[1]);
}

static void
test_what_would_split_a_request_is_refused(void **state)
{
	static const char *const headers[][3] = {
		{ "A", "b\r\nC: d", NULL },
		{ "A b", "c", NULL },
		{ "", "c", NULL },
	};
	struct rig *rig = *state;
	struct http_call_options options = {
		.method = "GET", .target = "/a b", .done = on_done, .failed = on_failed
	};
	struct http_call *call;
	struct err err;

	assert_int_equal(http_call_start(rig->pool, &options, &call, &err), -1);
	options.target = "x";
	assert_int_equal(http_call_start(rig->pool, &options, &call, &err), -1);
	options.target = "/";
	for (size_t i = 0; i < 3; i++) {
		options.headers = headers[i];
		assert_int_equal(http_call_start(rig->pool, &options, &call, &err), -1);
		assert_int_equal(err.code, ERR_INVALID);
	}
}

static void
test_endpoints_are_checked(void **state)
{
	static const struct {
		const char *endpoint;
		int rc;
	} cases[] = {
		{ "tcp:127.0.0.1:80", 0 },
		{ "tcp:[::1]:65535", 0 },
		{ "unix:/x", 0 },
		{ "unix:", -1 },
		{ "tcp:localhost:80", -1 },
		{ "tcp:127.0.0.1", -1 },
		{ "tcp:127.0.0.1:", -1 },
		{ "tcp:127.0.0.1:0", -1 },
		{ "tcp:127.0.0.1:65536", -1 },
		{ "tcp:127.0.0.1:80x", -1 },
		{ "tcp:::1:80", -1 },
		{ "tcp:[::1:80", -1 },
		{ "http://127.0.0.1", -1 },
	};
	struct rig *rig = *state;

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct http_pool_options options = { .endpoint = cases[i].endpoint };
		struct http_pool *pool = NULL;
		struct err err;

		assert_int_equal(http_pool_create(rig->base, &options, &pool, &err), cases[i].rc);
		http_pool_free(pool);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_connections_are_reused),
		TEST(test_every_kind_of_body_is_read),
		TEST(test_cut_answers_fail_as_maybe_sent),
		TEST(test_invalid_answers_fail),
		TEST(test_no_listener_is_not_sent),
		TEST(test_closed_idle_connection_is_noticed_before_use),
		TEST(test_connection_with_unasked_bytes_is_not_used),
		TEST(test_post_is_never_sent_twice),
		TEST(test_idempotent_call_is_sent_again_once),
		TEST(test_timeout_ends_a_call),
		TEST(test_full_backlog_is_waited_for),
		TEST(test_cancel_closes_the_connection),
		TEST(test_callbacks_may_start_cancel_and_free),
		TEST(test_answer_over_the_limit_fails),
		TEST(test_answer_before_the_whole_request_counts),
		TEST(test_idle_connections_are_bounded_and_expire),
		TEST(test_what_would_split_a_request_is_refused),
		TEST(test_endpoints_are_checked),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
