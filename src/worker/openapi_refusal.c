/* openapi_refusal.c - problem.c's table, and what the codec refuses, as OpenAPI responses. */
/* SPDX-License-Identifier: MIT */
#include "worker/openapi_refusal.h"

#include "worker/problem.h"
#include "worker/router.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

enum { CODES_MAX = 12, STATUS_MIN = 400, STATUS_MAX = 599 };

/* What one response stands for. */
struct refusal {
	int status;
	const char *codes[CODES_MAX];
	size_t count;
	bool asks_again; /* one of them has Retry-After */
};

/* Refused by the codec, or whatever was asked for. */
static const char *const of_all[] = { "bad_request", "request_timeout", "uri_too_long", "headers_too_large",
	"content_coding_unsupported", "expectation_failed", "http_version_unsupported", "unsupported",
	"unavailable", "internal" };
static const char *const of_keys[] = { "missing_api_key", "invalid_api_key" };
static const char *const of_bodies[] = { "payload_too_large", "invalid_json", "invalid_request" };
static const int codec_statuses[] = { 400, 408, 413, 414, 415, 417, 431, 501, 503, 505 };

#define LENGTH(list) (sizeof(list) / sizeof *(list))

static bool
is_in(const char *code, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(list[i], code) == 0)
			return true;
	}
	return false;
}

static bool
is_named(const char *code, struct json_object *names)
{
	for (size_t i = 0; names != NULL && i < json_object_array_length(names); i++) {
		if (strcmp(json_object_get_string(json_object_array_get_idx(names, i)), code) == 0)
			return true;
	}
	return false;
}

static bool
is_wanted(const char *code, struct json_object *names, const struct route *route)
{
	if (is_in(code, of_all, LENGTH(of_all)) || is_named(code, names))
		return true;
	if (route->auth != ROUTE_OPEN && is_in(code, of_keys, LENGTH(of_keys)))
		return true;
	if (route->body != BODY_NONE && is_in(code, of_bodies, LENGTH(of_bodies)))
		return true;
	return strchr(route->pattern, '{') != NULL && strcmp(code, "not_found") == 0;
}

static void
refusal_add(struct refusal *refusal, const char *code, int retry_after_s)
{
	refusal->asks_again |= retry_after_s > 0;
	if (!is_in(code, refusal->codes, refusal->count) && refusal->count < CODES_MAX)
		refusal->codes[refusal->count++] = code;
}

static struct refusal
refusal_collect(int status, struct json_object *names, const struct route *route)
{
	struct refusal refusal = { .status = status };

	for (enum problem problem = PROBLEM_NONE + 1; problem < PROBLEM_COUNT; problem++) {
		const struct problem_info *info = problem_info(problem);

		if (info->status == status && is_wanted(info->code, names, route))
			refusal_add(&refusal, info->code, info->retry_after_s);
	}
	for (size_t i = 0; i < LENGTH(codec_statuses); i++) {
		if (codec_statuses[i] == status && is_wanted(problem_code_of_status(status), names, route))
			refusal_add(&refusal, problem_code_of_status(status), 0);
	}
	return refusal;
}

bool
openapi_has_code(const char *code)
{
	for (enum problem problem = PROBLEM_NONE + 1; problem < PROBLEM_COUNT; problem++) {
		if (strcmp(problem_info(problem)->code, code) == 0)
			return true;
	}
	for (size_t i = 0; i < LENGTH(codec_statuses); i++) {
		if (strcmp(problem_code_of_status(codec_statuses[i]), code) == 0)
			return true;
	}
	return false;
}

/* --- one response --- */

static void
add_reference(struct json_object *object, const char *name, const char *target)
{
	struct json_object *reference = json_object_new_object();

	json_object_object_add(reference, "$ref", json_object_new_string(target));
	json_object_object_add(object, name, reference);
}

static const char *
words_of(struct json_object *words, const char *code)
{
	struct json_object *text = NULL;

	json_object_object_get_ex(words, code, &text);
	return text != NULL ? json_object_get_string(text) : "";
}

/* "code: words; code: words" */
static struct json_object *
description(const struct refusal *refusal, struct json_object *words)
{
	char text[1024] = "";
	size_t len = 0;

	for (size_t i = 0; i < refusal->count && len < sizeof text; i++)
		len += (size_t)snprintf(text + len, sizeof text - len, "%s%s: %s.", i > 0 ? " " : "",
			refusal->codes[i], words_of(words, refusal->codes[i]));
	return json_object_new_string(text);
}

