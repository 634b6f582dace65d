/* relay.c - two connections, and who of the two waits for the other. */
/* SPDX-License-Identifier: MIT */
#include "worker/relay.h"

#include "base/alloc.h"
#include "base/err.h"
#include "base/json.h"
#include "domain/file_call.h"
#include "http/http_parser.h"
#include "http/http_server.h"
#include "worker/api.h"
#include "worker/request.h"
#include "worker/respond.h"

#include <event2/buffer.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RELAY_PIECE = 64 * 1024, RELAY_HIGH = 256 * 1024, REFUSAL_MAX = 64 * 1024 };

struct relay {
	struct request *request;
	struct file_call *call; /* NULL: it has ended */
	struct evbuffer *body; /* what is still to be sent of one that is ours */
	bool full; /* the agent has to take first */
	bool throttled; /* the client has to take first */
	int refused; /* a status of 400 or more, whose body is gathered; 0: none */
	struct evbuffer *refusal;
	char *content_range;
	const struct relay_shape *shape;
	void *shape_arg;
};

static struct evbuffer *
new_buffer(void)
{
	struct evbuffer *buffer = evbuffer_new();

	if (buffer == NULL)
		abort();
	return buffer;
}

static void
relay_free(struct relay *relay)
{
	if (relay->body != NULL)
		evbuffer_free(relay->body);
	if (relay->refusal != NULL)
		evbuffer_free(relay->refusal);
	if (relay->shape != NULL)
		relay->shape->free(relay->shape_arg);
	free(relay->content_range);
	free(relay);
}

static void
wait_cancel(void *wait)
{
	struct relay *relay = wait;

	file_call_cancel(relay->call);
	relay_free(relay);
}

static const struct request_wait_ops wait_ops = { .cancel = wait_cancel };

/* --- the body --- */

static void
send_piece(struct relay *relay, struct evbuffer *piece)
{
	api_count(relay->request->api, METRIC_FILE_BYTES_IN, (int64_t)evbuffer_get_length(piece));
	relay->full = file_call_send(relay->call, piece) > FILE_CALL_HIGH;
}

static void
on_body(struct http_exchange *exchange, struct evbuffer *piece, void *arg)
{
	struct relay *relay = arg;

	(void)exchange;
	if (relay->refused != 0)
		evbuffer_drain(piece, evbuffer_get_length(piece));
	else if (!relay->full)
		send_piece(relay, piece);
}

static void
on_body_end(struct http_exchange *exchange, void *arg)
{
	struct relay *relay = arg;

	(void)exchange;
	file_call_send_end(relay->call);
}

static void
send_own(struct relay *relay)
{
	while (!relay->full && evbuffer_get_length(relay->body) > 0) {
		struct evbuffer *piece = new_buffer();

		evbuffer_remove_buffer(relay->body, piece, RELAY_PIECE);
		send_piece(relay, piece);
		evbuffer_free(piece);
	}
	if (evbuffer_get_length(relay->body) == 0)
		file_call_send_end(relay->call);
}

static void
on_wanted(void *arg)
{
	struct relay *relay = arg;

	if (relay->body != NULL)
		send_own(relay);
	else
		http_exchange_stream(relay->request->exchange, on_body, on_body_end, relay);
}

static void
on_drained(void *arg)
{
	struct relay *relay = arg;

	relay->full = false;
	if (relay->body != NULL)
		send_own(relay);
	else
		http_exchange_resume(relay->request->exchange);
}

/* --- the answer --- */

static void
on_drain(struct http_exchange *exchange, void *arg)
{
	struct request *request = arg;
	struct relay *relay = request->wait;

	(void)exchange;
	relay->throttled = false;
	file_call_resume(relay->call);
}

static void
copy_headers(struct relay *relay, const struct http_head *head)
{
	static const char *const names[] = { "ETag", "Accept-Ranges", "Content-Range" };

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		const char *value = http_head_header(head, names[i]);

		if (value != NULL)
			http_exchange_add_header(relay->request->exchange, names[i], value);
	}
}

static void
send_out(struct relay *relay, struct evbuffer *out)
{
	api_count(relay->request->api, METRIC_FILE_BYTES_OUT, (int64_t)evbuffer_get_length(out));
	relay->throttled = http_exchange_send(relay->request->exchange, out) > RELAY_HIGH;
}

static void
begin_shaped(struct relay *relay)
{
	struct evbuffer *out = new_buffer();

	respond_start(relay->request, 200, relay->shape->content_type, -1, on_drain);
	relay->shape->begin(out, relay->shape_arg);
	send_out(relay, out);
	evbuffer_free(out);
}

