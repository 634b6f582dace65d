/*
 * request.h - one request from its head to its answer.
 *
 * A request is made when the head has come and freed when it is answered (see
 * respond.h) or when its client is gone, whichever is first. A handler answers
 * at once, or leaves a wait behind (request_wait), or hands a request_ref to
 * a call that cannot be cancelled. The request id is on the answer and on every log line.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_WORKER_REQUEST_H
#define ORCHARD_WORKER_REQUEST_H

#include "base/cleanup.h"
#include "base/id.h"
#include "base/log.h"
#include "worker/body.h"
#include "worker/router.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct api;
struct http_exchange;
struct json_object;
struct request;
struct request_ref;

enum { REQUEST_ID_MAX = 128 };

/* What a request waits for, and how that ends early; both are called with the wait still set. */
struct request_wait_ops {
	void (*cancel)(void *wait); /* nobody listens any more */
	/* The worker stops: answer with what is known now. NULL: 503, ask again; a streamed answer is cut. */
	void (*expire)(struct request *request);
	bool at_drain; /* it does so at once, not at the end of the time it has to stop */
};

struct request {
	TAILQ_ENTRY(request) link; /* api->requests */
	struct api *api;
	struct http_exchange *exchange;
	struct router_match match;
	const char *tenant; /* set once the caller is known */
	struct body input; /* what came of its body, where one is taken */
	struct json_object *body; /* owned; the routes' BODY_OBJECT and BODY_OPTIONAL */
	void *wait;
	const struct request_wait_ops *wait_ops;
	struct request_ref *ref;
	int64_t start_us;
	bool started; /* the head of a streamed answer is out */
	bool detached; /* exec: the client wants the job id only */
	bool eof; /* stdin: nothing comes behind the body */
	int64_t wait_ms; /* exec: how long it wants to wait for the end */
	char job_id[ID_UUID_SIZE]; /* exec: the job that was recorded for it; "" before */
	char id[REQUEST_ID_MAX + 1];
};

/* Takes the exchange; the client's leaving frees the request from then on. */
struct request *request_create(struct api *api, struct http_exchange *exchange);
/* Cancels what it waits for. The exchange must have been answered or be gone. */
void request_free(struct request *request);
struct log_ctx request_log_ctx(const struct request *request);
/* [A-Za-z0-9._-]{1,128}: what is echoed as it came. */
bool request_id_is_sane(const char *id);

/* ops must be static. Before the answer the wait's own callback calls request_wait_done. */
void request_wait(struct request *request, void *wait, const struct request_wait_ops *ops);
void request_wait_done(struct request *request);
/* The worker stops now: answers a request that waits. */
void request_expire(struct request *request);

/*
 * The argument for a call that answers later and cannot be cancelled. Its callback
 * takes the request out: NULL when the client has gone meanwhile.
 */
struct request_ref *request_ref(struct request *request);
struct request *request_ref_take(struct request_ref *ref);

#endif
