/* problem.c - the one table of refusals. */
/* SPDX-License-Identifier: MIT */
#include "worker/problem.h"

#include <stddef.h>

static const struct problem_info problems[PROBLEM_COUNT] = {
	[PROBLEM_NONE] = { 500, "internal", 0 },
	[PROBLEM_MISSING_API_KEY] = { 401, "missing_api_key", 0 },
	[PROBLEM_INVALID_API_KEY] = { 403, "invalid_api_key", 0 },
	[PROBLEM_NOT_FOUND] = { 404, "not_found", 0 },
	[PROBLEM_METHOD_NOT_ALLOWED] = { 405, "method_not_allowed", 0 },
	[PROBLEM_SANDBOX_EXISTS] = { 409, "sandbox_exists", 0 },
	[PROBLEM_SANDBOX_NOT_READY] = { 409, "sandbox_not_ready", 0 },
	[PROBLEM_CONFLICT] = { 409, "conflict", 1 },
	[PROBLEM_DENIED] = { 403, "denied", 0 },
	[PROBLEM_PAYLOAD_TOO_LARGE] = { 413, "payload_too_large", 0 },
	[PROBLEM_INVALID_JSON] = { 422, "invalid_json", 0 },
	[PROBLEM_INVALID_REQUEST] = { 422, "invalid_request", 0 },
	[PROBLEM_IMAGE_INVALID] = { 422, "image_invalid", 0 },
	[PROBLEM_IMAGE_NOT_ALLOWED] = { 403, "image_not_allowed", 0 },
	[PROBLEM_QUEUE_FULL] = { 503, "queue_full", 1 },
	[PROBLEM_NO_CAPACITY] = { 503, "no_capacity", 10 },
	[PROBLEM_AGENT_UNREACHABLE] = { 503, "agent_unreachable", 2 },
	[PROBLEM_UNAVAILABLE] = { 503, "unavailable", 1 },
	[PROBLEM_INSUFFICIENT_STORAGE] = { 507, "insufficient_storage", 0 },
	[PROBLEM_WAIT_TIMEOUT] = { 408, "wait_timeout", 0 },
	[PROBLEM_UNSUPPORTED] = { 501, "unsupported", 0 },
	[PROBLEM_INTERNAL] = { 500, "internal", 0 },
};

static const enum problem by_err[ERR_CODE_COUNT] = {
	[ERR_INVALID] = PROBLEM_INVALID_REQUEST,
	[ERR_NOT_FOUND] = PROBLEM_NOT_FOUND,
	[ERR_EXISTS] = PROBLEM_SANDBOX_EXISTS,
	[ERR_CONFLICT] = PROBLEM_CONFLICT,
	[ERR_NOT_READY] = PROBLEM_SANDBOX_NOT_READY,
	[ERR_DENIED] = PROBLEM_DENIED,
	[ERR_TOO_LARGE] = PROBLEM_PAYLOAD_TOO_LARGE,
	[ERR_BUSY] = PROBLEM_QUEUE_FULL,
	[ERR_NO_CAPACITY] = PROBLEM_NO_CAPACITY,
	[ERR_NO_SPACE] = PROBLEM_INSUFFICIENT_STORAGE,
	[ERR_STALE] = PROBLEM_CONFLICT,
	[ERR_TIMEOUT] = PROBLEM_WAIT_TIMEOUT,
	[ERR_UNAVAILABLE] = PROBLEM_UNAVAILABLE,
	[ERR_AGENT_UNREACHABLE] = PROBLEM_AGENT_UNREACHABLE,
	[ERR_DELETED] = PROBLEM_NOT_FOUND, /* to a client a deleted sandbox never was */
	[ERR_UNSUPPORTED] = PROBLEM_UNSUPPORTED,
	[ERR_INTERNAL] = PROBLEM_INTERNAL,
};

const struct problem_info *
problem_info(enum problem problem)
{
	return &problems[problem < PROBLEM_COUNT ? problem : PROBLEM_INTERNAL];
}

enum problem
problem_of_err(enum err_code code)
{
	if (code >= ERR_CODE_COUNT || by_err[code] == PROBLEM_NONE)
		return PROBLEM_INTERNAL;
	return by_err[code];
}

const char *
problem_code_of_status(int status)
{
	static const struct {
		int status;
		const char *code;
	} words[] = {
		{ 400, "bad_request" },
		{ 408, "request_timeout" },
		{ 413, "payload_too_large" },
		{ 414, "uri_too_long" },
		{ 417, "expectation_failed" },
		{ 431, "headers_too_large" },
		{ 501, "unsupported" },
		{ 503, "unavailable" },
		{ 505, "http_version_unsupported" },
	};

	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
		if (words[i].status == status)
			return words[i].code;
	}
	return status < 500 ? "bad_request" : "internal";
}
