/* kube_rig.c - HTTP/1.1 as far as a client of ours speaks it, and loops that end. */
/* SPDX-License-Identifier: MIT */
#include "kube_rig.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "kube/kube_config_impl.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include <cmocka.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>

enum { PATIENCE_MS = 60000, SLICE_MS = 20 };

struct connection {
	LIST_ENTRY(connection) entry;
	struct rig *rig;
	struct bufferevent *bev;
	uint32_t number;
	bool closing;
};

struct rig_impl {
	struct evconnlistener *listener;
	LIST_HEAD(, connection) connections;
};

static void
connection_free(struct connection *connection)
{
	connection->rig->open--;
	LIST_REMOVE(connection, entry);
	bufferevent_free(connection->bev);
	free(connection);
}

static struct connection *
connection_of(struct bufferevent *bev)
{
	void *arg;

	bufferevent_getcb(bev, NULL, NULL, NULL, &arg);
	return arg;
}

static void
header_copy(const char *head, const char *name, char *buf, size_t size)
{
	const char *at = strcasestr(head, name);

	buf[0] = '\0';
	if (at != NULL)
		snprintf(buf, size, "%.*s", (int)strcspn(at + strlen(name), "\r"), at + strlen(name));
}

/* True: one was whole, and is told. */
static bool
take_request(struct connection *connection)
{
	struct rig *rig = connection->rig;
	struct evbuffer *in = bufferevent_get_input(connection->bev);
	struct evbuffer_ptr end = evbuffer_search(in, "\r\n\r\n", 4, NULL);
	struct rig_request request = { .rig = rig, .bev = connection->bev, .connection = connection->number };
	AUTO_FREE char *head = NULL;
	char length[32];
	size_t body;

	if (end.pos < 0 || connection->closing)
		return false;
	head = alloc_zero(1, (size_t)end.pos + 1);
	evbuffer_copyout(in, head, (size_t)end.pos);
	header_copy(head, "\r\nContent-Length: ", length, sizeof length);
	body = strtoul(length, NULL, 10);
	if (evbuffer_get_length(in) < (size_t)end.pos + 4 + body)
		return false;
	assert_true(body < sizeof request.body);
	evbuffer_drain(in, (size_t)end.pos + 4);
	evbuffer_remove(in, request.body, body);
	snprintf(request.line, sizeof request.line, "%.*s", (int)(strstr(head, " HTTP/1.1") - head), head);
	header_copy(head, "\r\nAuthorization: Bearer ", request.token, sizeof request.token);
	request.at_ms = clock_boot_ms();
	request.number = rig->requests++;
	if (request.number < RIG_LOG_MAX) {
		strcpy(rig->log[request.number].line, request.line);
		strcpy(rig->log[request.number].token, request.token);
		rig->log[request.number].at_ms = request.at_ms;
	}
	rig->handle(&request, rig->arg);
	return true;
}

static bool
is_open(const struct rig *rig, const struct connection *connection)
{
	const struct connection *at;

	LIST_FOREACH(at, &rig->impl->connections, entry)
	{
		if (at == connection)
			return true;
	}
	return false;
}

/* Whoever takes a request may close the connection. */
static void
on_input(struct bufferevent *bev, void *arg)
{
	struct connection *connection = arg;
	const struct rig *rig = connection->rig;

	(void)bev;
	while (is_open(rig, connection) && take_request(connection))
		;
}

static void
on_output(struct bufferevent *bev, void *arg)
{
	struct connection *connection = arg;

	if (connection->closing && evbuffer_get_length(bufferevent_get_output(bev)) == 0)
		connection_free(connection);
}

static void
on_event(struct bufferevent *bev, short what, void *arg)
{
	(void)bev;
	if ((what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)) != 0)
		connection_free(arg);
}

static void
on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *address, int size, void *arg)
{
	struct rig *rig = arg;
	struct connection *connection = alloc_zero(1, sizeof *connection);

	(void)listener;
	(void)address;
	(void)size;
	connection->rig = rig;
	connection->number = rig->connections++;
	connection->bev = must_alloc(bufferevent_socket_new(rig->base, fd, BEV_OPT_CLOSE_ON_FREE));
	rig->open++;
	LIST_INSERT_HEAD(&rig->impl->connections, connection, entry);
	bufferevent_setcb(connection->bev, on_input, on_output, on_event, connection);
	bufferevent_enable(connection->bev, EV_READ | EV_WRITE);
}

void
rig_start(struct rig *rig, rig_f *handle, void *arg)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof address;

	memset(rig, 0, sizeof *rig);
	rig->handle = handle;
	rig->arg = arg;
	strcpy(rig->dir, "/tmp/orchard-test-kube-XXXXXX");
	assert_non_null(mkdtemp(rig->dir));
	rig->base = must_alloc(event_base_new());
	rig->impl = alloc_zero(1, sizeof *rig->impl);
	rig->impl->listener = evconnlistener_new_bind(rig->base, on_accept, rig,
		LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 64, (struct sockaddr *)&address, sizeof address);
	assert_non_null(rig->impl->listener);
	assert_int_equal(
		getsockname(evconnlistener_get_fd(rig->impl->listener), (struct sockaddr *)&address, &size), 0);
	rig->port = ntohs(address.sin_port);
}

