/* respond.c - writes an answer, its log line and its count; then the request ends. */
/* SPDX-License-Identifier: MIT */
#include "worker/respond.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "http/http_server.h"
#include "worker/api.h"
#include "worker/request.h"

#include <event2/buffer.h>
#include <json-c/json.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { COPY_MAX = 16 * 1024 }; /* a bigger body is sent from where it stands */

static const char media_type_json[] = "application/json";

static enum log_level
level_of(enum http_method method, int status)
{
	if (status >= 500)
		return LOG_LEVEL_WARN;
	return method == HTTP_GET || method == HTTP_HEAD || method == HTTP_OPTIONS ? LOG_LEVEL_DEBUG
										   : LOG_LEVEL_INFO;
}

/* What every answer has in common; the head may not be read after the answer. */
static void
answer_tell(struct request *request, int status, const char *why)
{
	const struct http_head *head = http_exchange_head(request->exchange);
	struct log_ctx ctx = request_log_ctx(request);
	double ms = (double)(clock_boot_us() - request->start_us) / 1000;

	log_write(level_of(http_head_method(head), status), &ctx, "%s %.256s %d %.3f ms%s%.512s",
		http_head_method_name(head), http_head_path(head), status, ms, why != NULL ? ": " : "",
		why != NULL ? why : "");
	api_count_response(request->api, status);
	http_exchange_add_header(request->exchange, "X-Request-ID", request->id);
}

static void
answer_begin(struct request *request, int status, const char *why)
{
	answer_tell(request, status, why);
	http_exchange_on_gone(request->exchange, NULL, NULL);
}

static void
free_json_reference(const void *data, size_t len, void *arg)
{
	(void)data;
	(void)len;
	json_object_put(arg);
}

/* The text of a JSON object lives as long as the object, so a big one is not copied. */
static void
send_big(struct http_exchange *exchange, int status, struct json_object *body, const char *text, size_t len)
{
	struct evbuffer *buffer = evbuffer_new();

	if (buffer == NULL || evbuffer_add_reference(buffer, text, len, free_json_reference, body) != 0)
		abort();
	http_exchange_respond(exchange, status, media_type_json, buffer);
	evbuffer_free(buffer);
}

static void
send_json(struct request *request, int status, struct json_object *body, const char *why)
{
	size_t len;
	const char *text = json_text(body, &len);

	answer_begin(request, status, why);
	if (len > COPY_MAX) {
		send_big(request->exchange, status, body, text, len);
	} else {
		http_exchange_respond_text(request->exchange, status, media_type_json, text, len);
		json_object_put(body);
	}
	request_free(request);
}

void
respond_json(struct request *request, int status, struct json_object *body)
{
	send_json(request, status, body, NULL);
}

void
respond_text(struct request *request, int status, const char *content_type, const char *text, size_t len)
{
	answer_begin(request, status, NULL);
	http_exchange_respond_text(request->exchange, status, content_type, text, len);
	request_free(request);
}

void
respond_buffer(struct request *request, int status, const char *content_type, struct evbuffer *body)
{
	answer_begin(request, status, NULL);
	http_exchange_respond(request->exchange, status, content_type, body);
	request_free(request);
}

void
respond_start(struct request *request, int status, const char *content_type, int64_t length,
	void (*on_drain)(struct http_exchange *exchange, void *arg))
{
	answer_tell(request, status, NULL);
	request->started = true;
	http_exchange_start(request->exchange, status, content_type, length, on_drain, request);
}

void
respond_end(struct request *request)
{
	http_exchange_on_gone(request->exchange, NULL, NULL);
	http_exchange_end(request->exchange);
	request_free(request);
}

void
respond_abort(struct request *request)
{
	http_exchange_abort(request->exchange);
	request_free(request);
}

/* Takes detail. */
static void
send_problem(struct request *request, enum problem problem, struct json_object *detail, const char *why)
{
	const struct problem_info *info = problem_info(problem);
	struct json_object *body = json_object_new_object();
	char seconds[16];

	json_object_object_add(body, "detail", detail);
	json_object_object_add(body, "code", json_object_new_string(info->code));
	json_object_object_add(body, "request_id", json_object_new_string(request->id));
	if (*request->job_id != '\0') /* it was recorded: the client must not send it again */
		json_object_object_add(body, "job_id", json_object_new_string(request->job_id));
	if (info->retry_after_s > 0) {
		snprintf(seconds, sizeof seconds, "%d", info->retry_after_s);
		http_exchange_add_header(request->exchange, "Retry-After", seconds);
	}
	if (info->status == 401)
		http_exchange_add_header(request->exchange, "WWW-Authenticate", "Bearer");
	send_json(request, info->status, body, why);
}

static void
send_fault(struct request *request, const struct respond_fault *fault, const char *msg)
{
	struct json_object *list = json_object_new_array(), *item = json_object_new_object();
	struct json_object *loc = json_object_new_array();

	json_object_array_add(loc, json_object_new_string(fault->place));
	if (fault->field != NULL)
		json_object_array_add(loc, json_object_new_string(fault->field));
	json_object_object_add(item, "loc", loc);
	json_object_object_add(item, "msg", json_object_new_string(msg));
	json_object_object_add(item, "type", json_object_new_string(fault->type));
	json_object_array_add(list, item);
	send_problem(request, fault->problem, list, msg);
}

static void
send_message(struct request *request, enum problem problem, const char *msg)
{
	struct respond_fault fault = { problem, "body", NULL, "value_error" };

	if (problem_info(problem)->status == 422)
		send_fault(request, &fault, msg);
	else if (problem == PROBLEM_INTERNAL)
		send_problem(request, problem,
			json_object_new_string("internal error; the server's log has it under this request_id"),
			msg);
	else
		send_problem(request, problem, json_object_new_string(msg), msg);
}

void
respond_problem(struct request *request, enum problem problem, const char *fmt, ...)
{
	char msg[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg, sizeof msg, fmt, ap);
	va_end(ap);
	text_utf8_mend(msg);
	send_message(request, problem, msg);
}

void
respond_err(struct request *request, const struct err *err)
{
	send_message(request, problem_of_err(err->code), err->msg);
}

void
respond_fault(struct request *request, const struct respond_fault *fault, const char *fmt, ...)
{
	char msg[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg, sizeof msg, fmt, ap);
	va_end(ap);
	text_utf8_mend(msg);
	send_fault(request, fault, msg);
}

void
respond_faults(struct request *request, struct json_reader *reader)
{
	struct json_object *faults = json_object_get(reader->faults);

	json_reader_fini(reader);
	send_problem(request, PROBLEM_INVALID_REQUEST, faults, "the body has faults");
}
