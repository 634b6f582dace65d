/* http_exchange.c - the request side of an exchange: what the user asked for is done with the body. */
/* SPDX-License-Identifier: MIT */
#include "http/http_conn.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"

#include <stdlib.h>

#include <event2/buffer.h>

struct http_exchange *
http_exchange_create(struct http_conn *conn, struct http_head *head)
{
	struct http_exchange *exchange = alloc_zero(1, sizeof *exchange);

	exchange->conn = conn;
	exchange->head = head;
	exchange->body_ended = head->length == 0;
	if (!head->keep_alive)
		conn->close_after = true;
	return exchange;
}

void
http_exchange_free(struct http_exchange *exchange)
{
	if (exchange == NULL)
		return;
	if (exchange->body != NULL)
		evbuffer_free(exchange->body);
	http_head_free(exchange->head);
	free(exchange->headers);
	free(exchange);
}

const struct http_head *
http_exchange_head(const struct http_exchange *exchange)
{
	return exchange->head;
}

int64_t
http_exchange_length(const struct http_exchange *exchange)
{
	return exchange->head->length;
}

void
http_exchange_on_gone(struct http_exchange *exchange, void (*on_gone)(void *arg), void *arg)
{
	exchange->on_gone = on_gone;
	exchange->gone_arg = arg;
}

void
http_exchange_need_client(struct http_exchange *exchange)
{
	exchange->needs_client = true;
}

void
http_exchange_set_data(struct http_exchange *exchange, void *data)
{
	exchange->data = data;
}

void *
http_exchange_data(const struct http_exchange *exchange)
{
	return exchange->data;
}

static void
exchange_renew_deadline(struct http_exchange *exchange)
{
	struct http_conn *conn = exchange->conn;

	conn->progress = 0;
	conn->deadline = clock_boot_ms() + conn->server->options.body_timeout_ms;
}

/* The user wants the body: now the client may send it, and has to. */
static void
exchange_ask(struct http_exchange *exchange, enum http_body_mode mode, void *arg)
{
	exchange->mode = mode;
	exchange->body_arg = arg;
	exchange->body = evbuffer_new();
	if (exchange->body == NULL)
		abort();
	if (!exchange->body_ended)
		exchange_renew_deadline(exchange);
	http_conn_kick(exchange->conn);
}

static void
exchange_continue(struct http_exchange *exchange, struct evbuffer *in)
{
	static const char line[] = "HTTP/1.1 100 Continue\r\n\r\n";

	if (!exchange->head->expect_continue || exchange->continue_sent || exchange->started)
		return;
	exchange->continue_sent = true;
	if (evbuffer_get_length(in) == 0)
		evbuffer_add(http_conn_output(exchange->conn), line, sizeof line - 1);
}

void
http_exchange_collect(struct http_exchange *exchange, size_t max,
	void (*done)(struct http_exchange *exchange, struct evbuffer *body, void *arg), void *arg)
{
	exchange->done = done;
	exchange->max = max;
	if (exchange->head->length > 0 && (uint64_t)exchange->head->length > max)
		exchange->refuse = 413;
	exchange_ask(exchange, HTTP_BODY_COLLECT, arg);
}

void
http_exchange_stream(struct http_exchange *exchange,
	void (*on_data)(struct http_exchange *exchange, struct evbuffer *piece, void *arg),
	void (*on_end)(struct http_exchange *exchange, void *arg), void *arg)
{
	exchange->on_data = on_data;
	exchange->on_end = on_end;
	exchange_ask(exchange, HTTP_BODY_STREAM, arg);
}

void
http_exchange_resume(struct http_exchange *exchange)
{
	http_conn_kick(exchange->conn);
}

static void
exchange_body_came(struct http_exchange *exchange, size_t bytes)
{
	exchange->conn->progress += bytes;
	if (exchange->conn->progress >= HTTP_PROGRESS)
		exchange_renew_deadline(exchange);
}

