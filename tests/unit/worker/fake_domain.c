/* fake_domain.c - the headers of domain/ without sandboxes, agents or stores. */
/* SPDX-License-Identifier: MIT */
#include "fake_domain.h"

#include "base/json.h"
#include "domain/exec/exec.h"
#include "domain/idempotency.h"
#include "domain/job/job.h"
#include "domain/exec/patch_spec.h"
#include "domain/job/job_feed.h"
#include "domain/job/job_output.h"
#include "domain/job/job_stdin.h"
#include "domain/sandbox/sandbox.h"
#include "domain/sandbox/sandbox_ready.h"
#include "domain/service.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

struct sandbox_ask {
	sandbox_told_f *done;
	void *arg;
};

struct sandbox_wait {
	sandbox_wait_f *done;
	void *arg;
};

struct sandbox_ready {
	sandbox_ready_f *done;
	void *arg;
};

struct job_wait {
	job_done_f *done;
	void *arg;
};

struct exec_submit {
	exec_submitted_f *done;
	void *arg;
};

struct job_feed {
	const struct job_feed_ops *ops;
	void *arg;
};

struct job_output {
	const struct job_output_ops *ops;
	void *arg;
};

struct job_stdin {
	job_stdin_f *done;
	void *arg;
};

struct fake fake;
static struct job_feed feed;
static struct job_output output;
static struct job_stdin stdin_write;
static struct sandbox_ask sandbox_ask;
static struct sandbox_wait sandbox_wait;
static struct sandbox_ready sandbox_ready;
static struct job_wait job_wait;
static struct exec_submit exec_submit_pending;
static struct job_wait get;
static struct {
	service_ready_f *done;
	void *arg;
} check;

void
fake_reset(void)
{
	memset(&fake, 0, sizeof fake);
	strcpy(fake.record.id, "box-1");
	strcpy(fake.record.image, "default");
	fake.record.status = SANDBOX_READY;
	fake.job_status = "succeeded";
	fake.status = -2;
	check.done = NULL;
}

void
fake_fail(enum err_code code, const char *msg)
{
	err_set(&fake.fail, code, "%s", msg);
}

static int
take_call(const char *tenant, const char *id, struct err *err)
{
	fake.calls++;
	snprintf(fake.tenant, sizeof fake.tenant, "%s", tenant);
	snprintf(fake.id, sizeof fake.id, "%s", id != NULL ? id : "");
	if (fake.fail.code == ERR_NONE)
		return 0;
	*err = fake.fail;
	return -1;
}

/* --- service --- */

int
service_create(const struct service_options *options, struct service **ret_service, struct err *err)
{
	(void)options;
	if (fake.fail.code != ERR_NONE) {
		*err = fake.fail;
		return -1;
	}
	*ret_service = NULL;
	return 0;
}

void
service_on_redis(struct service *service, bool up)
{
	(void)service;
	(void)up;
}

void
service_free(struct service *service)
{
	(void)service;
}

void
service_settle(struct service *service)
{
	(void)service;
}

uint32_t
service_execs(const struct service *service)
{
	(void)service;
	return 0;
}

uint32_t
service_busy(const struct service *service)
{
	(void)service;
	return fake.busy;
}

void
service_check_ready(struct service *service, service_ready_f *done, void *arg)
{
	(void)service;
	if (fake.defer_get) {
		check.done = done;
		check.arg = arg;
		fake.gets = true;
		return;
	}
	done(fake.problems == NULL, fake.problems != NULL ? fake.problems : "", arg);
}

void
service_resources(struct service *service, service_resources_f *done, void *arg)
{
	struct json_object *resources;

	(void)service;
	if (fake.fail.code != ERR_NONE) {
		done(NULL, &fake.fail, arg);
		return;
	}
	resources = json_object_new_object();
	json_object_object_add(resources, "status", json_object_new_string("ok"));
	done(resources, NULL, arg);
}

/* --- sandbox --- */

void
sandbox_spec_read(const struct config *config, struct json_reader *reader, struct sandbox_spec *ret_spec)
{
	(void)config;
	*ret_spec = (struct sandbox_spec){ .image = "" };
	if (json_reader_require(reader, "image"))
		json_reader_string(reader, "image", 100, &ret_spec->image);
	json_reader_string(reader, "sandbox_id", 100, &ret_spec->id);
}

