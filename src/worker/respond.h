/*
 * respond.h - the answers. Each but respond_start() ends the request: it is gone afterwards.
 *
 * Errors are {"detail","code","request_id"}; `detail` is text, but with 422 a list of
 * {"loc","msg","type"}. Every answer carries X-Request-ID, is counted and logged.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_WORKER_RESPOND_H
#define ORCHARD_WORKER_RESPOND_H

#include "worker/problem.h"

#include <stddef.h>
#include <stdint.h>

struct evbuffer;
struct http_exchange;
struct json_object;
struct json_reader;
struct request;

/* Takes the reference to body. */
void respond_json(struct request *request, int status, struct json_object *body);
/* content_type and text are copied; both NULL: no body (204). */
void respond_text(struct request *request, int status, const char *content_type, const char *text, size_t len);
/* Takes the bytes of body, not the buffer. */
void respond_buffer(struct request *request, int status, const char *content_type, struct evbuffer *body);

/*
 * A streamed answer, counted and logged when it starts. The request goes on until one of the two ends it, or its
 * client leaves. on_drain and length as in http_exchange_start(); arg of on_drain is the request.
 */
void respond_start(struct request *request, int status, const char *content_type, int64_t length,
	void (*on_drain)(struct http_exchange *exchange, void *arg));
void respond_end(struct request *request);
void respond_abort(struct request *request); /* so that it can't be taken for whole */

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
