/*
 * ws_conn.c - three events: readable, writable, and a tick for all deadlines.
 *
 * The connection is freed where the last of its own callbacks is left (depth), so
 * its owner may end it from inside any of them.
 */
/* SPDX-License-Identifier: MIT */
#include "agent/terminal/ws_conn.h"

#include "agent/terminal/ws_frame.h"
#include "base/alloc.h"
#include "base/clock.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	WS_CONN_READ = 64 << 10,
	WS_CONN_WRITE = 256 << 10,
	WS_CONN_PIECE = 16 << 10,
	WS_CONN_LINGER_MS = 2000, /* for the peer's answer to our close */
	WS_CONN_STUCK_MS = 600000, /* closing, and the peer takes nothing */
	WS_CONN_LOOK_MS = 500, /* while nothing is read: has the peer left? */
	WS_CONN_VANISHED_MS = 30000,
	WS_CONN_PROBE_S = 10
};

struct ws_conn {
	struct ws_conn_options options;
	int fd;
	struct event *readable, *writable, *tick;
	struct evbuffer *in, *out, *piece;
	struct ws_reader reader;
	uint32_t depth;
	bool dead;
	bool paused;
	bool reading;
	bool closing; /* our close is queued */
	bool left; /* the peer says no more */
	bool answered; /* it did so behind all that we sent, our close too */
	int64_t heard_ms, pinged_ms;
	int64_t close_by_ms; /* of a closing connection */
};

static void
conn_enter(struct ws_conn *conn)
{
	conn->depth++;
}

static void
conn_leave(struct ws_conn *conn)
{
	if (--conn->depth == 0 && conn->dead)
		free(conn);
}

/* The one place where it ends. */
static void
conn_end(struct ws_conn *conn)
{
	void (*on_gone)(bool, void *) = conn->options.on_gone;

	if (conn->dead)
		return;
	conn->dead = true;
	event_free(conn->readable);
	event_free(conn->writable);
	event_free(conn->tick);
	evbuffer_free(conn->in);
	evbuffer_free(conn->out);
	evbuffer_free(conn->piece);
	ws_reader_fini(&conn->reader);
	close(conn->fd);
	if (on_gone != NULL)
		on_gone(conn->answered, conn->options.arg);
	if (conn->depth == 0)
		free(conn);
}

void
ws_conn_free(struct ws_conn *conn)
{
	conn->options.on_gone = NULL;
	conn_end(conn);
}

static size_t
conn_queued(const struct ws_conn *conn)
{
	return evbuffer_get_length(conn->out);
}

bool
ws_conn_has_room(const struct ws_conn *conn)
{
	return !conn->dead && !conn->closing && conn_queued(conn) < WS_CONN_HIGH;
}

static bool
conn_may_read(const struct ws_conn *conn)
{
	return conn->closing || conn->left || (!conn->paused && conn_queued(conn) < WS_CONN_FULL);
}

static void
conn_schedule(struct ws_conn *conn)
{
	int64_t delay = conn->options.ping_ms / 4;
	struct timeval tick;

	if ((!conn->reading || conn->closing) && delay > WS_CONN_LOOK_MS)
		delay = WS_CONN_LOOK_MS;
	tick = clock_tv(delay < 1 ? 1 : delay);
	event_add(conn->tick, &tick);
}

static void
conn_watch(struct ws_conn *conn)
{
	bool reading = conn_may_read(conn);

	if (conn_queued(conn) > 0)
		event_add(conn->writable, NULL);
	if (reading == conn->reading)
		return;
	conn->reading = reading;
	if (reading)
		event_add(conn->readable, NULL);
	else
		event_del(conn->readable);
	conn->heard_ms = clock_boot_ms();
	conn_schedule(conn);
}

static void
conn_begin_closing(struct ws_conn *conn, int code, const char *reason)
{
	if (conn->closing)
		return;
	if (code == WS_CLOSE_NO_CODE)
		ws_write(conn->out, WS_CLOSE, NULL, 0);
	else
		ws_write_close(conn->out, code, reason);
	conn->closing = true;
	conn->close_by_ms = clock_boot_ms() + WS_CONN_STUCK_MS;
}

