/* handle_job.c - /jobs and a sandbox's jobs: look, wait, cancel. */
/* SPDX-License-Identifier: MIT */
#include "worker/handle_job.h"

#include "base/err.h"
#include "domain/exec/exec.h"
#include "domain/job/job.h"
#include "worker/api.h"
#include "worker/query.h"
#include "worker/request.h"
#include "worker/respond.h"
#include "worker/routes.h"

#include <json-c/json.h>
#include <string.h>

enum { LIST_MAX = 100, WAIT_DEFAULT_MS = 300 * 1000 };

static void
respond_job(struct request *request, struct json_object *job, const struct err *why)
{
	if (why != NULL)
		respond_err(request, why);
	else
		respond_json(request, 200, json_object_get(job));
}

static void
get_on_done(struct json_object *job, const struct err *why, void *arg)
{
	struct request *request = request_ref_take(arg);

	if (request != NULL)
		respond_job(request, job, why);
}

static void
answer_with_job(struct request *request, const char *job_id)
{
	job_get(request->api->service, request->tenant, job_id, get_on_done, request_ref(request));
}

void
handle_job_get(struct request *request)
{
	answer_with_job(request, request->match.id);
}

/* --- wait --- */

static const char *
job_of(const struct request *request)
{
	return *request->job_id != '\0' ? request->job_id : request->match.id;
}

static void
wait_cancel(void *wait)
{
	job_wait_cancel(wait);
}

/* Whoever has started a command here and is told of it before its end comes back for that: it goes on without. */
static void
answer_standing(struct request *request)
{
	if (*request->job_id != '\0')
		exec_detach(request->api->service, request->job_id);
	answer_with_job(request, job_of(request));
}

static const struct request_wait_ops wait_ops = { .cancel = wait_cancel, .expire = answer_standing };

static bool
is_standing(struct json_object *job)
{
	const char *status = json_object_get_string(json_object_object_get(job, "status"));

	return status != NULL && (strcmp(status, "queued") == 0 || strcmp(status, "running") == 0);
}

/*
 * Too many waits, or a stopping service, is no failure of the job: who has started one here gets it
 * as it stands, so that nobody starts it again.
 */
static void
wait_on_done(struct json_object *job, const struct err *why, void *arg)
{
	struct request *request = arg;

	request_wait_done(request);
	if (why == NULL && *request->job_id != '\0' && is_standing(job))
		exec_detach(request->api->service, request->job_id);
	if (why != NULL && *request->job_id != '\0' && why->code != ERR_NOT_FOUND)
		answer_standing(request);
	else
		respond_job(request, job, why);
}

void
answer_with_ended_job(struct request *request, const char *job_id, int64_t timeout_ms)
{
	struct job_wait *wait = NULL;

	job_wait_start(request->api->service, request->tenant, job_id, timeout_ms, wait_on_done, request, &wait);
	if (wait != NULL) /* else it was answered already */
		request_wait(request, wait, &wait_ops);
}

void
handle_job_wait(struct request *request)
{
	int64_t timeout_ms = WAIT_DEFAULT_MS;

	if (query_timeout_ms(request, &timeout_ms))
		answer_with_ended_job(request, request->match.id, timeout_ms);
}

void
handle_job_cancel(struct request *request)
{
	struct job_wait *wait = NULL;

	job_cancel(request->api->service, request->tenant, request->match.id, wait_on_done, request, &wait);
	if (wait != NULL)
		request_wait(request, wait, &wait_ops);
}

/* --- the jobs of a sandbox --- */

static void
list_on_done(struct json_object *jobs, const struct err *why, void *arg)
{
	struct request *request = request_ref_take(arg);
	struct json_object *body;

	if (request == NULL)
		return;
	if (why != NULL) {
		respond_err(request, why);
		return;
	}
	body = json_object_new_object();
	json_object_object_add(body, "jobs", json_object_get(jobs));
	respond_json(request, 200, body);
}

void
handle_job_list(struct request *request)
{
	uint32_t limit = LIST_MAX;

	if (query_limit(request, LIST_MAX, &limit))
		job_list(request->api->service, request->tenant, request->match.id, limit, list_on_done,
			request_ref(request));
}
