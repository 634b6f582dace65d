/* answer.c - JSON bodies; after an answer the exchange belongs to the connection again. */
/* SPDX-License-Identifier: MIT */
#include "agent/answer.h"

#include "agent/job.h"
#include "base/json.h"
#include "http/http_server.h"

#include <event2/buffer.h>
#include <json-c/json.h>
#include <stdlib.h>

static const char answer_type[] = "application/json";

void
answer_json(struct http_exchange *exchange, int status, struct json_object *body)
{
	size_t len;
	const char *text = json_text(body, &len);

	http_exchange_on_gone(exchange, NULL, NULL);
	http_exchange_respond_text(exchange, status, answer_type, text, len);
	json_object_put(body);
}

void
answer_body(struct http_exchange *exchange, struct evbuffer *body)
{
	http_exchange_on_gone(exchange, NULL, NULL);
	http_exchange_respond(exchange, 200, answer_type, body);
	evbuffer_free(body);
}

void
answer_job(struct http_exchange *exchange, const struct job *job)
{
	struct evbuffer *body = evbuffer_new();

	if (body == NULL)
		abort();
	job_write(job, body);
	answer_body(exchange, body);
}

void
answer_error(struct http_exchange *exchange, int status, const char *code, const char *detail)
{
	struct json_object *body = json_object_new_object();

	json_object_object_add(body, "code", json_object_new_string(code));
	json_object_object_add(body, "detail", json_object_new_string(detail));
	answer_json(exchange, status, body);
}
