/* body.c - bounds, strict JSON, an object: else 413, 422 or 503 before any handler sees it. */
/* SPDX-License-Identifier: MIT */
#include "worker/body.h"

#include "base/alloc.h"
#include "base/err.h"
#include "base/json.h"
#include "conf/config.h"
#include "http/http_server.h"
#include "worker/api.h"
#include "worker/request.h"
#include "worker/respond.h"

#include <event2/buffer.h>
#include <json-c/json.h>
#include <malloc.h>
#include <stdlib.h>

enum {
	SIZE_FIRST = 4096,
	FREE_BYTES = 16 * 1024, /* of each body: not counted */
	TRIM_BYTES = 1024 * 1024 /* such a body leaves holes that are worth giving back */
};

/* --- memory --- */

static void
hold(struct request *request, int64_t change)
{
	request->input.held += change;
	request->api->body_bytes += change;
	api_count(request->api, METRIC_BODY_BYTES, change);
}

/* False: the others have taken it. */
static bool
admit(struct request *request, size_t len)
{
	const struct api *api = request->api;
	int64_t held = request->input.held;
	int64_t more = len > FREE_BYTES ? (int64_t)(len - FREE_BYTES) - held : 0;

	if (more == 0)
		return true;
	if (api->body_bytes > held && api->body_bytes + more > api->config->body_memory_bytes)
		return false;
	hold(request, more);
	return true;
}

/* Copied, so that bytes which come one by one take no more room than others. */
static void
append(struct body *input, struct evbuffer *piece)
{
	size_t more = evbuffer_get_length(piece);

	if (input->size - input->len < more) {
		input->size = input->size == 0 ? SIZE_FIRST : 2 * input->size;
		if (input->size < input->len + more)
			input->size = input->len + more;
		input->bytes = alloc_resize(input->bytes, input->size);
	}
	evbuffer_remove(piece, input->bytes + input->len, more);
	input->len += more;
}

static void
drop_bytes(struct body *input)
{
	free(input->bytes);
	input->bytes = NULL;
	input->len = input->size = 0;
}

void
body_release(struct request *request)
{
	int64_t held = request->input.held;

	drop_bytes(&request->input);
	if (held == 0)
		return;
	hold(request, -held);
	if (held >= TRIM_BYTES)
		malloc_trim(0);
}

/* --- taking --- */

static void
on_data(struct http_exchange *exchange, struct evbuffer *piece, void *arg)
{
	struct request *request = arg;
	size_t len = request->input.len + evbuffer_get_length(piece);

	(void)exchange;
	if (len > request->input.max) {
		respond_problem(
			request, PROBLEM_PAYLOAD_TOO_LARGE, "the body has more than %zu bytes", request->input.max);
	} else if (!admit(request, len)) {
		api_count(request->api, METRIC_BODIES_REFUSED, 1);
		respond_problem(request, PROBLEM_UNAVAILABLE,
			"other requests' bodies have taken this process's memory for them (body_memory_bytes); ask "
			"again");
	} else {
		append(&request->input, piece);
	}
}

static void
on_end(struct http_exchange *exchange, void *arg)
{
	struct request *request = arg;

	(void)exchange;
	request->input.done(request);
}

void
body_take(struct request *request, size_t max, void (*done)(struct request *request))
{
	request->input.max = max;
	request->input.done = done;
	http_exchange_stream(request->exchange, on_data, on_end, request);
}

/* --- JSON --- */

static int
parse(struct request *request, struct err *err)
{
	const struct body *input = &request->input;

	if (input->len == 0 && request->match.route->body == BODY_OPTIONAL)
		request->body = json_object_new_object();
	else if (input->len == 0)
		return err_set(err, ERR_INVALID, "the body is empty; a JSON object is needed");
	else if (request->match.route->body == BODY_NAMES)
		request->body = json_parse_names(input->bytes, input->len, err);
	else
		request->body = json_parse(input->bytes, input->len, err);
	return request->body != NULL ? 0 : -1;
}

static void
on_taken(struct request *request)
{
	static const struct respond_fault not_json = { PROBLEM_INVALID_JSON, "body", NULL, "json_invalid" };
	static const struct respond_fault not_object = { PROBLEM_INVALID_REQUEST, "body", NULL, "type_error" };
	struct err err;
	int rc = parse(request, &err);

	drop_bytes(&request->input);
	if (rc != 0)
		respond_fault(request, &not_json, "%s", err.msg);
	else if (!json_object_is_type(request->body, json_type_object))
		respond_fault(request, &not_object, "the body must be a JSON object");
	else
		request->match.route->handle(request);
}

void
body_collect(struct request *request)
{
	int64_t max = request->api->config->max_body_bytes;

	if (http_exchange_length(request->exchange) > max) {
		respond_problem(request, PROBLEM_PAYLOAD_TOO_LARGE,
			"the body has %lld bytes, at most %lld are taken (max_body_bytes)",
			(long long)http_exchange_length(request->exchange), (long long)max);
		return;
	}
	body_take(request, (size_t)max, on_taken);
}