static void
conn_left(struct ws_conn *conn)
{
	if (conn->left)
		return;
	conn->left = true;
	if (conn->options.on_left != NULL)
		conn->options.on_left(conn->options.arg);
}

/* A close of the peer, or its fault: our close is the answer, and nothing of its is read any more. */
static void
conn_on_last(struct ws_conn *conn, int code, const char *reason)
{
	bool ours_first = conn->closing;

	conn_begin_closing(conn, code, reason);
	if (!ours_first)
		conn_left(conn);
	conn->left = true;
	if (!conn->dead && conn_queued(conn) == 0)
		conn_end(conn);
}

static void
conn_on_event(struct ws_conn *conn, enum ws_event event)
{
	const struct ws_conn_options *options = &conn->options;

	switch (event) {
	case WS_EVENT_TEXT:
		if (!conn->closing)
			options->on_text(conn->reader.text, conn->reader.text_len, options->arg);
		break;
	case WS_EVENT_BINARY:
		if (!conn->closing)
			options->on_binary(conn->piece, options->arg);
		if (!conn->dead)
			evbuffer_drain(conn->piece, evbuffer_get_length(conn->piece));
		break;
	case WS_EVENT_PING:
		if (!conn->closing)
			ws_write(conn->out, WS_PONG, conn->reader.control, conn->reader.control_len);
		break;
	case WS_EVENT_CLOSE:
		conn->answered = conn->closing && conn_queued(conn) == 0;
		conn_on_last(conn, conn->reader.close_code, "");
		break;
	case WS_EVENT_FAULT:
		conn_on_last(conn, conn->reader.close_code, conn->reader.detail);
		break;
	case WS_EVENT_PONG:
	case WS_EVENT_NONE:
		break;
	}
}

/* Takes what stands in the input, as long as it may. */
static void
conn_pump(struct ws_conn *conn)
{
	enum ws_event event = WS_EVENT_PONG;

	while (!conn->dead && event != WS_EVENT_NONE && conn_may_read(conn)) {
		event = ws_reader_next(&conn->reader, conn->in, conn->piece, WS_CONN_PIECE);
		conn_on_event(conn, event);
	}
	if (conn->dead)
		return;
	if (conn->left) /* nothing behind the end counts */
		evbuffer_drain(conn->in, evbuffer_get_length(conn->in));
	conn_watch(conn);
}

static void
conn_broken(struct ws_conn *conn)
{
	if (!conn->closing)
		conn_left(conn);
	conn_end(conn);
}

static void
conn_on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct ws_conn *conn = arg;
	int got = 1;

	conn_enter(conn);
	if ((what & EV_READ) != 0) {
		got = evbuffer_read(conn->in, fd, WS_CONN_READ);
		if (got > 0)
			conn->heard_ms = clock_boot_ms();
	}
	if (got > 0)
		conn_pump(conn);
	else if (got == 0 || (errno != EAGAIN && errno != EINTR))
		conn_broken(conn);
	conn_leave(conn);
}

/* All that was queued is with the kernel. */
static void
conn_flushed(struct ws_conn *conn)
{
	if (!conn->closing)
		return;
	if (conn->left) {
		conn_end(conn);
		return;
	}
	conn->close_by_ms = clock_boot_ms() + WS_CONN_LINGER_MS;
	conn_schedule(conn);
}

static void
conn_on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct ws_conn *conn = arg;
	int put = evbuffer_write_atmost(conn->out, fd, WS_CONN_WRITE);

	(void)what;
	conn_enter(conn);
	if (put < 0 && errno != EAGAIN && errno != EINTR) {
		conn_broken(conn);
	} else {
		if (put > 0 && conn->closing)
			conn->close_by_ms = clock_boot_ms() + WS_CONN_STUCK_MS;
		if (conn_queued(conn) == 0)
			conn_flushed(conn);
		else if (!conn->dead)
			event_add(conn->writable, NULL);
		if (!conn->dead && !conn->closing && conn_queued(conn) < WS_CONN_LOW)
			conn->options.on_room(conn->options.arg);
		if (!conn->dead)
			conn_pump(conn);
	}
	conn_leave(conn);
}

