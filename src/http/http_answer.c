/*
 * http_answer.c - the answer side of an exchange: whole, streamed, or the
 * codec's own refusal. A body that is not whole never looks whole.
 */
/* SPDX-License-Identifier: MIT */
#include "http/http_conn.h"
#include "http/http_send.h"
#include "http/http_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>

static const struct {
	int status;
	const char *reason;
	const char *code; /* http_status_code() */
} statuses[] = {
	{ 100, "Continue", NULL },
	{ 101, "Switching Protocols", NULL },
	{ 200, "OK", NULL },
	{ 201, "Created", NULL },
	{ 202, "Accepted", NULL },
	{ 204, "No Content", NULL },
	{ 206, "Partial Content", NULL },
	{ 301, "Moved Permanently", NULL },
	{ 302, "Found", NULL },
	{ 303, "See Other", NULL },
	{ 304, "Not Modified", NULL },
	{ 307, "Temporary Redirect", NULL },
	{ 308, "Permanent Redirect", NULL },
	{ 400, "Bad Request", "bad_request" },
	{ 401, "Unauthorized", NULL },
	{ 403, "Forbidden", NULL },
	{ 404, "Not Found", NULL },
	{ 405, "Method Not Allowed", NULL },
	{ 408, "Request Timeout", "request_timeout" },
	{ 409, "Conflict", NULL },
	{ 410, "Gone", NULL },
	{ 411, "Length Required", NULL },
	{ 412, "Precondition Failed", NULL },
	{ 413, "Content Too Large", "payload_too_large" },
	{ 414, "URI Too Long", "uri_too_long" },
	{ 415, "Unsupported Media Type", "content_coding_unsupported" },
	{ 416, "Range Not Satisfiable", NULL },
	{ 417, "Expectation Failed", "expectation_failed" },
	{ 422, "Unprocessable Content", NULL },
	{ 423, "Locked", NULL },
	{ 426, "Upgrade Required", NULL },
	{ 428, "Precondition Required", NULL },
	{ 429, "Too Many Requests", NULL },
	{ 431, "Request Header Fields Too Large", "headers_too_large" },
	{ 500, "Internal Server Error", NULL },
	{ 501, "Not Implemented", "unsupported" },
	{ 502, "Bad Gateway", NULL },
	{ 503, "Service Unavailable", "unavailable" },
	{ 504, "Gateway Timeout", NULL },
	{ 505, "HTTP Version Not Supported", "http_version_unsupported" },
	{ 507, "Insufficient Storage", NULL },
};

const char *
http_status_reason(int status)
{
	for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++)
		if (statuses[i].status == status)
			return statuses[i].reason;
	return "Unknown";
}

const char *
http_status_code(int status)
{
	for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++)
		if (statuses[i].status == status && statuses[i].code != NULL)
			return statuses[i].code;
	return NULL;
}

static bool
status_has_body(int status)
{
	return status >= 200 && status != 204 && status != 304;
}

void
http_exchange_add_header(struct http_exchange *exchange, const char *name, const char *value)
{
	size_t name_len = strlen(name);
	size_t value_len = strlen(value);
	size_t len = exchange->headers_len + name_len + value_len + 4;
	char *headers = realloc(exchange->headers, len + 1);

	if (headers == NULL)
		abort();

	char *line = headers + exchange->headers_len;

	snprintf(line, name_len + value_len + 5, "%s: %s\r\n", name, value);
	/* The last line of defence: no value may begin a line of its own. */
	for (char *p = line; p < line + name_len + 2 + value_len; p++)
		if (*p == '\r' || *p == '\n')
			*p = ' ';
	exchange->headers = headers;
	exchange->headers_len = len;
}

/* Nobody wants the rest of the body: if it is here already, the connection can live on. */
static void
answer_skip_body(struct http_exchange *exchange)
{
	struct http_conn *conn = exchange->conn;
	struct evbuffer *nowhere;

	if (exchange->body_ended)
		return;
	nowhere = evbuffer_new();
	if (nowhere == NULL)
		abort();
	exchange->body_ended = http_parser_body(
				       &conn->parser, http_conn_input(conn), nowhere, 2 * HTTP_READ_HIGH) == 1;
	evbuffer_free(nowhere);
}

static const char *
answer_connection(const struct http_exchange *exchange)
{
	if (exchange->conn->close_after)
		return "Connection: close\r\n";
	return exchange->head->minor_version == 0 ? "Connection: keep-alive\r\n" : "";
}

/* length -1: not told. */
static void
answer_head(struct http_exchange *exchange, struct http_text *text, int status, const char *content_type,
	int64_t length)
{
	struct http_conn *conn = exchange->conn;
	const char digits[] = { (char)('0' + status / 100), (char)('0' + status / 10 % 10),
		(char)('0' + status % 10), ' ', '\0' };

	exchange->started = true;
	exchange->bodiless = !status_has_body(status) || exchange->head->method == HTTP_HEAD;
	if (!exchange->body_ended || conn->server->draining)
		conn->close_after = true;
	http_text_add(text, "HTTP/1.1 ");
	http_text_add(text, digits);
	http_text_add(text, http_status_reason(status));
	http_text_add(text, "\r\nDate: ");
	http_text_add(text, http_server_date(conn->server));
	if (content_type != NULL) {
		http_text_add(text, "\r\nContent-Type: ");
		http_text_add(text, content_type);
	}
	http_text_add(text, "\r\n");
	if (length >= 0 && status_has_body(status)) {
		http_text_add(text, "Content-Length: ");
		http_text_add_number(text, (size_t)length);
		http_text_add(text, "\r\n");
	} else if (exchange->chunked) {
		http_text_add(text, "Transfer-Encoding: chunked\r\n");
	}
	http_text_add(text, answer_connection(exchange));
	if (exchange->headers != NULL)
		http_text_add_bytes(text, exchange->headers, exchange->headers_len);
	http_text_add(text, "\r\n");
}

