/* http_rig.c - see http_rig.h. */
/* SPDX-License-Identifier: MIT */
#include "http_rig.h"

#include "base/clock.h"
#include "base/err.h"
#include "http/http_parser.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cmocka.h>
#include <event2/buffer.h>
#include <event2/event.h>

static void
on_gone(void *arg)
{
	struct rig *rig = arg;

	rig->gone++;
	rig->exchange = NULL;
}

static void
on_collected(struct http_exchange *exchange, struct evbuffer *body, void *arg)
{
	((struct rig *)arg)->collected++;
	http_exchange_respond(exchange, 200, "text/plain", body);
}

static void
on_up_data(struct http_exchange *exchange, struct evbuffer *piece, void *arg)
{
	struct rig *rig = arg;

	(void)exchange;
	rig->up_bytes += evbuffer_get_length(piece);
	evbuffer_drain(piece, evbuffer_get_length(piece));
}

static void
on_up_end(struct http_exchange *exchange, void *arg)
{
	struct rig *rig = arg;
	char text[32];
	int len = snprintf(text, sizeof text, "%zu bytes", rig->up_bytes);

	http_exchange_respond_text(exchange, 200, "text/plain", text, (size_t)len);
}

static void
on_hold_data(struct http_exchange *exchange, struct evbuffer *piece, void *arg)
{
	if (((struct rig *)arg)->take)
		on_up_data(exchange, piece, arg);
}

static void
on_echo_data(struct http_exchange *exchange, struct evbuffer *piece, void *arg)
{
	(void)arg;
	http_exchange_send(exchange, piece);
}

static void
on_echo_end(struct http_exchange *exchange, void *arg)
{
	(void)arg;
	http_exchange_end(exchange);
}

static void
on_down_drain(struct http_exchange *exchange, void *arg)
{
	static const char block[16384];
	struct rig *rig = arg;
	struct evbuffer *piece = evbuffer_new();
	size_t queued = 0;

	while (rig->down_left > 0 && queued <= 256 * 1024) {
		size_t n = rig->down_left < sizeof block ? rig->down_left : sizeof block;

		evbuffer_add(piece, block, n);
		queued = http_exchange_send(exchange, piece);
		rig->down_left -= n;
		if (queued > rig->down_queued)
			rig->down_queued = queued;
	}
	evbuffer_free(piece);
	if (rig->down_left == 0) {
		rig->exchange = NULL;
		http_exchange_end(exchange);
	}
}

static void
on_request(struct http_exchange *exchange, void *arg)
{
	struct rig *rig = arg;
	const struct http_head *head = http_exchange_head(exchange);
	const char *path = http_head_path(head);

	rig->requests++;
	http_exchange_on_gone(exchange, on_gone, rig);
	if (strcmp(path, "/body") == 0) {
		http_exchange_collect(exchange, 64, on_collected, rig);
	} else if (strcmp(path, "/wait") == 0) {
		rig->exchange = exchange;
	} else if (strcmp(path, "/up") == 0) {
		http_exchange_stream(exchange, on_up_data, on_up_end, rig);
	} else if (strcmp(path, "/hold") == 0) {
		rig->exchange = exchange;
		http_exchange_stream(exchange, on_hold_data, on_up_end, rig);
	} else if (strcmp(path, "/echo") == 0) {
		http_exchange_stream(exchange, on_echo_data, on_echo_end, rig);
		http_exchange_start(exchange, 200, "text/plain", -1, NULL, NULL);
	} else if (strcmp(path, "/down") == 0) {
		rig->exchange = exchange;
		rig->down_left = strtoul(http_head_query(head), NULL, 10);
		http_exchange_start(exchange, 200, "text/plain", -1, on_down_drain, rig);
		if (rig->patient)
			http_exchange_be_patient(exchange);
		on_down_drain(exchange, rig);
	} else if (strcmp(path, "/other") == 0) {
		rig->on_other(exchange, rig);
	} else {
		http_exchange_add_header(exchange, "X-Test", "a\r\nInjected: b");
		http_exchange_respond_text(exchange, 200, "text/plain", "hello", 5);
	}
}

static void
on_count(int change, void *arg)
{
	((struct rig *)arg)->opened += change;
}

