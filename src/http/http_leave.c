/*
 * http_leave.c - whether a client that sends no more has left.
 *
 * On TCP one that closed and one that still reads look the same until something
 * is written: so what was asked for as a whole is answered for half_closed_ms
 * more, each time something goes out. A unix socket tells them apart.
 */
/* SPDX-License-Identifier: MIT */
#include "http/http_conn.h"

#include <poll.h>
#include <sys/ioctl.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>

static bool
conn_is_broken(const struct http_conn *conn)
{
	struct pollfd ask = { .fd = bufferevent_getfd(conn->bev) };

	return poll(&ask, 1, 0) > 0;
}

/* What came of its body waits for the user. */
static bool
exchange_is_held(const struct http_exchange *exchange)
{
	return exchange->mode == HTTP_BODY_STREAM && evbuffer_get_length(exchange->body) > 0;
}

bool
http_conn_lacks_body(const struct http_conn *conn)
{
	const struct http_exchange *exchange = conn->exchange;
	size_t here = evbuffer_get_length(conn->in);
	int more = 0;

	if (conn->state != HTTP_CONN_BODY || exchange->body_ended)
		return false;
	if (exchange->head->length < 0)
		return !conn->eof || here == 0 ||
			(exchange->mode != HTTP_BODY_UNASKED && !exchange_is_held(exchange));
	if (!conn->eof && ioctl(bufferevent_getfd(conn->bev), FIONREAD, &more) < 0)
		return true;
	return here + (size_t)more < conn->parser.left;
}

bool
http_conn_may_be_half_closed(const struct http_conn *conn)
{
	const struct http_exchange *exchange = conn->exchange;

	return conn->server->options.half_closed_ms > 0 && (exchange == NULL || !exchange->needs_client) &&
		!conn_is_broken(conn);
}

bool
http_conn_has_left(const struct http_conn *conn, int64_t now)
{
	struct pollfd ask = { .fd = bufferevent_getfd(conn->bev), .events = POLLRDHUP };

	if (conn->eof)
		return conn->exchange != NULL &&
			(conn_is_broken(conn) || (http_conn_unsent(conn) == 0 && now > conn->left_deadline));
	if (!conn->stopped || poll(&ask, 1, 0) <= 0)
		return false;
	return conn->state != HTTP_CONN_BODY || !http_conn_may_be_half_closed(conn) || http_conn_lacks_body(conn);
}
