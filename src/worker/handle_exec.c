/*
 * handle_exec.c - POST /sandboxes/{id}/exec: hands the command over, then answers with its job.
 *
 * Once exec has recorded the job, it runs whoever listens; every answer from then on,
 * an error too, carries the job id, so that no client needs to send it again.
 */
/* SPDX-License-Identifier: MIT */
#include "worker/routes.h"

#include "base/err.h"
#include "base/json.h"
#include "base/text.h"
#include "conf/config.h"
#include "domain/exec/exec.h"
#include "domain/idempotency.h"
#include "worker/api.h"
#include "worker/handle_job.h"
#include "worker/key.h"
#include "worker/request.h"
#include "worker/respond.h"

#include <json-c/json.h>

enum { WAIT_BEYOND_TIMEOUT_MS = 30 * 1000 };

static void
respond_queued(struct request *request)
{
	struct json_object *body = json_object_new_object();

	json_object_object_add(body, "job_id", json_object_new_string(request->job_id));
	json_object_object_add(body, "status", json_object_new_string("queued"));
	respond_json(request, 200, body);
}

static void
submit_cancel(void *submit)
{
	exec_submit_cancel(submit);
}

static void
submit_on_done(const char *job_id, const struct err *why, void *arg)
{
	struct request *request = arg;

	request_wait_done(request);
	if (why != NULL) {
		respond_err(request, why);
		return;
	}
	if (!text_copy(request->job_id, sizeof request->job_id, job_id)) {
		respond_problem(request, PROBLEM_INTERNAL, "job id \"%s\" is not a UUID", job_id);
		return;
	}
	if (request->detached)
		respond_queued(request);
	else
		answer_with_ended_job(request, request->job_id, request->wait_ms);
}

/* How long a client that waits is kept waiting: what the command may take, and some more. */
static int64_t
wait_ms_of(const struct config *config, const struct exec_spec *spec)
{
	int64_t max_ms = config->max_wait_seconds * 1000;
	int64_t ms = spec->wait_timeout_ms > 0 ? spec->wait_timeout_ms : spec->timeout_ms + WAIT_BEYOND_TIMEOUT_MS;

	return ms < max_ms ? ms : max_ms;
}

static void
submit(struct request *request, const struct exec_spec *spec)
{
	static const struct request_wait_ops ops = { .cancel = submit_cancel };
	struct exec_submit *pending = NULL;

	request->detached = !spec->wait;
	request->wait_ms = wait_ms_of(request->api->config, spec);
	exec_submit(
		request->api->service, request->tenant, request->match.id, spec, submit_on_done, request, &pending);
	if (pending != NULL) /* else it was answered, or waits for the job's end */
		request_wait(request, pending, &ops);
}

void
handle_exec(struct request *request)
{
	/* How long a client wants to wait does not change what it asks for. */
	static const char *const skipped[] = { "wait", "wait_timeout", NULL };
	struct idempotency_key key;
	struct json_reader reader;
	struct exec_spec spec;

	json_reader_init(&reader, request->body);
	exec_spec_read(request->api->config, &reader, &spec);
	if (reader.faults != NULL) {
		respond_faults(request, &reader);
	} else if (key_read(request, skipped, &key)) {
		spec.key = key.name != NULL ? &key : NULL;
		submit(request, &spec);
	}
	exec_spec_fini(&spec);
}