void
sandbox_create(struct service *service, const char *tenant, const struct sandbox_spec *spec,
	sandbox_entered_f *done, void *arg)
{
	struct err err;

	(void)service;
	if (take_call(tenant, spec->id, &err) != 0) {
		done(NULL, false, &err, arg);
		return;
	}
	snprintf(fake.text, sizeof fake.text, "%s", spec->image);
	done(&fake.record, false, NULL, arg);
}

bool
sandbox_must_look(struct service *service, const char *tenant, const char *id)
{
	(void)service;
	(void)tenant;
	(void)id;
	return fake.looks;
}

int
sandbox_look_start(struct service *service, const char *tenant, const char *id, sandbox_told_f *done, void *arg,
	struct sandbox_ask **ret_look, struct err *err)
{
	(void)service;
	if (take_call(tenant, id, err) != 0)
		return -1;
	sandbox_ask = (struct sandbox_ask){ done, arg };
	fake.look_waits = true;
	*ret_look = &sandbox_ask;
	return 0;
}

void
sandbox_look_cancel(struct sandbox_ask *look)
{
	(void)look;
	fake.look_waits = false;
	fake.cancelled++;
}

void
fake_end_look(const struct err *why)
{
	fake.look_waits = false;
	sandbox_ask.done(why, sandbox_ask.arg);
}

void
sandbox_create_keyed(struct service *service, const char *tenant, const struct sandbox_spec *spec,
	const struct idempotency_key *key, sandbox_created_f *done, void *arg)
{
	AUTO_JSON struct json_object *answer = NULL;
	struct err err;

	snprintf(fake.key, sizeof fake.key, "%s", key->name);
	if (take_call(tenant, spec->id, &err) != 0) {
		done(NULL, &err, arg);
		return;
	}
	answer = sandbox_created_json(service, &fake.record);
	done(answer, NULL, arg);
}

int
sandbox_get(struct service *service, const char *tenant, const char *id, struct sandbox_record *ret_record,
	struct err *err)
{
	(void)service;
	if (take_call(tenant, id, err) != 0)
		return -1;
	*ret_record = fake.record;
	return 0;
}

void
sandbox_measure(struct service *service, const struct sandbox_record *record, sandbox_measured_f *done, void *arg)
{
	struct json_object *json = sandbox_json(service, record);

	json_object_object_add(json, "usage", NULL);
	done(json, arg);
}

int
sandbox_list(struct service *service, const char *tenant, const struct sandbox_filter *filter,
	struct json_object **ret_list, char ret_cursor[96], struct err *err)
{
	(void)service;
	if (take_call(tenant, filter->cursor, err) != 0)
		return -1;
	if (filter->label != NULL)
		snprintf(fake.text, sizeof fake.text, "%s", filter->label);
	fake.limit = filter->limit;
	fake.status = filter->status;
	*ret_list = json_object_new_array();
	json_object_array_add(*ret_list, sandbox_json(service, &fake.record));
	snprintf(ret_cursor, 96, "%s", fake.cursor != NULL ? fake.cursor : "");
	return 1;
}

void
sandbox_patch(struct service *service, const char *tenant, const char *id, const struct sandbox_change *change,
	sandbox_changed_f *done, void *arg)
{
	struct err err;

	(void)service;
	if (take_call(tenant, id, &err) != 0) {
		done(NULL, &err, arg);
		return;
	}
	snprintf(fake.text, sizeof fake.text, "%s",
		change->labels != NULL ? json_text(change->labels, NULL) : "unchanged");
	fake.ttl_ms = change->ttl_ms;
	fake.idle_ms = change->idle_timeout_ms;
	done(&fake.record, NULL, arg);
}

int
sandbox_heartbeat(struct service *service, const char *tenant, const char *id, struct err *err)
{
	(void)service;
	return take_call(tenant, id, err);
}

void
sandbox_delete(struct service *service, const char *tenant, const char *id, sandbox_told_f *done, void *arg)
{
	struct err err;

	(void)service;
	done(take_call(tenant, id, &err) != 0 ? &err : NULL, arg);
}

