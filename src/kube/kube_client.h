/*
 * kube_client.h - requests to the API server of Kubernetes, on an event loop.
 *
 * A request waits for one of `concurrency` slots, which it holds while it is under way and not while it pauses before
 * another try. What surely was not carried out (no connection, 429) is tried again for every kind of request; what may
 * have been, only as the request allows. Callbacks come from the loop, never from inside one of these functions, and
 * may call any of them.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_KUBE_KUBE_CLIENT_H
#define ORCHARD_KUBE_KUBE_CLIENT_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct config;
struct err;
struct event_base;
struct json_object;
struct kube_call;
struct kube_client;
struct kube_config;

/* 0 stands for the default of each, but for retries. */
struct kube_options {
	uint32_t concurrency; /* requests under way at the same time, watches aside; 100 */
	uint32_t connect_ms; /* for a name, a connection and its TLS; 10000 */
	uint32_t attempt_ms; /* for one try, from its slot to its whole answer; 30000 */
	uint32_t retries; /* tries after the first */
	uint32_t pause_ms; /* the first pause before another try; it doubles, with jitter; 250 */
	uint32_t silence_ms; /* a watch that says nothing for so long is dead; 70000 */
	uint32_t list_ms; /* between two lists of a watch, at least; 1000 */
	size_t max_bytes; /* of one answer, or of one line of a watch; 64 MiB */
};
void kube_options_from_config(const struct config *config, struct kube_options *ret_options);

/* config is borrowed as long as the client. Connects when it is first asked. ERR_INTERNAL: the library refuses. */
int kube_client_create(struct event_base *base, struct kube_config *config, const struct kube_options *options,
	struct kube_client **ret_client, struct err *err) MUSTCHECK;
/* No callback comes any more; calls, lists and watches that still go on are freed with it. NULL is fine. */
void kube_client_free(struct kube_client *client);

enum kube_method { KUBE_GET, KUBE_POST, KUBE_PUT, KUBE_PATCH, KUBE_DELETE };

enum kube_retry {
	KUBE_RETRY_NEVER, /* never again once it may have been carried out: creates */
	KUBE_RETRY_READ, /* it changes nothing */
	KUBE_RETRY_IDEMPOTENT /* it may be carried out twice, as a DELETE with a uid's precondition */
};

struct kube_request {
	enum kube_method method;
	const char *path; /* from the first slash, with the query, both escaped */
	struct json_object *body; /* NULL: none */
	const char *content_type; /* NULL: application/json */
	enum kube_retry retry;
};

/* Borrowed during the callback. */
struct kube_answer {
	int http_status; /* of the last try; 0: there was no answer */
	struct json_object *body; /* NULL: none, or no JSON */
	const char *reason; /* Status.reason such as "AlreadyExists", or "" */
	const struct err
		*why; /* NULL: 2xx; else what went wrong, in the words of the API server where it has some */
	int64_t retry_after_ms; /* why is not NULL, and the API server asks for that pause; -1: it does not */
	bool maybe_done; /* why is not NULL, and the request may have been carried out all the same: look first */
};
typedef void kube_done_f(const struct kube_answer *answer, void *arg);

/*
 * The request is copied (its body is shared: leave it as it is). done is called once, unless cancelled. ret_call NULL:
 * nobody will cancel it.
 */
int kube_call_start(struct kube_client *client, const struct kube_request *request, kube_done_f *done, void *arg,
	struct kube_call **ret_call, struct err *err) MUSTCHECK;
/* Not after done has been called. What is under way may still be carried out. */
void kube_call_cancel(struct kube_call *call);

struct kube_stats {
	uint64_t attempts; /* requests as they went out, watches included */
	uint64_t retries; /* of those, tries after the first */
	uint64_t http2; /* of those that have ended, answered over HTTP/2 */
	uint64_t failures; /* that ended without an answer */
	uint64_t throttled; /* answers 429 */
	uint64_t refused; /* other answers that are not 2xx */
	uint64_t restarts; /* of watches: streams that ended, lists that failed */
	uint32_t busy; /* slots taken now */
	uint32_t waiting; /* for a slot or for credentials, now */
};
void kube_client_stats(const struct kube_client *client, struct kube_stats *ret_stats);

/* A segment of a path or a value of a query, with all that is special in them escaped; malloc'ed. */
char *kube_escape(const char *text);

#endif
