/*
 * http_server.c - the listener, the table of connections and the one tick that
 * keeps all deadlines.
 */
/* SPDX-License-Identifier: MIT */
#include "http/http_conn.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

#include <event2/event.h>
#include <event2/listener.h>

enum { ACCEPT_PAUSE_MS = 100 };
enum { LOOK_AT_LEAST = 64, LOOK_SHARE = 16 };

void
http_server_enter(struct http_server *server)
{
	server->depth++;
}

void
http_server_leave(struct http_server *server)
{
	if (--server->depth == 0 && server->dead)
		free(server);
}

static void
server_watch_listener(struct http_server *server)
{
	if (server->listener == NULL)
		return;
	if (server->conn_count >= server->options.max_connections)
		evconnlistener_disable(server->listener);
	else if (!event_pending(server->accept_pause, EV_TIMEOUT, NULL))
		evconnlistener_enable(server->listener);
}

void
http_server_count_conn(struct http_server *server, int change)
{
	struct timeval tick = clock_tv(HTTP_TICK_MS);

	server->conn_count += (uint32_t)change;
	if (!server->dead) {
		if (server->conn_count == 0)
			event_del(server->tick);
		else if (change > 0 && server->conn_count == 1)
			event_add(server->tick, &tick);
		server_watch_listener(server);
	}
	if (server->options.on_count != NULL)
		server->options.on_count(change, server->options.arg);
}

const char *
http_server_date(struct http_server *server)
{
	time_t now = time(NULL);
	struct tm tm;

	if (now != server->date_second) {
		server->date_second = now;
		gmtime_r(&now, &tm);
		strftime(server->date, sizeof server->date, "%a, %d %b %Y %H:%M:%S GMT", &tm);
	}
	return server->date;
}

static void
server_on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *addr, int len, void *arg)
{
	struct http_server *server = arg;

	(void)listener;
	(void)len;
	http_server_enter(server);
	if (http_conn_open(server, fd, addr->sa_family != AF_UNIX) < 0 && server->options.on_count != NULL)
		server->options.on_count(0, server->options.arg);
	http_server_leave(server);
}

/* Out of descriptors: the waiting connection would make the loop spin, so look away for a moment. */
static void
server_on_accept_error(struct evconnlistener *listener, void *arg)
{
	struct http_server *server = arg;
	struct timeval pause = clock_tv(ACCEPT_PAUSE_MS);

	evconnlistener_disable(listener);
	event_add(server->accept_pause, &pause);
	if (server->options.on_count != NULL)
		server->options.on_count(0, server->options.arg);
}

static void
server_on_accept_pause(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	server_watch_listener(arg);
}

/*
 * Of a few connections each is looked at in every tick, of thousands each in one of LOOK_SHARE: their deadlines are a
 * little late, and those that only wait cost next to nothing. Looked at ones go to the tail: a callback may close any
 * connection, or all of them.
 */
static void
server_on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct http_server *server = arg;
	int64_t now = clock_boot_ms();
	uint32_t count = server->conn_count;

	(void)fd;
	(void)what;
	http_server_enter(server);
	if (count > LOOK_AT_LEAST && !server->draining)
		count = LOOK_AT_LEAST + (count - LOOK_AT_LEAST) / LOOK_SHARE;
	for (; count > 0 && !TAILQ_EMPTY(&server->conns); count--) {
		struct http_conn *conn = TAILQ_FIRST(&server->conns);

		TAILQ_REMOVE(&server->conns, conn, link);
		TAILQ_INSERT_TAIL(&server->conns, conn, link);
		http_conn_tick(conn, now);
	}
	http_server_leave(server);
}

static void
server_free_events(struct http_server *server)
{
	if (server->listener != NULL)
		evconnlistener_free(server->listener);
	if (server->tick != NULL)
		event_free(server->tick);
	if (server->accept_pause != NULL)
		event_free(server->accept_pause);
	server->listener = NULL;
	server->tick = server->accept_pause = NULL;
}

int
http_server_create(struct event_base *base, int listen_fd, const struct http_server_options *options,
	struct http_server **ret_server, struct err *err)
{
	AUTO_FREE struct http_server *server = alloc_zero(1, sizeof *server);

	server->base = base;
	server->options = *options;
	TAILQ_INIT(&server->conns);
	/* Another process may take the connection that woke this one: accept must not block. */
	if (evutil_make_socket_nonblocking(listen_fd) < 0)
		return err_set_errno(err, errno, "listening socket %d", listen_fd);
	server->tick = event_new(base, -1, EV_PERSIST, server_on_tick, server);
	server->accept_pause = event_new(base, -1, 0, server_on_accept_pause, server);
	server->listener = evconnlistener_new(base, server_on_accept, server, LEV_OPT_CLOSE_ON_EXEC, 0, listen_fd);
	if (server->tick == NULL || server->accept_pause == NULL || server->listener == NULL) {
		server_free_events(server);
		return err_set(err, ERR_INTERNAL, "cannot watch listening socket %d", listen_fd);
	}
	evconnlistener_set_error_cb(server->listener, server_on_accept_error);
	*ret_server = STEAL_PTR(server);
	return 0;
}

void
http_server_drain(struct http_server *server, bool patience)
{
	struct http_conn *conn = TAILQ_FIRST(&server->conns);
	int64_t grace = clock_boot_ms() + HTTP_DRAIN_GRACE_MS;

	if (server->draining)
		return;
	server->draining = true;
	server->patience = patience;
	evconnlistener_free(server->listener);
	server->listener = NULL;
	while (conn != NULL) {
		struct http_conn *next = TAILQ_NEXT(conn, link);

		if (!patience && conn->served && http_conn_is_idle(conn))
			http_conn_close(conn);
		else if (conn->state == HTTP_CONN_HEAD && conn->deadline > grace)
			conn->deadline = grace;
		conn = next;
	}
}

uint32_t
http_server_hears(const struct http_server *server)
{
	const struct http_conn *conn;
	uint32_t count = 0;

	TAILQ_FOREACH(conn, &server->conns, link)
	count += conn->state == HTTP_CONN_HEAD && conn->deadline != 0;
	return count;
}

uint32_t
http_server_connections(const struct http_server *server)
{
	return server->conn_count;
}

uint32_t
http_server_exchanges(const struct http_server *server)
{
	return server->exchange_count;
}

void
http_server_free(struct http_server *server)
{
	if (server == NULL)
		return;
	http_server_enter(server);
	server->dead = true;
	server_free_events(server);
	while (!TAILQ_EMPTY(&server->conns))
		http_conn_close(TAILQ_FIRST(&server->conns));
	http_server_leave(server);
}
