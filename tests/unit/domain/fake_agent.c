/* fake_agent.c - an agent over real HTTP that runs nothing but knows its jobs. */
/* SPDX-License-Identifier: MIT */
#include "fakes.h"
#include "fixture.h"
#include "base/err.h"
#include "base/json.h"
#include "http/http_parser.h"
#include "http/http_server.h"

#include <event2/buffer.h>
#include <json-c/json.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

static struct fake_job *
find_job(struct fixture *f, const char *id)
{
	for (int i = 0; i < f->job_count; i++)
		if (strcmp(f->jobs[i].id, id) == 0)
			return &f->jobs[i];
	return NULL;
}

int
fake_started(const struct fixture *f, const char *job_id)
{
	int n = 0;

	for (int i = 0; i < f->job_count; i++)
		n += strcmp(f->jobs[i].id, job_id) == 0;
	return n;
}

static void
answer(struct http_exchange *exchange, int status, const char *text)
{
	http_exchange_on_gone(exchange, NULL, NULL);
	http_exchange_respond_text(exchange, status, "application/json", text, strlen(text));
}

static const char *
job_verdict(const struct fake_job *job)
{
	if (!job->ended)
		return "null";
	if (job->canceled)
		return "\"canceled\"";
	return job->exit_code == 124 ? "\"timed_out\"" : "\"exited\"";
}

static void
answer_job(struct http_exchange *exchange, const struct fake_job *job)
{
	char text[1024], exit_code[16] = "null";

	if (job->ended)
		snprintf(exit_code, sizeof exit_code, "%d", job->exit_code);
	/* The output is "hi", a byte that is no UTF-8, and a newline. */
	snprintf(text, sizeof text,
		"{\"job_id\":\"%s\",\"lane\":\"\",\"fence\":1,\"state\":\"%s\",\"started_at\":1000.5,\"ended_at\":%"
		"s,"
		"\"verdict\":%s,\"exit_code\":%s,\"signal\":null,\"error\":%s,\"stdout_base64\":\"aGn/Cg==\","
		"\"stderr_base64\":\"\",\"stdout_bytes\":4,\"stderr_bytes\":0,\"stdout_truncated\":%s,"
		"\"stderr_truncated\":false,\"usage\":{\"wall_s\":1}}",
		job->id, job->ended ? "ended" : "running", job->ended ? "1001.5" : "null", job_verdict(job),
		exit_code, job->canceled ? "\"canceled\"" : "null", job->truncated ? "true" : "false");
	answer(exchange, 200, text);
}

static void
on_waiter_gone(void *arg)
{
	struct http_exchange **place = arg;

	*place = NULL;
}

static void
wait_for_end(struct fake_job *job, struct http_exchange *exchange)
{
	if (job->ended) {
		answer_job(exchange, job);
		return;
	}
	assert_true(job->waiting_count < 4);
	job->waiting[job->waiting_count] = exchange;
	http_exchange_on_gone(exchange, on_waiter_gone, &job->waiting[job->waiting_count]);
	job->waiting_count++;
}

void
fake_end(struct fixture *f, const char *job_id, int exit_code)
{
	struct fake_job *job = find_job(f, job_id);

	assert_non_null(job);
	job->ended = true;
	job->exit_code = exit_code;
	for (int i = 0; i < job->waiting_count; i++)
		if (job->waiting[i] != NULL)
			answer_job(job->waiting[i], job);
	job->waiting_count = 0;
	fake_agent_polls(f);
}

static struct fake_job *
running_job(struct fixture *f)
{
	for (int i = 0; i < f->job_count; i++)
		if (!f->jobs[i].ended)
			return &f->jobs[i];
	return NULL;
}

static struct fake_job *
start_job(struct fixture *f, const char *id)
{
	struct fake_job *job = &f->jobs[f->job_count++];

	assert_true(f->job_count <= FAKE_JOBS);
	snprintf(job->id, sizeof job->id, "%s", id);
	job->truncated = f->truncated;
	return job;
}

static bool
is_clogged(const struct fixture *f)
{
	for (int i = 0; f->clogged && i < f->job_count; i++)
		if (f->jobs[i].ended && !f->jobs[i].acked)
			return true;
	return false;
}

