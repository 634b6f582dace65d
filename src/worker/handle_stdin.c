/* handle_stdin.c - POST /jobs/{id}/stdin: the body goes to a running command's stdin. */
/* SPDX-License-Identifier: MIT */
#include "worker/routes.h"

#include "base/err.h"
#include "domain/job/job_stdin.h"
#include "http/http_server.h"
#include "worker/api.h"
#include "worker/body.h"
#include "worker/query.h"
#include "worker/request.h"
#include "worker/respond.h"

#include <json-c/json.h>

static void
respond_result(struct request *request, const struct job_stdin_result *result)
{
	struct json_object *body = json_object_new_object();

	json_object_object_add(body, "job_id", json_object_new_string(request->match.id));
	json_object_object_add(body, "accepted", json_object_new_int64(result->accepted));
	json_object_object_add(body, "stdin_bytes", json_object_new_int64(result->bytes));
	json_object_object_add(body, "closed", json_object_new_boolean(result->closed));
	respond_json(request, 200, body);
}

static void
on_done(const struct job_stdin_result *result, const struct err *why, void *arg)
{
	struct request *request = arg;

	request_wait_done(request);
	if (why == NULL)
		respond_result(request, result);
	else if (why->code == ERR_NOT_READY)
		respond_problem(request, PROBLEM_JOB_NOT_RUNNING, "%s", why->msg);
	else
		respond_err(request, why);
}

static void
wait_cancel(void *wait)
{
	job_stdin_cancel(wait);
}

static const struct request_wait_ops wait_ops = { .cancel = wait_cancel };

static void
on_body(struct request *request)
{
	struct job_stdin_ask ask = {
		.job_id = request->match.id,
		.data = request->input.bytes,
		.len = request->input.len,
		.eof = request->eof,
	};
	struct job_stdin *write;
	struct err err;

	if (job_stdin_start(request->api->service, request->tenant, &ask, on_done, request, &write, &err) != 0) {
		respond_err(request, &err);
		return;
	}
	/* What a client has given up must not be written later. */
	http_exchange_need_client(request->exchange);
	request_wait(request, write, &wait_ops);
}

void
handle_job_stdin(struct request *request)
{
	if (!query_flag(request, "eof", &request->eof))
		return;
	if (http_exchange_length(request->exchange) > JOB_STDIN_MAX)
		respond_problem(request, PROBLEM_PAYLOAD_TOO_LARGE, "the body has %lld bytes, one write at most %d",
			(long long)http_exchange_length(request->exchange), JOB_STDIN_MAX);
	else
		body_take(request, JOB_STDIN_MAX, on_body);
}
