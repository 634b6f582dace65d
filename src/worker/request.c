/* request.c - a request's life; api->requests holds every one that is not answered yet. */
/* SPDX-License-Identifier: MIT */
#include "worker/request.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "domain/job/job.h"
#include "http/http_server.h"
#include "worker/api.h"
#include "worker/respond.h"

#include <json-c/json.h>
#include <string.h>

struct request_ref {
	struct request *request; /* NULL: gone */
};

static void *
alloc_or_abort(size_t size)
{
	void *p = alloc_zero(1, size);

	return p;
}

bool
request_id_is_sane(const char *id)
{
	size_t len = strspn(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-");

	return len > 0 && len <= REQUEST_ID_MAX && id[len] == '\0';
}

static void
request_on_gone(void *arg)
{
	struct request *request = arg;
	struct log_ctx ctx = request_log_ctx(request);

	if (*request->job_id != '\0' && !request->api->closing)
		job_leave(request->api->service, request->tenant, request->job_id);
	log_write(LOG_LEVEL_DEBUG, &ctx, "client left after %.3f ms without its answer",
		(double)(clock_boot_us() - request->start_us) / 1000);
	request_free(request);
}

struct request *
request_create(struct api *api, struct http_exchange *exchange)
{
	struct request *request = alloc_or_abort(sizeof *request);
	const char *id = http_head_header(http_exchange_head(exchange), "X-Request-ID");

	request->api = api;
	request->exchange = exchange;
	request->start_us = clock_boot_us();
	if (id != NULL && request_id_is_sane(id))
		strcpy(request->id, id);
	else
		id_uuid4(request->id);
	http_exchange_set_data(exchange, request);
	http_exchange_on_gone(exchange, request_on_gone, request);
	TAILQ_INSERT_TAIL(&api->requests, request, link);
	return request;
}

void
request_free(struct request *request)
{
	if (request->wait != NULL)
		request->wait_ops->cancel(request->wait);
	if (request->ref != NULL)
		request->ref->request = NULL;
	TAILQ_REMOVE(&request->api->requests, request, link);
	json_object_put(request->body);
	body_release(request);
	free(request);
}

struct log_ctx
request_log_ctx(const struct request *request)
{
	const char *job_id = request->match.id_kind == ROUTER_ID_JOB ? request->match.id : request->job_id;

	return (struct log_ctx){
		.request_id = request->id,
		.sandbox_id = request->match.id_kind == ROUTER_ID_SANDBOX ? request->match.id : NULL,
		.job_id = *job_id != '\0' ? job_id : NULL,
	};
}

void
request_wait(struct request *request, void *wait, const struct request_wait_ops *ops)
{
	request->wait = wait;
	request->wait_ops = ops;
}

void
request_wait_done(struct request *request)
{
	request->wait = NULL;
}

void
request_expire(struct request *request)
{
	const struct request_wait_ops *ops = request->wait_ops;

	if (request->wait == NULL)
		return;
	ops->cancel(request->wait);
	request_wait_done(request);
	if (ops->expire != NULL)
		ops->expire(request);
	else if (request->started)
		respond_abort(request);
	else
		respond_problem(request, PROBLEM_UNAVAILABLE, "this worker process is stopping; ask again");
}

struct request_ref *
request_ref(struct request *request)
{
	request->ref = alloc_or_abort(sizeof *request->ref);
	request->ref->request = request;
	return request->ref;
}

struct request *
request_ref_take(struct request_ref *ref)
{
	struct request *request = ref->request;

	if (request != NULL)
		request->ref = NULL;
	free(ref);
	return request;
}
