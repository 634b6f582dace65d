/*
 * http_conn.c - one connection: its callbacks, its states, its end.
 *
 * Reading stays on while a request is worked at, so a client that leaves is seen
 * at once; bounded by the read mark. When input stands at that mark nothing is
 * read any more, and the tick asks whether the client has left: libevent tells a
 * reset as readable and writable, so a watch for EV_CLOSED alone would not hear of
 * it and spin.
 */
/* SPDX-License-Identifier: MIT */
#include "http/http_conn.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "http/http_read.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

struct evbuffer *
http_conn_output(const struct http_conn *conn)
{
	return bufferevent_get_output(conn->bev);
}

struct evbuffer *
http_conn_input(const struct http_conn *conn)
{
	return conn->in;
}

void
http_conn_watch_output(struct http_conn *conn, size_t low)
{
	bufferevent_setwatermark(conn->bev, EV_WRITE, low, 0);
}

size_t
http_conn_unsent(const struct http_conn *conn)
{
	return evbuffer_get_length(bufferevent_get_output(conn->bev));
}

static void
conn_enter(struct http_conn *conn)
{
	http_server_enter(conn->server);
	conn->depth++;
}

static void
conn_leave(struct http_conn *conn)
{
	struct http_server *server = conn->server;

	if (--conn->depth == 0 && conn->dead)
		free(conn);
	http_server_leave(server);
}

static struct http_exchange *
conn_take_exchange(struct http_conn *conn)
{
	struct http_exchange *exchange = conn->exchange;

	conn->exchange = NULL;
	if (exchange != NULL)
		conn->server->exchange_count--;
	return exchange;
}

static void
exchange_gone(struct http_exchange *exchange)
{
	if (exchange == NULL)
		return;

	void (*on_gone)(void *) = exchange->on_gone;
	void *arg = exchange->gone_arg;

	http_exchange_free(exchange);
	if (on_gone != NULL)
		on_gone(arg);
}

/* The connection is over for the server. Callers hold the server by http_server_enter. */
static void
conn_end(struct http_conn *conn)
{
	struct http_server *server = conn->server;

	conn->dead = true;
	TAILQ_REMOVE(&server->conns, conn, link);
	event_free(conn->readable);
	if (conn->in != NULL)
		evbuffer_free(conn->in);
	bufferevent_free(conn->bev);
	if (conn->depth == 0)
		free(conn);
	http_server_count_conn(server, -1);
}

void
http_conn_close(struct http_conn *conn)
{
	struct http_server *server = conn->server;

	if (conn->dead)
		return;
	http_server_enter(server);

	struct http_exchange *exchange = conn_take_exchange(conn);

	conn_end(conn);
	exchange_gone(exchange);
	http_server_leave(server);
}

int
http_conn_release(struct http_conn *conn, struct evbuffer **ret_read)
{
	struct http_server *server = conn->server;
	int fd = bufferevent_getfd(conn->bev);

	http_server_enter(server);
	conn_take_exchange(conn);
	*ret_read = STEAL_PTR(conn->in);
	/* The bufferevent closes what it still has when it is freed, and that is from the loop. */
	bufferevent_setfd(conn->bev, -1);
	conn_end(conn);
	http_server_leave(server);
	return fd;
}