int
sandbox_wait_start(struct service *service, const char *tenant, const char *id, int64_t timeout_ms,
	sandbox_wait_f *done, void *arg, struct sandbox_wait **ret_wait, struct err *err)
{
	(void)service;
	if (take_call(tenant, id, err) != 0)
		return -1;
	fake.timeout_ms = timeout_ms;
	sandbox_wait = (struct sandbox_wait){ done, arg };
	fake.sandbox_waits = true;
	*ret_wait = &sandbox_wait;
	return 0;
}

void
sandbox_wait_cancel(struct sandbox_wait *wait)
{
	(void)wait;
	fake.sandbox_waits = false;
	fake.cancelled++;
}

void
fake_end_sandbox_wait(const struct err *why)
{
	fake.sandbox_waits = false;
	sandbox_wait.done(why == NULL ? &fake.record : NULL, why, sandbox_wait.arg);
}

int
sandbox_ready_start(struct service *service, const char *tenant, const char *id, sandbox_ready_f *done, void *arg,
	struct sandbox_ready **ret_ready, struct err *err)
{
	(void)service;
	if (take_call(tenant, id, err) != 0)
		return -1;
	sandbox_ready = (struct sandbox_ready){ done, arg };
	fake.ready_waits = true;
	*ret_ready = &sandbox_ready;
	return 0;
}

void
sandbox_ready_cancel(struct sandbox_ready *ready)
{
	(void)ready;
	fake.ready_waits = false;
	fake.cancelled++;
}

void
fake_end_ready(const struct err *why)
{
	fake.ready_waits = false;
	sandbox_ready.done(why == NULL ? 7 : UINT32_MAX, why == NULL ? &fake.record : NULL, why, sandbox_ready.arg);
}

struct json_object *
sandbox_json(const struct service *service, const struct sandbox_record *record)
{
	struct json_object *object = json_object_new_object();

	(void)service;
	json_object_object_add(object, "sandbox_id", json_object_new_string(record->id));
	return object;
}

struct json_object *
sandbox_created_json(const struct service *service, const struct sandbox_record *record)
{
	struct json_object *object = sandbox_json(service, record);

	json_object_object_add(object, "status", json_object_new_string("pending"));
	return object;
}

/* --- keys --- */

void
idempotency_digest(const char *route, const char *id, struct json_object *body, const char *const *skipped,
	char ret_digest[TEXT_SHA256_HEX_SIZE])
{
	(void)route;
	(void)id;
	(void)body;
	(void)skipped;
	snprintf(ret_digest, TEXT_SHA256_HEX_SIZE, "a digest");
}

/* --- exec --- */

void
exec_spec_read(const struct config *config, struct json_reader *reader, struct exec_spec *ret_spec)
{
	double timeout = 300, wait_timeout = 0;

	(void)config;
	*ret_spec = (struct exec_spec){ .wait = true, .lane = "default" };
	if (json_reader_require(reader, "command"))
		json_object_object_get_ex(reader->body, "command", &ret_spec->command);
	json_reader_bool(reader, "wait", &ret_spec->wait);
	json_reader_number(reader, "timeout_seconds", 0, 100000, &timeout);
	json_reader_number(reader, "wait_timeout", 0, 100000, &wait_timeout);
	ret_spec->timeout_ms = (int64_t)(timeout * 1000);
	ret_spec->wait_timeout_ms = (int64_t)(wait_timeout * 1000);
	ret_spec->owned = strdup("what the spec owns");
}

void
patch_spec_read(const struct config *config, struct json_reader *reader, struct exec_spec *ret_spec)
{
	exec_spec_read(config, reader, ret_spec);
	ret_spec->apply_patch = true;
}

struct json_object *
patch_answer(struct json_object *job)
{
	struct json_object *answer = json_object_new_object();

	json_object_object_add(answer, "answer", json_object_get(json_object_object_get(job, "status")));
	return answer;
}

void
exec_spec_fini(struct exec_spec *spec)
{
	free(spec->owned);
}