static void
exchange_body_ended(struct http_exchange *exchange)
{
	exchange->conn->state = HTTP_CONN_BUSY;
	exchange->conn->deadline = 0;
}

static bool
exchange_step_collect(struct http_exchange *exchange, struct evbuffer *in)
{
	struct http_conn *conn = exchange->conn;
	size_t before = evbuffer_get_length(exchange->body);
	size_t room = exchange->max - before;
	int rc = http_parser_body(&conn->parser, in, exchange->body, room < SIZE_MAX ? room + 1 : room);
	size_t after = evbuffer_get_length(exchange->body);

	if (rc < 0) {
		http_conn_refuse(conn, conn->parser.status, conn->parser.detail);
		return false;
	}
	if (after > exchange->max) {
		http_conn_refuse(conn, 413, "the request body is too large");
		return false;
	}
	if (rc == 0) {
		exchange_body_came(exchange, after - before);
		return false;
	}

	struct evbuffer *body = STEAL_PTR(exchange->body);

	exchange->body_ended = true;
	exchange_body_ended(exchange);
	exchange->done(exchange, body, exchange->body_arg);
	evbuffer_free(body);
	return true;
}

/* The piece outlives the callback by itself: the user may answer, and so end the exchange, while looking at it. */
static bool
exchange_hand_over(struct http_exchange *exchange)
{
	struct http_conn *conn = exchange->conn;
	struct evbuffer *piece = STEAL_PTR(exchange->body);

	exchange->on_data(exchange, piece, exchange->body_arg);
	if (conn->exchange != exchange) {
		evbuffer_free(piece);
		return true;
	}
	exchange->body = piece;
	if (evbuffer_get_length(piece) == 0)
		return true;
	conn->deadline = 0;
	return false;
}

static bool
exchange_step_stream(struct http_exchange *exchange, struct evbuffer *in)
{
	struct http_conn *conn = exchange->conn;

	if (evbuffer_get_length(exchange->body) == 0 && !exchange->body_ended) {
		int rc = http_parser_body(&conn->parser, in, exchange->body, HTTP_PIECE);
		size_t bytes = evbuffer_get_length(exchange->body);

		if (rc < 0) {
			http_conn_refuse(conn, conn->parser.status, conn->parser.detail);
			return false;
		}
		exchange->body_ended = rc > 0;
		if (conn->deadline == 0)
			exchange_renew_deadline(exchange);
		exchange_body_came(exchange, bytes);
		if (rc == 0 && bytes == 0)
			return false;
	}
	if (evbuffer_get_length(exchange->body) > 0)
		return exchange_hand_over(exchange);
	exchange_body_ended(exchange);
	exchange->on_end(exchange, exchange->body_arg);
	return true;
}

bool
http_exchange_step(struct http_exchange *exchange, struct evbuffer *in)
{
	if (exchange->refuse != 0) {
		http_conn_refuse(exchange->conn, exchange->refuse, "the request body is too large");
		return false;
	}
	if (exchange->mode == HTTP_BODY_UNASKED)
		return false;
	exchange_continue(exchange, in);
	if (exchange->mode == HTTP_BODY_COLLECT)
		return exchange_step_collect(exchange, in);
	return exchange_step_stream(exchange, in);
}

int
http_exchange_take(struct http_exchange *exchange, struct http_taken *ret_taken, struct err *err)
{
	struct http_conn *conn = exchange->conn;

	if (http_head_upgrade(exchange->head) == NULL || exchange->started)
		return err_set(err, ERR_INVALID, "this request does not ask for another protocol");
	if (evbuffer_get_length(http_conn_output(conn)) > 0)
		return err_set(err, ERR_BUSY, "read the earlier answers on this connection first");
	ret_taken->fd = http_conn_release(conn, &ret_taken->read);
	ret_taken->head = STEAL_PTR(exchange->head);
	http_exchange_free(exchange);
	return 0;
}