void
rig_deafen(struct rig *rig)
{
	if (rig->impl->listener != NULL)
		evconnlistener_free(STEAL_PTR(rig->impl->listener));
}

void
rig_stop(struct rig *rig)
{
	struct connection *connection;
	struct err err;

	while ((connection = LIST_FIRST(&rig->impl->connections)) != NULL)
		connection_free(connection);
	rig_deafen(rig);
	event_base_free(rig->base);
	free(rig->impl);
	if (file_remove_tree_at(AT_FDCWD, rig->dir, &err) != 0)
		fail_msg("%s", err.msg);
}

void
rig_answer(const struct rig_request *request, int status, const char *headers, const char *body)
{
	evbuffer_add_printf(bufferevent_get_output(request->bev),
		"HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n%s\r\n%s", status,
		strlen(body), headers, body);
}

void
rig_refuse(const struct rig_request *request, int status, const char *reason, const char *headers)
{
	AUTO_FREE char *body = alloc_format(
		"{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"words of %s\","
		"\"reason\":\"%s\",\"code\":%d}",
		reason, reason, status);

	rig_answer(request, status, headers, body);
}

void
rig_stream(const struct rig_request *request)
{
	rig_send(request->bev, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n");
}

void
rig_chunks(const struct rig_request *request)
{
	rig_send(request->bev, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
}

void
rig_send(struct bufferevent *bev, const char *text)
{
	bufferevent_write(bev, text, strlen(text));
}

void
rig_chunk(struct bufferevent *bev, const char *text)
{
	evbuffer_add_printf(bufferevent_get_output(bev), "%zx\r\n%s\r\n", strlen(text), text);
}

void
rig_close(struct bufferevent *bev)
{
	struct connection *connection = connection_of(bev);

	connection->closing = true;
	if (evbuffer_get_length(bufferevent_get_output(bev)) == 0)
		connection_free(connection);
}

void
rig_reset(struct bufferevent *bev)
{
	struct linger now = { .l_onoff = 1 };

	setsockopt(bufferevent_getfd(bev), SOL_SOCKET, SO_LINGER, &now, sizeof now);
	connection_free(connection_of(bev));
}

void
rig_turn(struct rig *rig, int64_t ms)
{
	int64_t end = clock_boot_ms() + ms;

	for (int64_t now = clock_boot_ms(); now < end; now = clock_boot_ms()) {
		struct timeval slice = clock_tv(end - now < SLICE_MS ? end - now : SLICE_MS);

		event_base_loopexit(rig->base, &slice);
		event_base_dispatch(rig->base);
	}
}

static void
until(struct rig *rig, bool (*reached)(const void *what, uint32_t at_least), const void *what, uint32_t at_least)
{
	int64_t end = clock_boot_ms() + PATIENCE_MS;
	struct timeval slice = clock_tv(SLICE_MS);

	while (!reached(what, at_least)) {
		if (clock_boot_ms() > end)
			fail_msg("it did not come");
		/* The timer keeps a loop from ending that has nothing else to do. */
		event_base_loopexit(rig->base, &slice);
		event_base_loop(rig->base, EVLOOP_ONCE);
	}
}

static bool
flag_reached(const void *what, uint32_t at_least)
{
	(void)at_least;
	return *(const bool *)what;
}

static bool
count_reached(const void *what, uint32_t at_least)
{
	return *(const uint32_t *)what >= at_least;
}

void
rig_until(struct rig *rig, const bool *flag)
{
	until(rig, flag_reached, flag, 0);
}

void
rig_until_count(struct rig *rig, const uint32_t *count, uint32_t at_least)
{
	until(rig, count_reached, count, at_least);
}

const char *
rig_file(struct rig *rig, const char *name, const char *text)
{
	static char path[256];
	struct err err;

	snprintf(path, sizeof path, "%s/%s", rig->dir, name);
	if (file_write_atomic_at(AT_FDCWD, path, 0700, text, strlen(text), false, &err) != 0)
		fail_msg("%s", err.msg);
	return path;
}

struct kube_config *
rig_config_text(struct rig *rig, const char *text)
{
	struct kube_config *config;
	struct err err;

	if (kube_config_file(rig_file(rig, "kubeconfig", text), "", &config, &err) != 0)
		fail_msg("%s", err.msg);
	return config;
}

struct kube_config *
rig_config(struct rig *rig, const char *user)
{
	AUTO_FREE char *text = alloc_format("current-context: c\n"
					    "contexts: [{name: c, context: {cluster: x, user: %s}}]\n"
					    "clusters: [{name: x, cluster: {server: 'http://127.0.0.1:%u'}}]\n"
					    "users:\n- name: u\n  user: {%s}\n",
		user != NULL ? "u" : "''", rig->port, user != NULL ? user : "");

	return rig_config_text(rig, text);
}

struct kube_config *
rig_config_tls(struct rig *rig, uint16_t port, const char *cluster, const char *user)
{
	AUTO_FREE char *text = alloc_format("current-context: c\n"
					    "contexts: [{name: c, context: {cluster: x, user: u}}]\n"
					    "clusters: [{name: x, cluster: {server: 'https://127.0.0.1:%u'%s}}]\n"
					    "users: [{name: u, user: {token: sesame%s}}]\n",
		port, cluster, user);

	return rig_config_text(rig, text);
}