static void
take_acks(struct fixture *f, struct json_object *request)
{
	struct json_object *acks = json_object_object_get(request, "ack");
	size_t count = acks != NULL ? json_object_array_length(acks) : 0;

	for (size_t i = 0; i < count; i++) {
		struct fake_job *job = find_job(f, json_object_get_string(json_object_array_get_idx(acks, i)));

		if (job != NULL)
			job->acked = true;
	}
}

static void
answer_list(struct fixture *f, struct http_exchange *exchange)
{
	AUTO_JSON struct json_object *body = json_object_new_object();
	struct json_object *jobs = json_object_new_array();

	json_object_object_add(body, "jobs", jobs);
	for (int i = 0; i < f->job_count; i++) {
		struct json_object *job = json_object_new_object();

		if (f->jobs[i].acked)
			continue;
		json_object_object_add(job, "job_id", json_object_new_string(f->jobs[i].id));
		json_object_object_add(
			job, "state", json_object_new_string(f->jobs[i].ended ? "ended" : "running"));
		json_object_array_add(jobs, job);
	}
	answer(exchange, 200, json_object_to_json_string(body));
}

static void
answer_exec(struct fixture *f, struct http_exchange *exchange, const char *id, uint64_t fence)
{
	enum fake_next next = f->next;
	struct fake_job *job = find_job(f, id);
	char text[128];

	f->next = FAKE_RUN;
	if (job != NULL) {
		wait_for_end(job, exchange);
		return;
	}
	if (is_clogged(f))
		next = FAKE_FULL;
	switch (next) {
	case FAKE_RUN:
		job = start_job(f, id);
		job->ended = true;
		answer_job(exchange, job);
		return;
	case FAKE_HOLD:
		wait_for_end(start_job(f, id), exchange);
		return;
	case FAKE_BUSY:
		snprintf(text, sizeof text, "{\"code\":\"busy\",\"job_id\":\"%s\"}", running_job(f)->id);
		answer(exchange, 409, text);
		return;
	case FAKE_STALE:
		if (f->more_stale > 0) {
			f->more_stale--;
			f->next = FAKE_STALE;
		}
		snprintf(text, sizeof text, "{\"code\":\"stale_fence\",\"newest_fence\":%ju}",
			(uintmax_t)fence + 100);
		answer(exchange, 409, text);
		return;
	case FAKE_CUT_AFTER:
		start_job(f, id)->ended = true;
		http_exchange_abort(exchange);
		return;
	case FAKE_CUT_BEFORE:
		http_exchange_abort(exchange);
		return;
	case FAKE_FULL:
		answer(exchange, 503, "{\"code\":\"journal_full\",\"detail\":\"no room\"}");
		return;
	case FAKE_REFUSE:
		answer(exchange, 422, "{\"code\":\"invalid\",\"detail\":\"no such user\"}");
		return;
	}
}

static void
on_exec_body(struct http_exchange *exchange, struct evbuffer *body, void *arg)
{
	struct fixture *f = arg;
	size_t len = evbuffer_get_length(body);
	struct err err;
	AUTO_JSON struct json_object *request = json_parse((const char *)evbuffer_pullup(body, -1), len, &err);
	struct json_object *acks;

	assert_non_null(request);
	take_acks(f, request);
	f->execs++;
	f->last_fence = json_object_get_uint64(json_object_object_get(request, "fence"));
	if (json_object_object_get_ex(request, "ack", &acks))
		f->acks += (int)json_object_array_length(acks);
	answer_exec(f, exchange, json_object_get_string(json_object_object_get(request, "job_id")), f->last_fence);
}

static void
on_ack_body(struct http_exchange *exchange, struct evbuffer *body, void *arg)
{
	struct fixture *f = arg;
	size_t len = evbuffer_get_length(body);
	struct err err;
	AUTO_JSON struct json_object *request = json_parse((const char *)evbuffer_pullup(body, -1), len, &err);

	assert_non_null(request);
	take_acks(f, request);
	f->acks++;
	answer(exchange, 200, "{}");
}

