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
	PROBLEM_IDEMPOTENCY_CONFLICT,
	PROBLEM_OUTCOME_LOST,
	PROBLEM_DENIED,
	PROBLEM_BAD_REQUEST,
	PROBLEM_UPGRADE_REQUIRED,
	PROBLEM_PAYLOAD_TOO_LARGE,
	PROBLEM_OFFSET_OUT_OF_RANGE,
	PROBLEM_OUTPUT_GONE,
	PROBLEM_STDIN_CLOSED,
	PROBLEM_JOB_NOT_RUNNING,
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
	/* Of files. */
	PROBLEM_IS_DIRECTORY,
	PROBLEM_NOT_DIRECTORY,
	PROBLEM_NOT_REGULAR,
	PROBLEM_NAME_TOO_LONG,
	PROBLEM_TOO_MANY_LINKS,
	PROBLEM_FILE_INVALID,
	PROBLEM_PERMISSION_DENIED,
	PROBLEM_READ_ONLY,
	PROBLEM_EXISTS,
	PROBLEM_NOT_EMPTY,
	PROBLEM_BUSY,
	PROBLEM_RANGE,
	PROBLEM_NO_SPACE,
	PROBLEM_QUOTA,
	PROBLEM_IO_ERROR,
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
/*
 * What an agent's refusal of a file call is here; it has the same words. One that it cannot mean, as "denied",
 * is PROBLEM_AGENT_UNREACHABLE: that is not the agent we know. code "": any of that status (HEAD tells no more).
 */
enum problem problem_of_answer(int status, const char *code);
/* The word for a message that the HTTP codec refused by itself. */
const char *problem_code_of_status(int status);

#endif