/* An address of the family alone: the kernel picks an abstract name, or a port. */
static void
rig_listen(struct rig *rig)
{
	struct sockaddr_un local = { .sun_family = AF_UNIX };
	struct sockaddr_in loopback = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	void *addr = rig->tcp ? (void *)&loopback : (void *)&local;
	socklen_t len = rig->tcp ? sizeof loopback : sizeof local.sun_family;

	rig->listen_fd = socket(rig->tcp ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(rig->listen_fd, addr, len), 0);
	assert_int_equal(listen(rig->listen_fd, 64), 0);
}

void
rig_start(struct rig *rig)
{
	struct err err;

	signal(SIGPIPE, SIG_IGN);
	rig->base = event_base_new();
	rig_listen(rig);
	if (rig->options.max_header_bytes == 0)
		rig->options.max_header_bytes = 8192;
	if (rig->options.max_connections == 0)
		rig->options.max_connections = 100;
	if (rig->options.header_timeout_ms == 0)
		rig->options.header_timeout_ms = 10000;
	if (rig->options.body_timeout_ms == 0)
		rig->options.body_timeout_ms = 10000;
	if (rig->options.keepalive_timeout_ms == 0)
		rig->options.keepalive_timeout_ms = 10000;
	rig->options.on_request = on_request;
	rig->options.on_count = on_count;
	rig->options.arg = rig;
	assert_int_equal(http_server_create(rig->base, rig->listen_fd, &rig->options, &rig->server, &err), 0);
}

void
rig_stop(struct rig *rig)
{
	http_server_free(rig->server);
	assert_int_equal(rig->opened, 0);
	event_base_free(rig->base);
	close(rig->listen_fd);
}

int
rig_connect(struct rig *rig)
{
	struct sockaddr_storage addr;
	socklen_t len = sizeof addr;
	int fd = socket(rig->tcp ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(getsockname(rig->listen_fd, (struct sockaddr *)&addr, &len), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, len), 0);
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	return fd;
}

void
rig_spin(struct rig *rig)
{
	for (int i = 0; i < 8; i++)
		event_base_loop(rig->base, EVLOOP_NONBLOCK);
}

void
rig_send(struct rig *rig, int fd, const char *text)
{
	size_t len = strlen(text);
	int64_t end = clock_boot_ms() + 20000;

	while (len > 0 && clock_boot_ms() < end) {
		ssize_t n = send(fd, text, len, MSG_NOSIGNAL);

		if (n > 0) {
			text += n;
			len -= (size_t)n;
		} else if (errno != EAGAIN) {
			return;
		}
		event_base_loop(rig->base, EVLOOP_NONBLOCK);
	}
	assert_int_equal(len, 0);
}

bool
rig_read(struct rig *rig, int fd, const char *until)
{
	int64_t end = clock_boot_ms() + 20000;
	struct pollfd wait = { .fd = fd, .events = POLLIN };

	rig->reply_len = 0;
	rig->reply[0] = '\0';
	while (clock_boot_ms() < end) {
		ssize_t n = recv(fd, rig->reply + rig->reply_len, sizeof rig->reply - 1 - rig->reply_len, 0);

		if (n == 0 || (n < 0 && errno != EAGAIN))
			return until == NULL;
		if (n > 0)
			rig->reply_len += (size_t)n;
		rig->reply[rig->reply_len] = '\0';
		if (until != NULL && strstr(rig->reply, until) != NULL)
			return true;
		event_base_loop(rig->base, EVLOOP_NONBLOCK);
		poll(&wait, 1, 1);
	}
	return false;
}

int
rig_once(struct rig *rig, const char *text)
{
	int fd = rig_connect(rig);

	rig_send(rig, fd, text);
	assert_true(rig_read(rig, fd, NULL));
	close(fd);
	rig_spin(rig);
	return rig->reply_len > 12 ? atoi(rig->reply + 9) : 0;
}

bool
rig_wait(struct rig *rig, const int *counter, int value)
{
	int64_t end = clock_boot_ms() + 20000;

	while (*counter < value && clock_boot_ms() < end) {
		event_base_loop(rig->base, EVLOOP_NONBLOCK);
		poll(NULL, 0, 1);
	}
	return *counter >= value;
}

int
rig_count(const struct rig *rig, const char *needle)
{
	int count = 0;

	for (const char *p = rig->reply; (p = strstr(p, needle)) != NULL; p++)
		count++;
	return count;
}