static void
answer_job_call(struct fixture *f, struct http_exchange *exchange, const char *path, const char *query)
{
	struct fake_job *job;
	char id[ID_UUID_SIZE], text[128];

	snprintf(id, sizeof id, "%.36s", path + strlen("/jobs/"));
	f->gets++;
	job = find_job(f, id);
	if (job == NULL && strstr(path, "/bar") != NULL && f->late)
		job = start_job(f, id);
	else if (job == NULL && strstr(path, "/bar") != NULL)
		f->bars++;
	if (f->garbles) {
		answer(exchange, 200, "{\"job_id\":");
	} else if (f->forgets) {
		answer(exchange, 410, "{\"code\":\"forgotten_job\",\"detail\":\"?\"}");
	} else if (job == NULL) {
		snprintf(text, sizeof text, "{\"code\":\"unknown_job\",\"detail\":\"?\",\"age_ms\":%jd}",
			(intmax_t)f->age_ms);
		answer(exchange, 404, text);
	} else if (fake_agent_io(f, exchange, job, path, query)) {
		return;
	} else if (strstr(path, "/cancel") != NULL) {
		job->canceled = true;
		fake_end(f, id, 137);
		answer_job(exchange, job);
	} else if (strstr(query, "wait_ms=0") != NULL || strstr(path, "/bar") != NULL) {
		answer_job(exchange, job);
	} else {
		wait_for_end(job, exchange);
	}
}

static void
answer_health(struct fixture *f, struct http_exchange *exchange)
{
	char text[128];

	snprintf(text, sizeof text,
		"{\"status\":\"ok\",\"epoch\":\"e\",\"running\":0,\"journal\":{\"jobs\":%jd,\"bytes\":0}}",
		(intmax_t)f->kept);
	answer(exchange, f->denies ? 403 : f->not_healthy ? 500 : 200, text);
}

static void
answer_usage(struct fixture *f, struct http_exchange *exchange)
{
	f->usages++;
	if (f->usage_held)
		return;
	if (f->usage_answer != NULL)
		answer(exchange, 200, f->usage_answer);
	else
		answer(exchange, 404, "{\"code\":\"not_found\",\"detail\":\"no such route\"}");
}

static void
on_request(struct http_exchange *exchange, void *arg)
{
	struct fixture *f = arg;
	const struct http_head *head = http_exchange_head(exchange);
	const char *path = http_head_path(head);

	if (strcmp(path, "/health") == 0)
		answer_health(f, exchange);
	else if (strcmp(path, "/usage") == 0)
		answer_usage(f, exchange);
	else if (strcmp(path, "/jobs") == 0)
		answer_list(f, exchange);
	else if (strcmp(path, "/exec") == 0)
		http_exchange_collect(exchange, 1 << 20, on_exec_body, f);
	else if (strcmp(path, "/ack") == 0)
		http_exchange_collect(exchange, 1 << 20, on_ack_body, f);
	else
		answer_job_call(f, exchange, path, http_head_query(head));
}

void
fake_agent_start(struct fixture *f)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct http_server_options options = {
		.max_header_bytes = 8192,
		.max_connections = 100,
		.header_timeout_ms = 5000,
		.body_timeout_ms = 5000,
		.keepalive_timeout_ms = 60000,
		.on_request = on_request,
		.arg = f,
	};
	struct err err;

	snprintf(addr.sun_path, sizeof addr.sun_path, "%s/agent.sock", f->dir);
	unlink(addr.sun_path);
	f->agent_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(f->agent_fd, (struct sockaddr *)&addr, sizeof addr), 0);
	assert_int_equal(listen(f->agent_fd, 64), 0);
	if (http_server_create(f->base, f->agent_fd, &options, &f->agent, &err) != 0)
		fail_msg("%s", err.msg);
}

void
fake_agent_stop(struct fixture *f)
{
	char path[96];

	if (f->agent != NULL)
		http_server_free(f->agent);
	f->agent = NULL;
	if (f->agent_fd >= 0)
		close(f->agent_fd);
	f->agent_fd = -1;
	snprintf(path, sizeof path, "%s/agent.sock", f->dir);
	unlink(path);
}