static void
on_head(const struct http_head *head, void *arg)
{
	struct relay *relay = arg;
	const char *length = http_head_header(head, "Content-Length");
	const char *where = http_head_header(head, "Content-Range");
	int status = http_head_status(head);

	if (status >= 400) {
		relay->refused = status;
		relay->refusal = new_buffer();
		relay->content_range = where != NULL ? alloc_string(where) : NULL;
	} else if (relay->shape != NULL) {
		begin_shaped(relay);
	} else {
		copy_headers(relay, head);
		respond_start(relay->request, status, http_head_header(head, "Content-Type"),
			length != NULL ? strtoll(length, NULL, 10) : -1, on_drain);
	}
}

static void
on_data(struct evbuffer *data, void *arg)
{
	struct relay *relay = arg;
	struct evbuffer *out;

	if (relay->refused != 0) {
		if (evbuffer_get_length(relay->refusal) + evbuffer_get_length(data) <= REFUSAL_MAX)
			evbuffer_add_buffer(relay->refusal, data);
		evbuffer_drain(data, evbuffer_get_length(data));
	} else if (!relay->throttled && relay->shape != NULL) {
		out = new_buffer();
		relay->shape->piece(data, out, relay->shape_arg);
		send_out(relay, out);
		evbuffer_free(out);
	} else if (!relay->throttled) {
		send_out(relay, data);
	}
}

/* --- the end --- */

static const char *
text_of(struct json_object *body, const char *name)
{
	struct json_object *value = NULL;

	json_object_object_get_ex(body, name, &value);
	return json_object_is_type(value, json_type_string) ? json_object_get_string(value) : NULL;
}

/* The user is what only the sandbox can judge: all else was looked at before the call. */
static void
respond_unprocessable(struct request *request, const char *words)
{
	bool json = request->match.route->body != BODY_NONE;
	struct respond_fault fault = { PROBLEM_INVALID_REQUEST, json ? "body" : "query", "user", "value_error" };

	respond_fault(request, &fault, "%s", words);
}

static void
respond_refusal(struct request *request, const struct relay *relay, struct json_object *body)
{
	const char *code = text_of(body, "code"), *detail = text_of(body, "detail");
	const char *words = detail != NULL ? detail : "the sandbox's agent refused it";
	enum problem problem = problem_of_answer(relay->refused, code != NULL ? code : "");
	unsigned long long size;

	if (relay->refused == 422)
		respond_unprocessable(request, words);
	else if (problem == PROBLEM_RANGE && detail == NULL && relay->content_range != NULL &&
		sscanf(relay->content_range, "bytes */%llu", &size) == 1)
		respond_problem(request, problem, "the file has %llu bytes", size);
	else
		respond_problem(request, problem, "%s", words);
}

static void
end_refused(struct request *request, struct relay *relay)
{
	size_t len = evbuffer_get_length(relay->refusal);
	AUTO_JSON struct json_object *body = NULL;
	struct err err;

	if (len > 0)
		body = json_parse((const char *)evbuffer_pullup(relay->refusal, -1), len, &err);
	if (!json_object_is_type(body, json_type_object)) {
		json_object_put(body);
		body = json_object_new_object();
	}
	if (relay->content_range != NULL)
		http_exchange_add_header(request->exchange, "Content-Range", relay->content_range);
	respond_refusal(request, relay, body);
}

static void
end_whole(struct request *request, struct relay *relay)
{
	struct evbuffer *out;

	if (relay->shape != NULL) {
		out = new_buffer();
		relay->shape->end(out, relay->shape_arg);
		send_out(relay, out);
		evbuffer_free(out);
	}
	respond_end(request);
}

static void
on_end(const struct err *why, void *arg)
{
	struct relay *relay = arg;
	struct request *request = relay->request;

	request_wait_done(request);
	if (why == NULL && relay->refused != 0)
		end_refused(request, relay);
	else if (why == NULL)
		end_whole(request, relay);
	else if (request->started)
		respond_abort(request);
	else
		respond_err(request, why);
	relay_free(relay);
}

static const struct file_call_ops call_ops = {
	.wanted = on_wanted,
	.drained = on_drained,
	.head = on_head,
	.data = on_data,
	.end = on_end,
};

void
relay_start(struct request *request, const struct relay_ask *ask)
{
	struct relay *relay = alloc_zero(1, sizeof *relay);
	struct file_call_ask call = {
		.sandbox_id = request->match.id,
		.method = ask->method,
		.target = ask->target,
		.headers = ask->headers,
	};
	struct err err;

	relay->request = request;
	relay->body = ask->body;
	relay->shape = ask->shape;
	relay->shape_arg = ask->shape_arg;
	if (ask->body != NULL)
		call.length = (int64_t)evbuffer_get_length(ask->body);
	else if (ask->takes_body)
		call.length = http_exchange_length(request->exchange);
	if (file_call_start(request->api->service, request->tenant, &call, &call_ops, relay, &relay->call, &err) ==
		0) {
		request_wait(request, relay, &wait_ops);
		return;
	}
	relay_free(relay);
	respond_err(request, &err);
}
