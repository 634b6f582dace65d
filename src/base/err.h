/* err.h - how a function says why it failed. No allocation, safe after fork. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_BASE_ERR_H
#define ORCHARD_BASE_ERR_H

/*
 * What kind of failure it is. The worker maps each kind once to an HTTP status
 * and a stable `code`; nobody below the worker knows an HTTP status.
 */
enum err_code {
	ERR_NONE,
	ERR_INVALID, /* the caller's input is wrong */
	ERR_NOT_FOUND,
	ERR_EXISTS, /* that name is taken by something else */
	ERR_CONFLICT, /* the state does not allow it */
	ERR_KEY_CONFLICT, /* an Idempotency-Key was used for another request */
	ERR_OUTCOME_LOST, /* it was asked for before, and how that ended is not known any more */
	ERR_NOT_READY, /* the sandbox is not ready (yet, or any more) */
	ERR_DENIED, /* permission or identity */
	ERR_TOO_LARGE,
	ERR_RANGE, /* beyond the end of what there is */
	ERR_GONE, /* it was there and is not kept any more */
	ERR_CLOSED, /* nothing goes in there any more */
	ERR_BUSY, /* a queue or a limit is full; try again soon */
	ERR_NO_CAPACITY, /* this host has no room for it */
	ERR_NO_SPACE, /* disk or quota is full */
	ERR_STALE, /* a fence, lease or handle was overtaken */
	ERR_TIMEOUT,
	ERR_UNAVAILABLE, /* a part of the service does not answer */
	ERR_AGENT_UNREACHABLE,
	ERR_DELETED, /* the sandbox was deleted meanwhile */
	ERR_UNSUPPORTED, /* this host or build cannot do it */
	ERR_INTERNAL,
	ERR_CODE_COUNT
};

struct err {
	enum err_code code;
	char msg[512]; /* one sentence for people: what, and the cure; valid UTF-8 */
};

/* Fills *err and returns -1, so failing reads `return err_set(...)`. */
int err_set(struct err *err, enum err_code code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* err_set() with ": strerror(errnum)" appended; ENOSPC, EDQUOT, EACCES... keep their own code. */
int err_set_errno(struct err *err, int errnum, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Puts "what: " before the message, keeps the code; returns -1. */
int err_prefix(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Stable snake_case name: "not_found", "busy"... Never NULL. */
const char *err_code_name(enum err_code code);

#endif
