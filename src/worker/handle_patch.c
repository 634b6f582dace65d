/*
 * handle_patch.c - POST /sandboxes/{id}/apply_patch: a command that is answered in a shape of its own.
 *
 * Whoever cannot be told how it ended is told the job's id: never that it failed.
 */
/* SPDX-License-Identifier: MIT */
#include "worker/routes.h"

#include "base/err.h"
#include "base/json.h"
#include "base/text.h"
#include "conf/config.h"
#include "domain/exec/exec.h"
#include "domain/idempotency.h"
#include "domain/job/job.h"
#include "domain/exec/patch_spec.h"
#include "worker/api.h"
#include "worker/key.h"
#include "worker/request.h"
#include "worker/respond.h"

#include <json-c/json.h>
#include <string.h>

enum { WAIT_BEYOND_TIMEOUT_MS = 30 * 1000 };

static void
wait_cancel(void *wait)
{
	job_wait_cancel(wait);
}

static void
wait_expire(struct request *request)
{
	exec_detach(request->api->service, request->job_id);
	respond_problem(request, PROBLEM_UNAVAILABLE,
		"this worker process is stopping; the patch goes on: ask for its job, do not send it again");
}

static bool
has_ended(struct json_object *job)
{
	const char *status = json_object_get_string(json_object_object_get(job, "status"));

	return status != NULL && strcmp(status, "queued") != 0 && strcmp(status, "running") != 0;
}

static void
wait_on_done(struct json_object *job, const struct err *why, void *arg)
{
	struct request *request = arg;

	request_wait_done(request);
	if (why != NULL) {
		exec_detach(request->api->service, request->job_id);
		respond_err(request, why);
	} else if (has_ended(job)) {
		respond_json(request, 200, patch_answer(job));
	} else {
		exec_detach(request->api->service, request->job_id);
		respond_problem(request, PROBLEM_WAIT_TIMEOUT,
			"the patch is still %s: ask for its job, do not send it again",
			json_object_get_string(json_object_object_get(job, "status")));
	}
}

static void
submit_cancel(void *submit)
{
	exec_submit_cancel(submit);
}

static void
submit_on_done(const char *job_id, const struct err *why, void *arg)
{
	static const struct request_wait_ops ops = { .cancel = wait_cancel, .expire = wait_expire };
	struct request *request = arg;
	struct job_wait *wait = NULL;

	request_wait_done(request);
	if (why != NULL) {
		respond_err(request, why);
		return;
	}
	if (!text_copy(request->job_id, sizeof request->job_id, job_id)) {
		respond_problem(request, PROBLEM_INTERNAL, "job id \"%s\" is not a UUID", job_id);
		return;
	}
	job_wait_start(
		request->api->service, request->tenant, job_id, request->wait_ms, wait_on_done, request, &wait);
	if (wait != NULL) /* else it was answered already */
		request_wait(request, wait, &ops);
}

static void
submit(struct request *request, const struct exec_spec *spec)
{
	static const struct request_wait_ops ops = { .cancel = submit_cancel };
	int64_t max_ms = request->api->config->max_wait_seconds * 1000;
	struct exec_submit *pending = NULL;

	request->wait_ms = spec->timeout_ms + WAIT_BEYOND_TIMEOUT_MS;
	if (request->wait_ms > max_ms)
		request->wait_ms = max_ms;
	exec_submit(
		request->api->service, request->tenant, request->match.id, spec, submit_on_done, request, &pending);
	if (pending != NULL)
		request_wait(request, pending, &ops);
}

void
handle_patch(struct request *request)
{
	struct idempotency_key key;
	struct json_reader reader;
	struct exec_spec spec;

	json_reader_init(&reader, request->body);
	patch_spec_read(request->api->config, &reader, &spec);
	if (reader.faults != NULL) {
		respond_faults(request, &reader);
	} else if (key_read(request, NULL, &key)) {
		spec.key = key.name != NULL ? &key : NULL;
		submit(request, &spec);
	}
	exec_spec_fini(&spec);
}