void
exec_submit(struct service *service, const char *tenant, const char *sandbox_id, const struct exec_spec *spec,
	exec_submitted_f *done, void *arg, struct exec_submit **ret_submit)
{
	struct err err;

	(void)service;
	*ret_submit = NULL;
	if (take_call(tenant, sandbox_id, &err) != 0) {
		done(NULL, &err, arg);
		return;
	}
	snprintf(fake.text, sizeof fake.text, "%s", json_object_get_string(spec->command));
	snprintf(fake.key, sizeof fake.key, "%s", spec->key != NULL ? spec->key->name : "");
	if (!fake.defer) {
		done(FAKE_JOB_ID, NULL, arg);
		return;
	}
	exec_submit_pending = (struct exec_submit){ done, arg };
	fake.submits = true;
	*ret_submit = &exec_submit_pending;
}

void
exec_submit_cancel(struct exec_submit *submit)
{
	(void)submit;
	fake.submits = false;
	fake.cancelled++;
}

void
fake_end_submit(const struct err *why)
{
	fake.submits = false;
	exec_submit_pending.done(why == NULL ? FAKE_JOB_ID : NULL, why, exec_submit_pending.arg);
}

void
exec_detach(struct service *service, const char *job_id)
{
	(void)service;
	(void)job_id;
	fake.detached++;
}

/* --- jobs --- */

static struct json_object *
make_job(void)
{
	struct json_object *job = json_object_new_object();

	json_object_object_add(job, "job_id", json_object_new_string(FAKE_JOB_ID));
	json_object_object_add(job, "status", json_object_new_string(fake.job_status));
	return job;
}

static void
tell_job(job_done_f *done, const struct err *why, void *arg)
{
	AUTO_JSON struct json_object *job = why == NULL ? make_job() : NULL;

	done(job, why, arg);
}

void
job_get(struct service *service, const char *tenant, const char *job_id, job_done_f *done, void *arg)
{
	struct err err;

	(void)service;
	if (take_call(tenant, job_id, &err) != 0) {
		tell_job(done, &err, arg);
	} else if (fake.defer_get) {
		get = (struct job_wait){ done, arg };
		fake.gets = true;
	} else {
		tell_job(done, NULL, arg);
	}
}

void
fake_end_get(void)
{
	fake.gets = false;
	if (check.done != NULL)
		check.done(true, "", check.arg);
	else
		tell_job(get.done, NULL, get.arg);
	check.done = NULL;
}

static void
start_job_wait(job_done_f *done, void *arg, struct job_wait **ret_wait)
{
	*ret_wait = NULL;
	if (!fake.defer) {
		tell_job(done, NULL, arg);
		return;
	}
	job_wait = (struct job_wait){ done, arg };
	fake.job_waits = true;
	*ret_wait = &job_wait;
}

void
job_wait_start(struct service *service, const char *tenant, const char *job_id, int64_t timeout_ms,
	job_done_f *done, void *arg, struct job_wait **ret_wait)
{
	struct err err;

	(void)service;
	*ret_wait = NULL;
	fake.timeout_ms = timeout_ms;
	if (take_call(tenant, job_id, &err) != 0)
		tell_job(done, &err, arg);
	else
		start_job_wait(done, arg, ret_wait);
}

void
job_wait_cancel(struct job_wait *wait)
{
	(void)wait;
	fake.job_waits = false;
	fake.cancelled++;
}

void
fake_end_job_wait(const struct err *why)
{
	fake.job_waits = false;
	tell_job(job_wait.done, why, job_wait.arg);
}

void
job_cancel(struct service *service, const char *tenant, const char *job_id, job_done_f *done, void *arg,
	struct job_wait **ret_wait)
{
	job_wait_start(service, tenant, job_id, -1, done, arg, ret_wait);
}

void
job_leave(struct service *service, const char *tenant, const char *job_id)
{
	(void)service;
	(void)tenant;
	(void)job_id;
	fake.left++;
}

void
job_list(struct service *service, const char *tenant, const char *sandbox_id, uint32_t limit, job_done_f *done,
	void *arg)
{
	AUTO_JSON struct json_object *jobs = json_object_new_array();
	struct err err;

	(void)service;
	fake.limit = limit;
	if (take_call(tenant, sandbox_id, &err) != 0) {
		done(NULL, &err, arg);
		return;
	}
	json_object_array_add(jobs, make_job());
	done(jobs, NULL, arg);
}

/* --- what jobs write and read --- */