/* What was sent has been taken: on a unix socket by the peer, with TCP by its host. */
static bool
conn_was_taken(const struct ws_conn *conn)
{
	int waiting = 0;

	return conn_queued(conn) == 0 && ioctl(conn->fd, SIOCOUTQ, &waiting) == 0 && waiting == 0;
}

static bool
conn_is_hung_up(const struct ws_conn *conn)
{
	struct pollfd pollfd = { .fd = conn->fd, .events = POLLRDHUP };

	return poll(&pollfd, 1, 0) == 1;
}

static void
conn_look(struct ws_conn *conn, int64_t now)
{
	int64_t ping_ms = conn->options.ping_ms, silent = now - conn->heard_ms;

	if (conn->closing && now >= conn->close_by_ms) {
		conn_end(conn);
	} else if (!conn->reading) {
		conn->heard_ms = now;
		if (conn_is_hung_up(conn))
			conn_broken(conn);
	} else if (conn->closing) {
		return;
	} else if (silent >= ping_ms * 5 / 2 && conn->pinged_ms > conn->heard_ms && conn_was_taken(conn)) {
		conn_broken(conn);
	} else if (silent >= ping_ms && now - conn->pinged_ms >= ping_ms) {
		conn->pinged_ms = now;
		ws_write(conn->out, WS_PING, NULL, 0);
		conn_watch(conn);
	}
}

static void
conn_on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct ws_conn *conn = arg;

	(void)fd;
	(void)what;
	conn_enter(conn);
	conn_look(conn, clock_boot_ms());
	if (!conn->dead)
		conn_schedule(conn);
	conn_leave(conn);
}

/* Not of a unix socket, where they fail and nothing can vanish. */
static void
conn_find_vanished_hosts(int fd)
{
	int on = 1, probe_s = WS_CONN_PROBE_S, count = 3;
	unsigned vanished_ms = WS_CONN_VANISHED_MS;

	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &probe_s, sizeof probe_s);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &probe_s, sizeof probe_s);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &vanished_ms, sizeof vanished_ms);
}

struct ws_conn *
ws_conn_create(const struct ws_conn_options *options)
{
	struct ws_conn *conn = alloc_zero(1, sizeof *conn);

	conn->options = *options;
	conn->fd = options->fd;
	conn->in = options->read;
	conn->out = evbuffer_new();
	conn->piece = evbuffer_new();
	conn->readable = event_new(options->base, conn->fd, EV_READ | EV_PERSIST, conn_on_readable, conn);
	conn->writable = event_new(options->base, conn->fd, EV_WRITE, conn_on_writable, conn);
	conn->tick = evtimer_new(options->base, conn_on_tick, conn);
	if (conn->out == NULL || conn->piece == NULL || conn->readable == NULL || conn->writable == NULL ||
		conn->tick == NULL || evbuffer_add_buffer(conn->out, options->first) < 0)
		abort();
	ws_reader_init(&conn->reader, options->max_text);
	conn_find_vanished_hosts(conn->fd);
	conn->heard_ms = clock_boot_ms();
	conn_watch(conn);
	event_active(conn->readable, EV_TIMEOUT, 0); /* frames may have come with the request */
	return conn;
}

void
ws_conn_send_text(struct ws_conn *conn, const char *text, size_t len)
{
	if (conn->dead || conn->closing)
		return;
	ws_write(conn->out, WS_TEXT, text, len);
	conn_watch(conn);
}

void
ws_conn_send_binary(struct ws_conn *conn, const void *bytes, size_t len)
{
	if (conn->dead || conn->closing)
		return;
	ws_write(conn->out, WS_BINARY, bytes, len);
	conn_watch(conn);
}

void
ws_conn_pause(struct ws_conn *conn, bool paused)
{
	if (conn->dead || conn->paused == paused)
		return;
	conn->paused = paused;
	conn_watch(conn);
	if (!paused && conn->depth == 0)
		event_active(conn->readable, EV_TIMEOUT, 0);
}

void
ws_conn_close(struct ws_conn *conn, int code, const char *reason)
{
	if (conn->dead)
		return;
	conn_begin_closing(conn, code, reason);
	conn_watch(conn);
}
