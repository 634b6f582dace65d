/*
 * helper_relay.c - messages between a helper and its HTTP exchange.
 *
 * Each direction stands still while the other side does not take: a body stays unread in the http layer, which stops
 * reading the connection; an answer stays in the socket, on which the helper waits.
 */
/* SPDX-License-Identifier: MIT */
#include "agent/files/helper_priv.h"

#include "base/alloc.h"
#include "http/http_server.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { RELAY_QUEUED_MAX = 256 * 1024, RELAY_ROUND = 8 };

/* --- the body, to the helper --- */

/* 1: sent, 0: no room now, -1: it does not listen any more. */
static int
relay_send(struct helper *helper, enum helper_message kind, void *data, size_t len)
{
	char type = (char)kind;
	struct iovec parts[2] = { { &type, 1 }, { data, len } };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };

	if (helper->fd < 0)
		return -1;
	if (sendmsg(helper->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return 1;
	if (errno != EAGAIN && errno != ENOBUFS)
		return -1;
	event_add(helper->writable, NULL);
	return 0;
}

/* What a helper that has answered, or is gone, did not want is for nobody. */
static void
relay_on_data(struct http_exchange *exchange, struct evbuffer *piece, void *arg)
{
	struct helper *helper = arg;
	size_t left;

	(void)exchange;
	while ((left = evbuffer_get_length(piece)) > 0) {
		size_t len = left < HELPER_PIECE ? left : HELPER_PIECE;
		int rc = relay_send(helper, HELPER_BODY, evbuffer_pullup(piece, (ev_ssize_t)len), len);

		if (rc == 0)
			return;
		evbuffer_drain(piece, rc < 0 ? left : len);
	}
}

static void
relay_send_end(struct helper *helper)
{
	helper->end_sent = relay_send(helper, HELPER_BODY_END, NULL, 0) != 0;
}

static void
relay_on_end(struct http_exchange *exchange, void *arg)
{
	struct helper *helper = arg;

	(void)exchange;
	helper->body_ended = true;
	relay_send_end(helper);
}

static void
relay_on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct helper *helper = arg;

	(void)fd;
	(void)what;
	if (helper->body_ended && !helper->end_sent)
		relay_send_end(helper);
	else if (helper->exchange != NULL && !helper->body_ended)
		http_exchange_resume(helper->exchange);
}

/* --- the answer, from the helper --- */

static void
relay_on_drain(struct http_exchange *exchange, void *arg)
{
	struct helper *helper = arg;

	(void)exchange;
	if (helper->fd >= 0)
		event_add(helper->readable, NULL);
}

/* One string with its NUL; NULL: there is none left. */
static const char *
relay_string(const char **at, const char *end)
{
	const char *text = *at, *nul = memchr(text, '\0', (size_t)(end - text));

	if (nul == NULL)
		return NULL;
	*at = nul + 1;
	return text;
}

static void
relay_head(struct helper *helper, const char *data, size_t len)
{
	const char *at = data + sizeof(struct helper_head_message), *end = data + len, *type, *name, *value;
	struct http_exchange *exchange = helper->exchange;
	struct helper_head_message head;

	if (helper->answering || len < sizeof head || (type = relay_string(&at, end)) == NULL)
		return;
	memcpy(&head, data, sizeof head);
	while ((name = relay_string(&at, end)) != NULL && (value = relay_string(&at, end)) != NULL)
		http_exchange_add_header(exchange, name, value);
	helper->answering = true;
	http_exchange_start(
		exchange, head.status, *type != '\0' ? type : NULL, head.length, relay_on_drain, helper);
}

static void
relay_end(struct helper *helper)
{
	struct http_exchange *exchange = helper->exchange;

	if (helper->answering) {
		free(helper->leaves);
		helper->leaves = NULL;
		helper->exchange = NULL;
		http_exchange_on_gone(exchange, NULL, NULL);
		http_exchange_end(exchange);
	}
	helper_close(helper);
}

static void
relay_want_body(struct helper *helper)
{
	if (helper->body_asked)
		return;
	helper->body_asked = true;
	if (http_exchange_length(helper->exchange) == 0)
		relay_on_end(helper->exchange, helper);
	else
		http_exchange_stream(helper->exchange, relay_on_data, relay_on_end, helper);
}

static void
relay_leaves(struct helper *helper, const char *data, size_t len)
{
	free(helper->leaves);
	helper->leaves = NULL;
	if (len == 0)
		return;
	helper->leaves = alloc_zero(1, len + 1);
	memcpy(helper->leaves, data, len);
}

/* Takes one message; false: nothing more is to be read now. What nobody waits for is dropped. */
static bool
relay_take(struct helper *helper, char type, struct evbuffer *data)
{
	size_t len = evbuffer_get_length(data);
	const char *bytes = len > 0 && type != HELPER_DATA ? (const char *)evbuffer_pullup(data, -1) : "";

	if (helper->exchange == NULL)
		return true;
	switch (type) {
	case HELPER_LEAVES:
		relay_leaves(helper, bytes, len);
		return true;
	case HELPER_WANTS:
		relay_want_body(helper);
		return true;
	case HELPER_HEAD:
		relay_head(helper, bytes, len);
		return true;
	case HELPER_DATA:
		if (!helper->answering || http_exchange_send(helper->exchange, data) <= RELAY_QUEUED_MAX)
			return true;
		event_del(helper->readable);
		return false;
	case HELPER_END:
		relay_end(helper);
		return false;
	default:
		return true;
	}
}

/* 1: a message, 0: none now, -1: the end. */
static int
relay_receive(struct helper *helper, char *ret_type, struct evbuffer *data)
{
	struct iovec parts[2] = { { .iov_base = ret_type, .iov_len = 1 } };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
	ssize_t got;

	if (evbuffer_reserve_space(data, HELPER_PIECE, &parts[1], 1) != 1)
		abort();
	parts[1].iov_len = HELPER_PIECE;
	/* A helper that left some of its body unread is told once as an error, ahead of all that it has answered. */
	do {
		got = recvmsg(helper->fd, &message, MSG_DONTWAIT);
	} while (got < 0 && errno == ECONNRESET);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (got <= 0)
		return -1;
	parts[1].iov_len = (size_t)got - 1;
	evbuffer_commit_space(data, &parts[1], 1);
	return 1;
}

static void
relay_on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct helper *helper = arg;
	int rc = 1;

	(void)fd;
	(void)what;
	for (int i = 0; rc > 0 && i < RELAY_ROUND; i++) {
		struct evbuffer *data = evbuffer_new();
		bool more = true;
		char type;

		if (data == NULL)
			abort();
		rc = relay_receive(helper, &type, data);
		if (rc > 0)
			more = relay_take(helper, type, data);
		evbuffer_free(data);
		if (!more)
			return;
	}
	if (rc < 0)
		helper_close(helper);
}

/* --- both --- */

void
helper_relay_start(struct helper *helper, struct event_base *base, int fd)
{
	helper->fd = fd;
	helper->readable = event_new(base, fd, EV_READ | EV_PERSIST, relay_on_readable, helper);
	helper->writable = event_new(base, fd, EV_WRITE, relay_on_writable, helper);
	if (helper->readable == NULL || helper->writable == NULL)
		abort();
	event_add(helper->readable, NULL);
}

void
helper_relay_stop(struct helper *helper)
{
	if (helper->fd < 0)
		return;
	event_free(helper->readable);
	event_free(helper->writable);
	close(helper->fd);
	helper->fd = -1;
}
