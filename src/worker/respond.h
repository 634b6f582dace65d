/*
 * respond.h - the answers. Each of these ends the request: it is gone afterwards.
 *
 * Errors are {"detail","code","request_id"}; `detail` is text, but with 422 a list of
 * {"loc","msg","type"}. Every answer carries X-Request-ID, is counted and logged.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_WORKER_RESPOND_H
#define ORCHARD_WORKER_RESPOND_H

#include "worker/problem.h"

#include <stddef.h>

struct evbuffer;
struct json_object;
struct json_reader;
struct request;

/* Takes the reference to body. */
void respond_json(struct request *request, int status, struct json_object *body);
/* content_type and text are copied; both NULL: no body (204). */
void respond_text(struct request *request, int status, const char *content_type, const char *text, size_t len);
/* Takes the bytes of body, not the buffer. */
void respond_buffer(struct request *request, int status, const char *content_type, struct evbuffer *body);

void respond_problem(struct request *request, enum problem problem, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* What the table says of err->code. */
void respond_err(struct request *request, const struct err *err);

/* 422 for one value: loc is [place, field] or, with field NULL, [place]. */
struct respond_fault {
	enum problem problem;
	const char *place; /* "body", "query" */
	const char *field;
	const char *type; /* "value_error", "json_invalid"... */
};
void respond_fault(struct request *request, const struct respond_fault *fault, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* 422 with all that the reader found; it has faults. */
void respond_faults(struct request *request, struct json_reader *reader);

#endif
