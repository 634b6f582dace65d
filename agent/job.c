/* job.c - the record of one command and its JSON; big outputs never pass through json-c. */
/* SPDX-License-Identifier: MIT */
#include "agent/job.h"

#include "base/alloc.h"
#include "agent/feed.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"

#include <event2/buffer.h>
#include <json-c/json.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A watcher takes only itself off, so the next one stays the next. */
static void
job_on_add(void *arg)
{
	struct job *job = arg;
	struct job_watcher *watcher = TAILQ_FIRST(&job->watchers);

	while (watcher != NULL) {
		struct job_watcher *next = TAILQ_NEXT(watcher, link);

		watcher->on_output(job, watcher->arg);
		watcher = next;
	}
}

struct job *
job_create(const char *id, const char *lane, int64_t fence, size_t max_output)
{
	struct job *job = alloc_zero(1, sizeof *job);

	memcpy(job->id, id, sizeof job->id - 1);
	id_uuid_bytes(id, job->id_bytes);
	job->lane = alloc_string(lane);
	job->fence = fence;
	job->started_at = clock_wall();
	output_init(&job->out, max_output);
	output_init(&job->err, max_output);
	job->out.on_add = job->err.on_add = job_on_add;
	job->out.on_add_arg = job->err.on_add_arg = job;
	TAILQ_INIT(&job->waiters);
	TAILQ_INIT(&job->watchers);
	return job;
}

void
job_spool_to(struct job *job, struct spool_store *store, uint64_t max)
{
	output_spool_to(&job->out, store, max);
	output_spool_to(&job->err, store, max);
}

void
job_hold(struct job *job, int64_t grace_ms)
{
	if (grace_ms == 0)
		return;
	hold_init(&job->hold, grace_ms);
	output_hold(&job->out, &job->hold);
	output_hold(&job->err, &job->hold);
}

static void
job_free_feed(struct job *job)
{
	if (job->feed != NULL)
		feed_free(job->feed);
	job->feed = NULL;
}

void
job_free(struct job *job)
{
	job_free_feed(job);
	output_fini(&job->out);
	output_fini(&job->err);
	free(job->error);
	free(job->lane);
	free(job);
}

void
job_end(struct job *job)
{
	struct job_waiter *waiter;

	output_settle(&job->out);
	output_settle(&job->err);
	job->ended = true;
	job->ended_at = clock_wall();
	job->ended_boot_ms = clock_boot_ms();
	while ((waiter = TAILQ_FIRST(&job->waiters)) != NULL) {
		TAILQ_REMOVE(&job->waiters, waiter, link);
		waiter->on_end(job, waiter->arg);
	}
}

void
job_wait(struct job *job, struct job_waiter *waiter)
{
	TAILQ_INSERT_TAIL(&job->waiters, waiter, link);
}

void
job_unwait(struct job *job, struct job_waiter *waiter)
{
	TAILQ_REMOVE(&job->waiters, waiter, link);
}

void
job_watch(struct job *job, struct job_watcher *watcher)
{
	TAILQ_INSERT_TAIL(&job->watchers, watcher, link);
}

void
job_unwatch(struct job *job, struct job_watcher *watcher)
{
	TAILQ_REMOVE(&job->watchers, watcher, link);
}

void
job_leave_memory(struct job *job, struct spool_store *store)
{
	output_leave_memory(&job->out, store);
	output_leave_memory(&job->err, store);
	job_free_feed(job);
}

void
job_refuse(struct job *job, int exit_code, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	text_utf8_mend(text);
	job->verdict = JOB_NEVER_STARTED;
	job->exit_code = exit_code;
	free(job->error);
	job->error = alloc_string(text);
	output_add(&job->err, text, strlen(text));
	output_add(&job->err, "\n", 1);
}

size_t
job_held(const struct job *job)
{
	return output_held(&job->out) + output_held(&job->err);
}

static const char *
job_verdict_name(enum job_verdict verdict)
{
	switch (verdict) {
	case JOB_EXITED:
		return "exited";
	case JOB_SIGNALED:
		return "signaled";
	case JOB_TIMED_OUT:
		return "timed_out";
	case JOB_OOM_KILLED:
		return "oom_killed";
	case JOB_DISK_FULL:
		return "disk_full";
	case JOB_CANCELED:
		return "canceled";
	case JOB_NEVER_STARTED:
		return "never_started";
	}
	return "exited";
}

static struct json_object *
job_usage_json(const struct job_usage *usage)
{
	struct json_object *json = json_object_new_object();

	json_object_object_add(json, "wall_s", json_object_new_double(usage->wall_s));
	json_object_object_add(json, "cpu_user_s", json_object_new_double(usage->cpu_user_s));
	json_object_object_add(json, "cpu_sys_s", json_object_new_double(usage->cpu_sys_s));
	json_object_object_add(json, "max_rss_bytes", json_object_new_int64(usage->max_rss_bytes));
	return json;
}

static void
job_add_end(const struct job *job, struct json_object *json)
{
	bool ended = job->ended;

	json_object_object_add(json, "ended_at", ended ? json_object_new_double(job->ended_at) : NULL);
	json_object_object_add(
		json, "verdict", ended ? json_object_new_string(job_verdict_name(job->verdict)) : NULL);
	json_object_object_add(json, "exit_code", ended ? json_object_new_int(job->exit_code) : NULL);
	json_object_object_add(json, "signal", ended && job->signal != 0 ? json_object_new_int(job->signal) : NULL);
	json_object_object_add(
		json, "error", ended && job->error != NULL ? json_object_new_string(job->error) : NULL);
	json_object_object_add(json, "usage", ended ? job_usage_json(&job->usage) : NULL);
}

static void
job_write_stream(const char *name, const struct output *output, struct evbuffer *out)
{
	AUTO_FREE uint8_t *text = NULL;
	struct evbuffer_iovec space;
	size_t len, size;

	output_text(output, &text, &len);
	size = text_base64_size(len);
	evbuffer_add_printf(out, ",\"%s_base64\":\"", name);
	if (evbuffer_reserve_space(out, (ev_ssize_t)(size + 1), &space, 1) == 1) {
		text_base64_encode(text, len, space.iov_base);
		space.iov_len = size;
		evbuffer_commit_space(out, &space, 1);
	}
	evbuffer_add_printf(out, "\"");
}

void
job_write(const struct job *job, struct evbuffer *out)
{
	AUTO_JSON struct json_object *json = json_object_new_object();
	const char *text;
	size_t len;

	json_object_object_add(json, "job_id", json_object_new_string(job->id));
	json_object_object_add(json, "lane", json_object_new_string(job->lane));
	json_object_object_add(json, "fence", json_object_new_int64(job->fence));
	json_object_object_add(json, "state", json_object_new_string(job->ended ? "ended" : "running"));
	json_object_object_add(json, "started_at", json_object_new_double(job->started_at));
	job_add_end(job, json);
	json_object_object_add(json, "stdout_bytes", json_object_new_int64((int64_t)job->out.total));
	json_object_object_add(json, "stderr_bytes", json_object_new_int64((int64_t)job->err.total));
	json_object_object_add(json, "stdout_truncated", json_object_new_boolean(output_is_truncated(&job->out)));
	json_object_object_add(json, "stderr_truncated", json_object_new_boolean(output_is_truncated(&job->err)));
	text = json_text(json, &len);
	evbuffer_add(out, text, len - 1);
	job_write_stream("stdout", &job->out, out);
	job_write_stream("stderr", &job->err, out);
	evbuffer_add(out, "}", 1);
}