void
http_conn_break(struct http_conn *conn)
{
	struct linger reset = { .l_onoff = 1, .l_linger = 0 };

	setsockopt(bufferevent_getfd(conn->bev), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
	http_conn_close(conn);
}

bool
http_conn_is_idle(const struct http_conn *conn)
{
	char byte;

	return conn->state == HTTP_CONN_HEAD && !conn->head_started && http_conn_unsent(conn) == 0 &&
		evbuffer_get_length(conn->in) == 0 &&
		recv(bufferevent_getfd(conn->bev), &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0;
}

void
http_conn_kick(struct http_conn *conn)
{
	if (conn->depth == 0)
		event_active(conn->readable, EV_TIMEOUT, 0);
}

/* Input at its mark: nothing more is read until it falls below. */
static void
conn_watch_input(struct http_conn *conn)
{
	bool stopped = conn->state != HTTP_CONN_CLOSING && evbuffer_get_length(conn->in) >= HTTP_READ_HIGH;

	if (stopped == conn->stopped)
		return;
	conn->stopped = stopped;
	if (stopped)
		event_del(conn->readable);
	else if (!conn->eof)
		event_add(conn->readable, NULL);
}

/* Everything is flushed: tell the client, and read what it still sends so that no reset eats the answer. */
static void
conn_shut(struct http_conn *conn)
{
	struct evbuffer *in = conn->in;

	if (conn->eof) {
		http_conn_close(conn);
		return;
	}
	conn->shut = true;
	conn->deadline = clock_boot_ms() + HTTP_LINGER_MS;
	shutdown(bufferevent_getfd(conn->bev), SHUT_WR);
	evbuffer_drain(in, evbuffer_get_length(in));
	conn_watch_input(conn);
}

static void
conn_start_closing(struct http_conn *conn)
{
	struct evbuffer *in = conn->in;

	conn->state = HTTP_CONN_CLOSING;
	conn->deadline = 0;
	evbuffer_drain(in, evbuffer_get_length(in));
	conn_watch_input(conn);
	if (http_conn_unsent(conn) == 0)
		conn_shut(conn);
}

/* For what comes next of the client. */
static int64_t
conn_due(const struct http_conn *conn, int64_t patience_ms)
{
	if (conn->server->draining && patience_ms > HTTP_DRAIN_GRACE_MS)
		patience_ms = HTTP_DRAIN_GRACE_MS;
	return clock_boot_ms() + patience_ms;
}

void
http_conn_answered(struct http_conn *conn)
{
	struct http_exchange *exchange = conn_take_exchange(conn);
	bool leaves = conn->server->draining && !conn->server->patience;
	bool body_ended = exchange->body_ended;

	http_exchange_free(exchange);
	http_conn_watch_output(conn, 0);
	if (conn->close_after || leaves || !body_ended || (conn->eof && evbuffer_get_length(conn->in) == 0)) {
		conn_start_closing(conn);
		return;
	}
	conn->state = HTTP_CONN_HEAD;
	conn->deadline = conn_due(conn, conn->server->options.keepalive_timeout_ms);
	conn_watch_input(conn);
	if (evbuffer_get_length(conn->in) > 0)
		http_conn_kick(conn);
}

void
http_conn_refused(struct http_conn *conn)
{
	struct http_exchange *exchange = conn_take_exchange(conn);

	conn_start_closing(conn);
	exchange_gone(exchange);
}

/* False: more bytes are needed, or the client has to read first. */
static bool
conn_step_head(struct http_conn *conn, struct evbuffer *in)
{
	struct http_server *server = conn->server;
	struct http_head *head;

	if (!conn->head_started) {
		if (evbuffer_get_length(in) == 0)
			return false;
		if (http_conn_unsent(conn) > HTTP_OUT_HIGH) {
			conn->deadline = 0;
			return false;
		}
		conn->head_started = true;
		conn->deadline = conn_due(conn, server->options.header_timeout_ms);
	}

	int rc = http_parser_head(&conn->parser, in, &head);

	if (rc < 0)
		http_conn_refuse(conn, conn->parser.status, conn->parser.detail);
	if (rc <= 0)
		return false;
	conn->head_started = false;
	conn->served = true;
	conn->deadline = 0;
	conn->state = HTTP_CONN_BODY;
	conn->exchange = http_exchange_create(conn, head);
	server->exchange_count++;
	server->options.on_request(conn->exchange, server->options.arg);
	return true;
}

static bool
conn_step(struct http_conn *conn)
{
	struct evbuffer *in = conn->in;

	switch (conn->state) {
	case HTTP_CONN_HEAD:
		return conn_step_head(conn, in);
	case HTTP_CONN_BODY:
		return http_exchange_step(conn->exchange, in);
	case HTTP_CONN_BUSY:
		return false;
	default:
		evbuffer_drain(in, evbuffer_get_length(in));
		return false;
	}
}

/* Nothing comes any more: what is begun but not whole is over, and so is a connection that owes nothing. */
static void
conn_settle_eof(struct http_conn *conn)
{
	bool empty = evbuffer_get_length(conn->in) == 0;

	if (http_conn_lacks_body(conn))
		http_conn_close(conn);
	else if (conn->state == HTTP_CONN_HEAD && (empty || conn->head_started))
		conn_start_closing(conn);
	else if (conn->state == HTTP_CONN_CLOSING && http_conn_unsent(conn) == 0)
		http_conn_close(conn);
}

/* Callers hold the connection by conn_enter. */
static void
conn_process(struct http_conn *conn)
{
	while (!conn->dead && conn_step(conn)) {
	}
	if (!conn->dead && conn->eof)
		conn_settle_eof(conn);
	if (!conn->dead)
		conn_watch_input(conn);
}

/* The client sends no more, or the connection is broken. */
static void
conn_on_end(struct http_conn *conn, bool broken)
{
	conn->eof = true;
	conn->left_deadline = clock_boot_ms() + conn->server->options.half_closed_ms;
	event_del(conn->readable);
	if (broken)
		http_conn_close(conn);
	else if (http_conn_may_be_half_closed(conn))
		conn_process(conn);
	else if (conn->exchange != NULL || http_conn_unsent(conn) == 0)
		http_conn_close(conn);
	else
		conn_start_closing(conn);
}

/* EV_TIMEOUT: only to look at the input again (http_conn_kick). */
static void
conn_on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct http_conn *conn = arg;
	ssize_t n = 1;

	conn_enter(conn);
	if ((what & EV_READ) != 0)
		n = http_read(fd, conn->in, HTTP_PIECE);
	if (n > 0)
		conn_process(conn);
	else if (n == 0 || errno != EAGAIN)
		conn_on_end(conn, n < 0);
	conn_leave(conn);
}

static void
conn_on_write(struct bufferevent *bev, void *arg)
{
	struct http_conn *conn = arg;
	struct http_exchange *exchange = conn->exchange;
	bool empty = evbuffer_get_length(bufferevent_get_output(bev)) == 0;

	conn_enter(conn);
	if (empty)
		conn->out_deadline = 0;
	if (conn->eof)
		conn->left_deadline = clock_boot_ms() + conn->server->options.half_closed_ms;
	if (conn->state == HTTP_CONN_CLOSING) {
		if (empty && !conn->shut)
			conn_shut(conn);
	} else if (exchange != NULL && exchange->throttled) {
		exchange->throttled = false;
		exchange->on_drain(exchange, exchange->drain_arg);
	} else if (conn->state == HTTP_CONN_HEAD && conn->served && !conn->head_started && empty) {
		conn->deadline = conn_due(conn, conn->server->options.keepalive_timeout_ms);
	}
	if (!conn->dead)
		conn_process(conn);
	conn_leave(conn);
}

/* Of writing: reading is not the bufferevent's. */
static void
conn_on_event(struct bufferevent *bev, short what, void *arg)
{
	struct http_conn *conn = arg;

	(void)bev;
	conn_enter(conn);
	conn_on_end(conn, (what & BEV_EVENT_ERROR) != 0);
	conn_leave(conn);
}

static void
conn_on_output(struct evbuffer *out, const struct evbuffer_cb_info *info, void *arg)
{
	struct http_conn *conn = arg;

	(void)out;
	conn->out_sent += info->n_deleted;
}

int
http_conn_open(struct http_server *server, int fd, bool tcp)
{
	struct http_conn *conn = calloc(1, sizeof *conn);
	int one = 1;

	if (conn == NULL)
		abort();
	if (tcp)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	conn->bev = bufferevent_socket_new(server->base, fd, BEV_OPT_CLOSE_ON_FREE);
	if (conn->bev == NULL) {
		free(conn);
		close(fd);
		return -1;
	}
	conn->in = evbuffer_new();
	conn->readable = event_new(server->base, fd, EV_READ | EV_PERSIST, conn_on_readable, conn);
	if (conn->in == NULL || conn->readable == NULL)
		abort();
	conn->server = server;
	conn->deadline = clock_boot_ms() + server->options.header_timeout_ms;
	http_parser_init(&conn->parser, HTTP_SIDE_REQUEST, server->options.max_header_bytes);
	TAILQ_INSERT_TAIL(&server->conns, conn, link);
	bufferevent_setcb(conn->bev, NULL, conn_on_write, conn_on_event, conn);
	bufferevent_set_max_single_write(conn->bev, HTTP_OUT_HIGH);
	evbuffer_add_cb(bufferevent_get_output(conn->bev), conn_on_output, conn);
	event_add(conn->readable, NULL); /* writing is enabled from the start */
	http_server_count_conn(server, 1);
	return 0;
}

/* True when the client takes its answer too slowly to be waited for. */
static bool
conn_output_stalled(struct http_conn *conn, int64_t now)
{
	if (http_conn_unsent(conn) == 0 || (conn->exchange != NULL && conn->exchange->patient)) {
		conn->out_deadline = 0;
	} else if (conn->out_deadline == 0 || conn->out_sent - conn->out_mark >= HTTP_PROGRESS) {
		conn->out_deadline = now + conn->server->options.body_timeout_ms;
		conn->out_mark = conn->out_sent;
	}
	return conn->out_deadline != 0 && now > conn->out_deadline;
}

void
http_conn_tick(struct http_conn *conn, int64_t now)
{
	if (conn_output_stalled(conn, now)) {
		http_conn_break(conn);
		return;
	}
	if (http_conn_has_left(conn, now)) {
		http_conn_close(conn);
		return;
	}
	if (conn->deadline == 0 || now <= conn->deadline)
		return;
	conn_enter(conn);
	if (conn->state == HTTP_CONN_CLOSING)
		http_conn_close(conn);
	else if (conn->state == HTTP_CONN_BODY)
		http_conn_refuse(conn, 408, "the request body did not come in time");
	else if (conn->head_started)
		http_conn_refuse(conn, 408, "the request head did not come in time");
	else if (http_conn_unsent(conn) == 0 && (conn->state != HTTP_CONN_HEAD || http_conn_is_idle(conn)))
		http_conn_close(conn); /* nothing has come meanwhile */
	conn_leave(conn);
}
