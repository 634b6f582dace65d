/*
 * kube_call.c - a request until its answer: tries, pauses, and what is known of what was done.
 *
 * maybe_done only ever goes from false to true: a later try that says "not found" does not undo what an earlier one may
 * have done.
 */
/* SPDX-License-Identifier: MIT */
#include "kube/kube_backoff.h"
#include "kube/kube_client_impl.h"
#include "kube/kube_status.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"

#include <json-c/json.h>
#include <string.h>

#include <event2/event.h>

enum { PAUSE_MAX_MS = 10000, RETRY_AFTER_MAX_MS = 60000 };

struct kube_call {
	TAILQ_ENTRY(kube_call) entry;
	struct kube_client *client;
	struct kube_attempt attempt;
	char *path, *content_type, *body;
	enum kube_retry retry;
	struct kube_backoff backoff;
	struct event *pause;
	uint32_t tries; /* that have ended */
	uint32_t retries;
	bool refused; /* by 401, before */
	bool maybe_done;
	kube_done_f *done;
	void *arg;
};

static void
call_free(struct kube_call *call)
{
	kube_attempt_cancel(&call->attempt);
	event_free(call->pause);
	TAILQ_REMOVE(&call->client->calls, call, entry);
	free(call->path);
	free(call->content_type);
	free(call->body);
	free(call);
}

void
kube_call_free_all(struct kube_client *client)
{
	struct kube_call *call;

	while ((call = TAILQ_FIRST(&client->calls)) != NULL)
		call_free(call);
}

void
kube_call_cancel(struct kube_call *call)
{
	call_free(call);
}

void
kube_call_once(struct kube_call *call)
{
	call->retries = 0;
}

static void
call_finish(struct kube_call *call, const struct kube_answer *answer)
{
	kube_done_f *done = call->done;
	void *arg = call->arg;

	call_free(call);
	if (done != NULL)
		done(answer, arg);
}

static void
call_on_pause(evutil_socket_t fd, short what, void *arg)
{
	struct kube_call *call = arg;

	(void)fd;
	(void)what;
	call->attempt.again = true;
	kube_attempt_start(&call->attempt);
}

/* Whether this end may have come after the server did what was asked. */
static bool
may_be_done(const struct kube_call *call, const struct kube_end *end)
{
	if (call->retry == KUBE_RETRY_READ)
		return false;
	if (end->status == 0)
		return end->sent;
	return end->status >= 500 || (end->status >= 200 && end->status < 300);
}

static bool
call_is_over(struct kube_call *call, const struct kube_end *end)
{
	if (end->status == 401) {
		bool before = call->refused;

		call->refused = true;
		return before || !kube_attempt_refused(&call->attempt);
	}
	if (call->tries > call->retries || end->hopeless)
		return true;
	if (end->why == NULL && end->status >= 300 && !kube_status_passes(end->status))
		return true;
	if (end->retry_after_ms > RETRY_AFTER_MAX_MS)
		return true;
	return call->retry == KUBE_RETRY_NEVER && call->maybe_done;
}

static void
call_try_again(struct kube_call *call, const struct kube_end *end)
{
	int64_t pause = end->status == 401 ? 0 : kube_backoff_next(&call->backoff, end->retry_after_ms);
	struct timeval tv = clock_tv(pause);

	event_add(call->pause, &tv);
}

static void
call_on_end(void *arg, const struct kube_end *end)
{
	struct kube_call *call = arg;
	AUTO_JSON struct json_object *body = end->why == NULL ? kube_json_parse(end->text, end->len) : NULL;
	struct kube_answer answer = {
		.http_status = end->status, .body = body, .reason = kube_status_reason(body), .retry_after_ms = -1
	};
	struct err err;

	call->tries++;
	if (end->why == NULL && end->status >= 200 && end->status < 300 && (body != NULL || end->len == 0)) {
		call_finish(call, &answer);
		return;
	}
	if (may_be_done(call, end))
		call->maybe_done = true;
	if (!call_is_over(call, end)) {
		call_try_again(call, end);
		return;
	}
	if (end->why != NULL)
		err = *end->why;
	else if (end->status >= 200 && end->status < 300)
		err_set(&err, ERR_UNAVAILABLE, "the API server's answer is no JSON");
	else
		kube_status_err(end->status, body, &err);
	answer.why = &err;
	answer.retry_after_ms = end->retry_after_ms;
	answer.maybe_done = call->maybe_done;
	call_finish(call, &answer);
}

static const struct kube_exchange_ops call_ops = { .ended = call_on_end };

static void
call_fill(struct kube_call *call, const struct kube_request *request)
{
	const struct kube_options *options = &call->client->options;

	call->path = alloc_string(request->path);
	if (request->content_type != NULL)
		call->content_type = alloc_string(request->content_type);
	if (request->body != NULL)
		call->body = alloc_string(json_text(request->body, NULL));
	call->retry = request->retry;
	call->retries = options->retries;
	call->backoff = (struct kube_backoff){ .first_ms = options->pause_ms, .max_ms = PAUSE_MAX_MS };
	call->attempt = (struct kube_attempt){
		.client = call->client,
		.send = {
			.method = request->method,
			.path = call->path,
			.body = call->body,
			.body_len = call->body != NULL ? strlen(call->body) : 0,
			.content_type = call->content_type,
			.once = request->retry == KUBE_RETRY_NEVER,
			.timeout_ms = options->attempt_ms,
		},
		.ops = &call_ops,
		.arg = call,
	};
}

int
kube_call_start(struct kube_client *client, const struct kube_request *request, kube_done_f *done, void *arg,
	struct kube_call **ret_call, struct err *err)
{
	struct kube_call *call;

	if (request->path[0] != '/' || strpbrk(request->path, " \r\n#") != NULL)
		return err_set(err, ERR_INVALID, "'%.200s' is no path of the API server", request->path);
	call = alloc_zero(1, sizeof *call);
	call->client = client;
	call->done = done;
	call->arg = arg;
	call_fill(call, request);
	call->pause = must_alloc(event_new(client->base, -1, 0, call_on_pause, call));
	TAILQ_INSERT_TAIL(&client->calls, call, entry);
	kube_attempt_start(&call->attempt);
	if (ret_call != NULL)
		*ret_call = call;
	return 0;
}