int
job_feed_start(struct service *service, const char *tenant, const char *job_id, const int64_t offset[JOB_STREAMS],
	const struct job_feed_ops *ops, void *arg, struct job_feed **ret_feed, struct err *err)
{
	(void)service;
	if (take_call(tenant, job_id, err) != 0)
		return -1;
	memcpy(fake.offset, offset, sizeof fake.offset);
	feed = (struct job_feed){ ops, arg };
	fake.feeds = true;
	*ret_feed = &feed;
	return 0;
}

void
job_feed_more(struct job_feed *one)
{
	(void)one;
	fake.more++;
}

void
job_feed_rest(struct job_feed *one)
{
	(void)one;
}

bool
job_feed_holds(const struct job_feed *one)
{
	(void)one;
	return false;
}

void
job_feed_close(struct job_feed *one)
{
	(void)one;
	fake.feeds = false;
	fake.cancelled++;
}

void
fake_feed_status(const char *status, uint32_t queue_position)
{
	feed.ops->status(status, queue_position, feed.arg);
}

void
fake_feed_piece(int stream, int64_t offset, const char *text)
{
	struct job_feed_piece piece = {
		.stream = (enum job_stream)stream, .offset = offset, .data = text, .len = strlen(text)
	};

	memcpy(piece.next, fake.offset, sizeof piece.next);
	piece.next[stream] = fake.offset[stream] = offset + (int64_t)piece.len;
	feed.ops->piece(&piece, feed.arg);
	feed.ops->pause(feed.arg);
}

void
fake_feed_quiet(void)
{
	feed.ops->quiet(feed.arg);
}

void
fake_end_feed(const struct err *why)
{
	AUTO_JSON struct json_object *job = why == NULL ? make_job() : NULL;

	fake.feeds = false;
	feed.ops->end(job, why, feed.arg);
}

struct job_output *
job_output_start(struct service *service, const char *tenant, const char *job_id, const struct job_output_ask *ask,
	const struct job_output_ops *ops, void *arg, struct err *err)
{
	(void)service;
	if (take_call(tenant, job_id, err) != 0)
		return NULL;
	fake.stream = (int)ask->stream;
	fake.offset[0] = ask->offset;
	fake.count = ask->limit;
	output = (struct job_output){ ops, arg };
	fake.outputs = true;
	return &output;
}

void
job_output_more(struct job_output *one)
{
	(void)one;
	fake.more++;
}

void
job_output_rest(struct job_output *one)
{
	(void)one;
}

void
job_output_close(struct job_output *one)
{
	(void)one;
	fake.outputs = false;
	fake.cancelled++;
}

bool
fake_output_open(int64_t length, int64_t bytes)
{
	struct job_output_info info = {
		.offset = fake.offset[0], .length = length, .bytes = bytes, .status = fake.job_status
	};

	return output.ops->open(&info, output.arg);
}

void
fake_output_piece(const void *data, size_t len)
{
	output.ops->piece(data, len, output.arg);
}

void
fake_end_output(const struct err *why)
{
	fake.outputs = false;
	output.ops->end(why, output.arg);
}

int
job_stdin_start(struct service *service, const char *tenant, const struct job_stdin_ask *ask, job_stdin_f *done,
	void *arg, struct job_stdin **ret_write, struct err *err)
{
	(void)service;
	if (take_call(tenant, ask->job_id, err) != 0)
		return -1;
	snprintf(fake.text, sizeof fake.text, "%.*s", (int)(ask->len < 500 ? ask->len : 500),
		ask->len > 0 ? (const char *)ask->data : "");
	fake.write_len = ask->len;
	fake.eof = ask->eof;
	stdin_write = (struct job_stdin){ done, arg };
	fake.writes = true;
	*ret_write = &stdin_write;
	return 0;
}

void
job_stdin_cancel(struct job_stdin *write)
{
	(void)write;
	fake.writes = false;
	fake.cancelled++;
}

void
fake_end_write(const struct err *why)
{
	struct job_stdin_result result = {
		.accepted = (int64_t)fake.write_len, .bytes = (int64_t)fake.write_len + 10, .closed = fake.eof
	};

	fake.writes = false;
	stdin_write.done(why == NULL ? &result : NULL, why, stdin_write.arg);
}
