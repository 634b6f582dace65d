/* body.c - bounds, strict JSON, an object: else 413 or 422 before any handler sees it. */
/* SPDX-License-Identifier: MIT */
#include "worker/body.h"

#include "base/err.h"
#include "base/json.h"
#include "conf/config.h"
#include "http/http_server.h"
#include "worker/api.h"
#include "worker/request.h"
#include "worker/respond.h"

#include <event2/buffer.h>
#include <json-c/json.h>

static int
body_parse(struct request *request, struct evbuffer *body, struct err *err)
{
	size_t len = evbuffer_get_length(body);

	if (len == 0 && request->match.route->body == BODY_OPTIONAL)
		request->body = json_object_new_object();
	else if (len == 0)
		return err_set(err, ERR_INVALID, "the body is empty; a JSON object is needed");
	else
		request->body = json_parse((const char *)evbuffer_pullup(body, -1), len, err);
	return request->body != NULL ? 0 : -1;
}

static void
body_on_collected(struct http_exchange *exchange, struct evbuffer *body, void *arg)
{
	static const struct respond_fault not_json = { PROBLEM_INVALID_JSON, "body", NULL, "json_invalid" };
	static const struct respond_fault not_object = { PROBLEM_INVALID_REQUEST, "body", NULL, "type_error" };
	struct request *request = arg;
	struct err err;

	(void)exchange;
	if (body_parse(request, body, &err) != 0)
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
	http_exchange_collect(request->exchange, (size_t)max, body_on_collected, request);
}
