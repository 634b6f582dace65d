/* problem.c - the one table of refusals. */
/* SPDX-License-Identifier: MIT */
#include "worker/problem.h"

#include "http/http_server.h"

#include <stddef.h>
#include <string.h>

static const struct problem_info problems[PROBLEM_COUNT] = {
	[PROBLEM_NONE] = { 500, "internal", 0 },
	[PROBLEM_MISSING_API_KEY] = { 401, "missing_api_key", 0 },
	[PROBLEM_INVALID_API_KEY] = { 403, "invalid_api_key", 0 },
	[PROBLEM_NOT_FOUND] = { 404, "not_found", 0 },
	[PROBLEM_METHOD_NOT_ALLOWED] = { 405, "method_not_allowed", 0 },
	[PROBLEM_SANDBOX_EXISTS] = { 409, "sandbox_exists", 0 },
	[PROBLEM_SANDBOX_NOT_READY] = { 409, "sandbox_not_ready", 0 },
	[PROBLEM_CONFLICT] = { 409, "conflict", 1 },
	[PROBLEM_IDEMPOTENCY_CONFLICT] = { 409, "idempotency_conflict", 0 },
	[PROBLEM_OUTCOME_LOST] = { 410, "outcome_lost", 0 },
	[PROBLEM_DENIED] = { 403, "denied", 0 },
	[PROBLEM_BAD_REQUEST] = { 400, "bad_request", 0 },
	[PROBLEM_UPGRADE_REQUIRED] = { 426, "upgrade_required", 0 },
	[PROBLEM_PAYLOAD_TOO_LARGE] = { 413, "payload_too_large", 0 },
	[PROBLEM_OFFSET_OUT_OF_RANGE] = { 416, "offset_out_of_range", 0 },
	[PROBLEM_OUTPUT_GONE] = { 410, "output_gone", 0 },
	[PROBLEM_STDIN_CLOSED] = { 409, "stdin_closed", 0 },
	[PROBLEM_JOB_NOT_RUNNING] = { 409, "job_not_running", 0 },
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
	[PROBLEM_IS_DIRECTORY] = { 400, "is_directory", 0 },
	[PROBLEM_NOT_DIRECTORY] = { 400, "not_directory", 0 },
	[PROBLEM_NOT_REGULAR] = { 400, "not_regular", 0 },
	[PROBLEM_NAME_TOO_LONG] = { 400, "name_too_long", 0 },
	[PROBLEM_TOO_MANY_LINKS] = { 400, "too_many_links", 0 },
	[PROBLEM_FILE_INVALID] = { 400, "invalid", 0 },
	[PROBLEM_PERMISSION_DENIED] = { 403, "permission_denied", 0 },
	[PROBLEM_READ_ONLY] = { 403, "read_only", 0 },
	[PROBLEM_EXISTS] = { 409, "exists", 0 },
	[PROBLEM_NOT_EMPTY] = { 409, "not_empty", 0 },
	[PROBLEM_BUSY] = { 409, "busy", 0 },
	[PROBLEM_RANGE] = { 416, "range_not_satisfiable", 0 },
	[PROBLEM_NO_SPACE] = { 507, "no_space", 0 },
	[PROBLEM_QUOTA] = { 507, "quota", 0 },
	[PROBLEM_IO_ERROR] = { 500, "io_error", 0 },
};

static const enum problem by_err[ERR_CODE_COUNT] = {
	[ERR_INVALID] = PROBLEM_INVALID_REQUEST,
	[ERR_NOT_FOUND] = PROBLEM_NOT_FOUND,
	[ERR_EXISTS] = PROBLEM_SANDBOX_EXISTS,
	[ERR_CONFLICT] = PROBLEM_CONFLICT,
	[ERR_KEY_CONFLICT] = PROBLEM_IDEMPOTENCY_CONFLICT,
	[ERR_OUTCOME_LOST] = PROBLEM_OUTCOME_LOST,
	[ERR_NOT_READY] = PROBLEM_SANDBOX_NOT_READY,
	[ERR_DENIED] = PROBLEM_DENIED,
	[ERR_TOO_LARGE] = PROBLEM_PAYLOAD_TOO_LARGE,
	[ERR_RANGE] = PROBLEM_OFFSET_OUT_OF_RANGE,
	[ERR_GONE] = PROBLEM_OUTPUT_GONE,
	[ERR_CLOSED] = PROBLEM_STDIN_CLOSED,
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

enum problem
problem_of_answer(int status, const char *code)
{
	if (status == 404)
		return PROBLEM_NOT_FOUND;
	if (status == 416)
		return PROBLEM_RANGE;
	if (status == 503)
		return *code == '\0' || strcmp(code, "busy") == 0 ? PROBLEM_QUEUE_FULL : PROBLEM_UNAVAILABLE;
	for (enum problem problem = PROBLEM_IS_DIRECTORY; problem < PROBLEM_COUNT; problem++)
		if (problems[problem].status == status &&
			(*code == '\0' || strcmp(problems[problem].code, code) == 0))
			return problem;
	return PROBLEM_AGENT_UNREACHABLE;
}

const char *
problem_code_of_status(int status)
{
	const char *code = http_status_code(status);

	if (code != NULL)
		return code;
	return status < 500 ? "bad_request" : "internal";
}
