/*
 * problem.h - every refusal the REST API knows: its status, its word, when to try again.
 *
 * This is the only place where a kind of failure (enum err_code) becomes an HTTP
 * status. The words are part of the API: they are added, never changed.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_WORKER_PROBLEM_H
#define ORCHARD_WORKER_PROBLEM_H

#include "base/err.h"

enum problem {
	PROBLEM_NONE,
	PROBLEM_MISSING_API_KEY,
	PROBLEM_INVALID_API_KEY,
	PROBLEM_NOT_FOUND,
	PROBLEM_METHOD_NOT_ALLOWED,
	PROBLEM_SANDBOX_EXISTS,
	PROBLEM_SANDBOX_NOT_READY,
	PROBLEM_CONFLICT,
	PROBLEM_DENIED,
	PROBLEM_PAYLOAD_TOO_LARGE,
	PROBLEM_INVALID_JSON,
	PROBLEM_INVALID_REQUEST,
	PROBLEM_IMAGE_INVALID,
	PROBLEM_IMAGE_NOT_ALLOWED,
	PROBLEM_QUEUE_FULL,
	PROBLEM_NO_CAPACITY,
	PROBLEM_AGENT_UNREACHABLE,
	PROBLEM_UNAVAILABLE,
	PROBLEM_INSUFFICIENT_STORAGE,
	PROBLEM_WAIT_TIMEOUT,
	PROBLEM_UNSUPPORTED,
	PROBLEM_INTERNAL,
	PROBLEM_COUNT
};

struct problem_info {
	int status;
	const char *code;
	int retry_after_s; /* 0: no Retry-After */
};

const struct problem_info *problem_info(enum problem problem);
/* Never PROBLEM_NONE: what has no line of its own is PROBLEM_INTERNAL. */
enum problem problem_of_err(enum err_code code);
/* The word for a message that the HTTP codec refused by itself. */
const char *problem_code_of_status(int status);

#endif
