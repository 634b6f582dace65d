/*
 * http_conn.c - one connection: its callbacks, its states, its end.
 *
 * Reading stays on while a request is worked at, so a client that leaves is seen
 * at once; bounded by the read mark. When input stands at that mark nothing is
 * read any more, and EV_CLOSED takes over the watch.
 */
/* SPDX-License-Identifier: MIT */
#include "http/http_conn.h"

#include "base/clock.h"

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
	return bufferevent_get_input(conn->bev);
}

void
http_conn_watch_output(struct http_conn *conn, size_t low)
{
	bufferevent_setwatermark(conn->bev, EV_WRITE, low, 0);
}

static size_t
conn_unsent(const struct http_conn *conn)
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

void
http_conn_close(struct http_conn *conn)
{
	struct http_server *server = conn->server;

	if (conn->dead)
		return;
	http_server_enter(server);
	conn->dead = true;

	struct http_exchange *exchange = conn_take_exchange(conn);

	TAILQ_REMOVE(&server->conns, conn, link);
	if (conn->closed != NULL)
		event_free(conn->closed);
	bufferevent_free(conn->bev);
	if (conn->depth == 0)
		free(conn);
	http_server_count_conn(server, -1);
	exchange_gone(exchange);
	http_server_leave(server);
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

	return conn->state == HTTP_CONN_HEAD && !conn->head_started && conn_unsent(conn) == 0 &&
		evbuffer_get_length(bufferevent_get_input(conn->bev)) == 0 &&
		recv(bufferevent_getfd(conn->bev), &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0;
}

void
http_conn_kick(struct http_conn *conn)
{
	if (conn->depth == 0)
		bufferevent_trigger(conn->bev, EV_READ, BEV_TRIG_IGNORE_WATERMARKS | BEV_TRIG_DEFER_CALLBACKS);
}

static void
conn_on_closed(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	http_conn_close(arg);
}

/*
 * Input at its mark: reading is switched off, because libevent calls the read callback without end while it is
 * on and the mark is passed.
 */
static void
conn_watch_input(struct http_conn *conn)
{
	bool stopped = conn->state != HTTP_CONN_CLOSING &&
		evbuffer_get_length(bufferevent_get_input(conn->bev)) >= HTTP_READ_HIGH;

	if (stopped == conn->stopped)
		return;
	conn->stopped = stopped;
	if (!stopped) {
		if (conn->closed != NULL)
			event_del(conn->closed);
		if (!conn->eof)
			bufferevent_enable(conn->bev, EV_READ);
		return;
	}
	bufferevent_disable(conn->bev, EV_READ);
	if (conn->closed == NULL)
		conn->closed = event_new(
			conn->server->base, bufferevent_getfd(conn->bev), EV_CLOSED, conn_on_closed, conn);
	if (conn->closed != NULL)
		event_add(conn->closed, NULL);
}

/* Everything is flushed: tell the client, and read what it still sends so that no reset eats the answer. */
static void
conn_shut(struct http_conn *conn)
{
	struct evbuffer *in = bufferevent_get_input(conn->bev);

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
	struct evbuffer *in = bufferevent_get_input(conn->bev);

	conn->state = HTTP_CONN_CLOSING;
	conn->deadline = 0;
	evbuffer_drain(in, evbuffer_get_length(in));
	conn_watch_input(conn);
	if (conn_unsent(conn) == 0)
		conn_shut(conn);
}

void
http_conn_answered(struct http_conn *conn)
{
	struct http_exchange *exchange = conn_take_exchange(conn);
	bool body_ended = exchange->body_ended;

	http_exchange_free(exchange);
	http_conn_watch_output(conn, 0);
	if (conn->close_after || conn->eof || !body_ended) {
		conn_start_closing(conn);
		return;
	}
	conn->state = HTTP_CONN_HEAD;
	conn->deadline = clock_boot_ms() + conn->server->options.keepalive_timeout_ms;
	conn_watch_input(conn);
	if (evbuffer_get_length(bufferevent_get_input(conn->bev)) > 0)
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
		if (conn_unsent(conn) > HTTP_OUT_HIGH) {
			conn->deadline = 0;
			return false;
		}
		conn->head_started = true;
		conn->deadline = clock_boot_ms() + server->options.header_timeout_ms;
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
	struct evbuffer *in = bufferevent_get_input(conn->bev);

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

/* Callers hold the connection by conn_enter. */
static void
conn_process(struct http_conn *conn)
{
	while (!conn->dead && conn_step(conn)) {
	}
	if (!conn->dead)
		conn_watch_input(conn);
}

static void
conn_on_read(struct bufferevent *bev, void *arg)
{
	struct http_conn *conn = arg;

	(void)bev;
	conn_enter(conn);
	conn_process(conn);
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
	if (conn->state == HTTP_CONN_CLOSING) {
		if (empty && !conn->shut)
			conn_shut(conn);
	} else if (exchange != NULL && exchange->throttled) {
		exchange->throttled = false;
		exchange->on_drain(exchange, exchange->drain_arg);
	} else if (conn->state == HTTP_CONN_HEAD && conn->served && !conn->head_started && empty) {
		conn->deadline = clock_boot_ms() + conn->server->options.keepalive_timeout_ms;
	}
	if (!conn->dead)
		conn_process(conn);
	conn_leave(conn);
}

static void
conn_on_event(struct bufferevent *bev, short what, void *arg)
{
	struct http_conn *conn = arg;

	(void)bev;
	conn_enter(conn);
	conn->eof = true;
	if ((what & BEV_EVENT_ERROR) != 0 || conn->exchange != NULL || conn_unsent(conn) == 0)
		http_conn_close(conn);
	else
		conn_start_closing(conn);
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
	conn->server = server;
	conn->close_after = server->draining;
	conn->deadline = clock_boot_ms() + server->options.header_timeout_ms;
	http_parser_init(&conn->parser, HTTP_SIDE_REQUEST, server->options.max_header_bytes);
	TAILQ_INSERT_TAIL(&server->conns, conn, link);
	bufferevent_setcb(conn->bev, conn_on_read, conn_on_write, conn_on_event, conn);
	bufferevent_setwatermark(conn->bev, EV_READ, 0, HTTP_READ_HIGH);
	bufferevent_set_max_single_read(conn->bev, HTTP_PIECE);
	bufferevent_set_max_single_write(conn->bev, HTTP_OUT_HIGH);
	evbuffer_add_cb(bufferevent_get_output(conn->bev), conn_on_output, conn);
	bufferevent_enable(conn->bev, EV_READ); /* writing is enabled from the start */
	http_server_count_conn(server, 1);
	return 0;
}

/* True when the client takes its answer too slowly to be waited for. */
static bool
conn_output_stalled(struct http_conn *conn, int64_t now)
{
	if (conn_unsent(conn) == 0) {
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
	if (conn->deadline == 0 || now <= conn->deadline)
		return;
	conn_enter(conn);
	if (conn->state == HTTP_CONN_CLOSING)
		http_conn_close(conn);
	else if (conn->state == HTTP_CONN_BODY)
		http_conn_refuse(conn, 408, "the request body did not come in time");
	else if (conn->head_started)
		http_conn_refuse(conn, 408, "the request head did not come in time");
	else if (conn_unsent(conn) == 0)
		http_conn_close(conn);
	conn_leave(conn);
}
