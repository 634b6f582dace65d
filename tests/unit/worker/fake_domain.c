/* fake_domain.c - the headers of domain/ without sandboxes, agents or stores. */
/* SPDX-License-Identifier: MIT */
#include "fake_domain.h"

#include "base/json.h"
#include "domain/exec.h"
#include "domain/job.h"
#include "domain/sandbox.h"
#include "domain/service.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

struct sandbox_wait {
	sandbox_wait_f *done;
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

struct fake fake;
static struct sandbox_wait sandbox_wait;
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
service_free(struct service *service)
{
	(void)service;
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

int
sandbox_create(struct service *service, const char *tenant, const struct sandbox_spec *spec,
	struct sandbox_record *ret_record, bool *ret_existing, struct err *err)
{
	(void)service;
	if (take_call(tenant, spec->id, err) != 0)
		return -1;
	snprintf(fake.text, sizeof fake.text, "%s", spec->image);
	*ret_record = fake.record;
	*ret_existing = false;
	return 0;
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
	json_object_array_add(*ret_list, sandbox_json(&fake.record));
	snprintf(ret_cursor, 96, "%s", fake.cursor != NULL ? fake.cursor : "");
	return 1;
}

int
sandbox_patch(struct service *service, const char *tenant, const char *id, struct json_object *labels,
	int64_t ttl_ms, int64_t idle_timeout_ms, struct sandbox_record *ret_record, struct err *err)
{
	(void)service;
	if (take_call(tenant, id, err) != 0)
		return -1;
	snprintf(fake.text, sizeof fake.text, "%s", labels != NULL ? json_text(labels, NULL) : "unchanged");
	fake.ttl_ms = ttl_ms;
	fake.idle_ms = idle_timeout_ms;
	*ret_record = fake.record;
	return 0;
}

int
sandbox_heartbeat(struct service *service, const char *tenant, const char *id, struct err *err)
{
	(void)service;
	return take_call(tenant, id, err);
}

int
sandbox_delete(struct service *service, const char *tenant, const char *id, struct err *err)
{
	(void)service;
	return take_call(tenant, id, err);
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

struct json_object *
sandbox_json(const struct sandbox_record *record)
{
	struct json_object *object = json_object_new_object();

	json_object_object_add(object, "sandbox_id", json_object_new_string(record->id));
	return object;
}

struct json_object *
sandbox_created_json(const struct sandbox_record *record)
{
	struct json_object *object = sandbox_json(record);

	json_object_object_add(object, "status", json_object_new_string("pending"));
	return object;
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