static struct json_object *
headers(const struct refusal *refusal)
{
	struct json_object *object = json_object_new_object();

	add_reference(object, "X-Request-ID", "#/components/headers/RequestId");
	if (refusal->asks_again)
		add_reference(object, "Retry-After", "#/components/headers/RetryAfter");
	if (refusal->status == 401)
		add_reference(object, "WWW-Authenticate", "#/components/headers/Authenticate");
	return object;
}

/* The shape of all refusals, with one of these codes. */
static struct json_object *
schema(const struct refusal *refusal)
{
	struct json_object *object = json_object_new_object(), *properties = json_object_new_object();
	struct json_object *code = json_object_new_object(), *list = json_object_new_array();
	struct json_object *all = json_object_new_array(), *base = json_object_new_object();

	for (size_t i = 0; i < refusal->count; i++)
		json_object_array_add(list, json_object_new_string(refusal->codes[i]));
	json_object_object_add(code, "enum", list);
	json_object_object_add(properties, "code", code);
	json_object_object_add(base, "$ref",
		json_object_new_string(
			refusal->status == 422 ? "#/components/schemas/Faults" : "#/components/schemas/Problem"));
	json_object_array_add(all, base);
	json_object_object_add(object, "allOf", all);
	json_object_object_add(object, "properties", properties);
	return object;
}

static struct json_object *
example_detail(const struct refusal *refusal, const char *text)
{
	struct json_object *list, *fault, *loc;

	if (refusal->status != 422)
		return json_object_new_string(text);
	list = json_object_new_array();
	fault = json_object_new_object();
	loc = json_object_new_array();
	json_object_array_add(loc, json_object_new_string("body"));
	json_object_object_add(fault, "loc", loc);
	json_object_object_add(fault, "msg", json_object_new_string(text));
	json_object_object_add(fault, "type", json_object_new_string("value_error"));
	json_object_array_add(list, fault);
	return list;
}

static struct json_object *
examples(const struct refusal *refusal, struct json_object *words)
{
	struct json_object *object = json_object_new_object();

	for (size_t i = 0; i < refusal->count; i++) {
		struct json_object *value = json_object_new_object(), *example = json_object_new_object();
		const char *code = refusal->codes[i];

		json_object_object_add(value, "detail", example_detail(refusal, words_of(words, code)));
		json_object_object_add(value, "code", json_object_new_string(code));
		json_object_object_add(
			value, "request_id", json_object_new_string("0b0e7a52-6f3c-4c5b-9d0a-6f1f0a5d1c77"));
		json_object_object_add(example, "value", value);
		json_object_object_add(object, code, example);
	}
	return object;
}

static struct json_object *
response(const struct refusal *refusal, struct json_object *words)
{
	struct json_object *object = json_object_new_object(), *content = json_object_new_object();
	struct json_object *json = json_object_new_object();

	json_object_object_add(json, "schema", schema(refusal));
	json_object_object_add(json, "examples", examples(refusal, words));
	json_object_object_add(content, "application/json", json);
	json_object_object_add(object, "description", description(refusal, words));
	json_object_object_add(object, "headers", headers(refusal));
	json_object_object_add(object, "content", content);
	return object;
}

/* "409.conflict.sandbox_exists": the same refusals are the same component. */
static void
refusal_name(const struct refusal *refusal, char *ret_name, size_t size)
{
	size_t len = (size_t)snprintf(ret_name, size, "%d", refusal->status);

	for (size_t i = 0; i < refusal->count && len < size; i++)
		len += (size_t)snprintf(ret_name + len, size - len, ".%s", refusal->codes[i]);
}

void
openapi_add_refusals(struct json_object *operation, const struct route *route, struct json_object *words,
	struct json_object *responses)
{
	struct json_object *names = NULL, *own = json_object_object_get(operation, "responses");

	json_object_object_get_ex(operation, "x-problems", &names);
	for (int status = STATUS_MIN; status <= STATUS_MAX; status++) {
		struct refusal refusal = refusal_collect(status, names, route);
		char number[8], name[384], target[512];

		snprintf(number, sizeof number, "%d", status);
		if (refusal.count == 0 || json_object_object_get_ex(own, number, NULL))
			continue; /* none, or one that the route describes itself */
		refusal_name(&refusal, name, sizeof name);
		if (!json_object_object_get_ex(responses, name, NULL))
			json_object_object_add(responses, name, response(&refusal, words));
		snprintf(target, sizeof target, "#/components/responses/%s", name);
		add_reference(own, number, target);
	}
}