static void
answer_begin(
	struct http_exchange *exchange, struct http_text *text, int status, const char *content_type, size_t len)
{
	http_text_init(text);
	answer_skip_body(exchange);
	answer_head(exchange, text, status, content_type, (int64_t)len);
}

void
http_exchange_respond(struct http_exchange *exchange, int status, const char *content_type, struct evbuffer *body)
{
	size_t len = body != NULL ? evbuffer_get_length(body) : 0;
	struct evbuffer *message;
	struct http_text text;

	answer_begin(exchange, &text, status, content_type, len);
	message = http_text_take(&text);
	if (exchange->bodiless)
		evbuffer_drain(body, len);
	else if (len > 0)
		evbuffer_add_buffer(message, body);
	http_send(exchange->conn->bev, message);
	evbuffer_free(message);
	http_conn_answered(exchange->conn);
}

void
http_exchange_respond_text(
	struct http_exchange *exchange, int status, const char *content_type, const char *body, size_t len)
{
	struct http_text text;

	answer_begin(exchange, &text, status, content_type, len);
	if (!exchange->bodiless && len > 0)
		http_text_add_bytes(&text, body, len);
	http_text_send(&text, exchange->conn->bev);
	http_conn_answered(exchange->conn);
}

void
http_exchange_start(struct http_exchange *exchange, int status, const char *content_type, int64_t length,
	void (*on_drain)(struct http_exchange *exchange, void *arg), void *arg)
{
	struct evbuffer *head;
	struct http_text text;

	if (exchange->mode == HTTP_BODY_UNASKED)
		answer_skip_body(exchange);
	exchange->chunked = length < 0 && status_has_body(status) && exchange->head->minor_version == 1;
	if (length < 0 && exchange->head->minor_version == 0)
		exchange->conn->close_after = true;
	exchange->left = length > 0 ? (uint64_t)length : 0;
	exchange->counted = length >= 0;
	exchange->on_drain = on_drain;
	exchange->drain_arg = arg;
	http_text_init(&text);
	answer_head(exchange, &text, status, content_type, length);
	head = http_text_take(&text);
	evbuffer_add_buffer(http_conn_output(exchange->conn), head);
	evbuffer_free(head);
	http_conn_watch_output(exchange->conn, HTTP_OUT_LOW);
}

size_t
http_exchange_send(struct http_exchange *exchange, struct evbuffer *piece)
{
	struct evbuffer *out = http_conn_output(exchange->conn);
	size_t len = evbuffer_get_length(piece);

	if (exchange->bodiless) {
		evbuffer_drain(piece, len);
	} else if (exchange->counted) {
		size_t fits = len < exchange->left ? len : (size_t)exchange->left;

		evbuffer_remove_buffer(piece, out, fits);
		evbuffer_drain(piece, len - fits);
		exchange->left -= fits;
	} else if (len > 0) {
		if (exchange->chunked)
			evbuffer_add_printf(out, "%zx\r\n", len);
		evbuffer_add_buffer(out, piece);
		if (exchange->chunked)
			evbuffer_add(out, "\r\n", 2);
	}

	size_t queued = evbuffer_get_length(out);

	exchange->throttled = queued > HTTP_OUT_HIGH && exchange->on_drain != NULL;
	return queued;
}

void
http_exchange_be_patient(struct http_exchange *exchange)
{
	exchange->patient = true;
}

void
http_exchange_end(struct http_exchange *exchange)
{
	if (!exchange->bodiless && exchange->counted && exchange->left > 0) {
		http_exchange_abort(exchange);
		return;
	}
	if (!exchange->bodiless && exchange->chunked)
		evbuffer_add(http_conn_output(exchange->conn), "0\r\n\r\n", 5);
	http_conn_answered(exchange->conn);
}

void
http_exchange_abort(struct http_exchange *exchange)
{
	exchange->on_gone = NULL;
	http_conn_break(exchange->conn);
}

void
http_conn_refuse(struct http_conn *conn, int status, const char *detail)
{
	const struct http_server_options *options = &conn->server->options;
	struct http_exchange *exchange = conn->exchange;
	AUTO_FREE char *text = NULL;
	const char *code = http_status_code(status);
	char plain[256], headers[HTTP_ERROR_HEADERS_SIZE] = "";

	/* Half an answer is out: only cutting it is honest. */
	if (exchange != NULL && exchange->started) {
		http_conn_break(conn);
		return;
	}
	if (options->format_error != NULL)
		text = options->format_error(exchange, status, detail, headers, options->arg);

	snprintf(plain, sizeof plain, "{\"detail\":\"%s\",\"code\":\"%s\"}\n", detail,
		code != NULL ? code : "error");

	const char *body = text != NULL ? text : plain;
	bool bodiless = exchange != NULL && exchange->head->method == HTTP_HEAD;

	conn->close_after = true;
	evbuffer_add_printf(http_conn_output(conn),
		"HTTP/1.1 %d %s\r\nDate: %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
		"Connection: close\r\n%s\r\n%s",
		status, http_status_reason(status), http_server_date(conn->server), strlen(body), headers,
		bodiless ? "" : body);
	http_conn_refused(conn);
}
