/*
 * helper_side.h - what a helper process has of its call: the request's body, the answer.
 *
 * Everything here blocks. run() reads as much of the body as it wants (an answer may come before its end),
 * answers exactly once and returns; returning without an answer is a 500. Reading the body is what makes the
 * client send it ("Expect: 100-continue"), so a call that can be refused should be refused before.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_FILES_HELPER_SIDE_H
#define ORCHARD_AGENT_FILES_HELPER_SIDE_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct helper_side;
struct json_object;

/* --- the request --- */
/* Content-Length, 0 for none, -1 for a chunked body. */
int64_t helper_length(const struct helper_side *side);
/* The next bytes of the body, at most size; 0: all of it has come; -1: it was cut, and nobody waits any more. */
ssize_t helper_read(struct helper_side *side, void *buffer, size_t size) MUSTCHECK;
/* 0, or the errno with which the working directory could not be entered; then the helper stands in `/`. */
int helper_cwd_errno(const struct helper_side *side);

/* --- the answer --- */
struct helper_head {
	int status;
	const char *content_type; /* NULL: none */
	int64_t length; /* of what is written; -1: chunked */
	const char *const *headers; /* name, value, ..., NULL; may be NULL */
};
void helper_begin(struct helper_side *side, const struct helper_head *head);
/* -1: nobody reads it any more; stop. */
int helper_write(struct helper_side *side, const void *data, size_t len) MUSTCHECK;
/* The answer is whole. Returning from run() without it cuts a begun answer visibly. */
void helper_end(struct helper_side *side);

/* Whole answers. Takes body; text that is not UTF-8 in it becomes \udcNN (base/json.h). */
void helper_json(struct helper_side *side, int status, struct json_object *body);
/* {"code","detail"} */
void helper_refuse(struct helper_side *side, int status, const char *code, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* The status and code of that errno (fault.h); detail: "what: why, and what to do". */
void helper_refuse_errno(struct helper_side *side, int errnum, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* --- what must not stay behind --- */
/*
 * From now on (until the next call; NULL: none) that file is removed when this process ends before the answer
 * is whole, however it ends. An absolute path, or one from the working directory.
 */
void helper_leave_nothing(struct helper_side *side, const char *path);

#endif
