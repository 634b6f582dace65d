/*
 * exec_submit.c - from a request to a recorded job.
 *
 * A submit waits for the sandbox to be ready, then asks for a place in the
 * queue. Only after that something is written down: what a full queue refuses
 * leaves nothing behind.
 */
/* SPDX-License-Identifier: MIT */
#include "domain/exec.h"
#include "domain/exec_priv.h"
#include "domain/sandbox_priv.h"
#include "domain/service_priv.h"
#include "backend/job_store.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"
#include "base/json.h"
#include "conf/config.h"

#include <event2/event.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SILENT_WAIT_MS = 3000 };

struct exec_submit {
	LIST_ENTRY(exec_submit) link;
	struct service *service;
	struct exec *exec; /* it is being recorded; NULL: still waits for readiness */
	char tenant[SANDBOX_TENANT_SIZE];
	char sandbox_id[SANDBOX_ID_SIZE];
	char sandbox_uid[ID_UUID_SIZE]; /* "" until it was seen */
	struct job_record record; /* lane, timeout, detached: what comes from the request */
	struct json_object *spec; /* owned; handed to the exec */
	struct watch watch;
	struct event *timer; /* NULL: it does not wait */
	bool silent; /* it waits for an agent that did not answer the last time */
	exec_submitted_f *done;
	void *arg;
	bool *ret_over; /* set when it is freed while exec_submit() runs */
};

static void
submit_free(struct exec_submit *submit)
{
	if (submit->ret_over != NULL)
		*submit->ret_over = true;
	watch_remove(&submit->watch);
	if (submit->timer != NULL) {
		event_free(submit->timer);
		service_waiter_drop(submit->service);
	}
	if (submit->exec != NULL)
		submit->exec->submit = NULL;
	json_object_put(submit->spec);
	LIST_REMOVE(submit, link);
	free(submit);
}

void
exec_submit_cancel(struct exec_submit *submit)
{
	submit_free(submit);
}

void
exec_submit_tell(struct exec_submit *submit, const char *job_id, const struct err *why)
{
	exec_submitted_f *done;
	void *arg;

	if (submit == NULL)
		return;
	done = submit->done;
	arg = submit->arg;
	submit_free(submit);
	done(job_id, why, arg);
}

void
exec_submit_end_all(struct service *service)
{
	struct exec_submit *submit;
	struct err err;

	err_set(&err, ERR_UNAVAILABLE, "this server process stops; ask again");
	while ((submit = LIST_FIRST(&service->submits)) != NULL)
		exec_submit_tell(submit, NULL, &err);
}

/* --- recording --- */

static void
submit_refuse(struct exec *exec, const struct err *why)
{
	struct exec_submit *submit = exec->submit;

	if (submit != NULL)
		submit->exec = NULL;
	exec_free(exec);
	exec_submit_tell(submit, NULL, why);
}

static void
submit_on_stored(const struct record_location *place, const struct err *why, void *arg)
{
	struct exec *exec = arg;
	char job_id[ID_UUID_SIZE];
	struct err err;

	if (why != NULL) {
		submit_refuse(exec, why);
		return;
	}
	exec->record.spec = *place;
	if (job_table_insert(service_jobs(exec->service), &exec->record, &exec->job_slot, &err) != 0) {
		submit_refuse(exec, &err);
		return;
	}
	exec->step = EXEC_QUEUED;
	memcpy(job_id, exec->record.id, sizeof job_id);
	exec_submit_tell(exec->submit, job_id, NULL);
	if (exec_watch(exec) && exec->granted)
		exec_start(exec);
}

static void
submit_admit(struct exec_submit *submit, uint32_t slot, const struct sandbox_record *sandbox)
{
	struct exec *exec = exec_new(submit->service);
	struct err err;

	exec->submit = submit;
	submit->exec = exec;
	exec->record = submit->record;
	exec->record.sandbox_slot = slot;
	memcpy(exec->record.sandbox_id, sandbox->id, sizeof exec->record.sandbox_id);
	memcpy(exec->record.sandbox_uid, sandbox->uid, sizeof exec->record.sandbox_uid);
	exec->record.created_at = clock_wall();
	exec->record.created_ms = clock_boot_ms();
	exec->record.owner = submit->service->self;
	id_uuid4(exec->record.id);
	exec->spec = STEAL_PTR(submit->spec);
	if (exec_acquire(exec, &exec->granted, &err) != 0) {
		service_count(submit->service, METRIC_EXECS_REFUSED, 1);
		submit_refuse(exec, &err);
		return;
	}
	sandbox_touch(submit->service, slot, sandbox);
	job_store_put_spec(submit->service->store, exec->record.id, exec->spec, submit_on_stored, exec);
}

/* --- readiness --- */

static void submit_look(struct exec_submit *submit);

static void
submit_on_change(void *arg)
{
	submit_look(arg);
}

static void
submit_on_time(evutil_socket_t fd, short what, void *arg)
{
	struct exec_submit *submit = arg;
	struct err err;

	(void)fd;
	(void)what;
	if (submit->silent)
		err_set(&err, ERR_AGENT_UNREACHABLE,
			"the agent of sandbox \"%s\" does not answer; try again, or delete the sandbox",
			submit->sandbox_id);
	else
		err_set(&err, ERR_NOT_READY, "the sandbox \"%s\" is still pending; wait for it to become ready",
			submit->sandbox_id);
	exec_submit_tell(submit, NULL, &err);
}

/* How long a command may wait for this sandbox. */
static int64_t
readiness_ms(const struct service *service, const struct sandbox_record *sandbox)
{
	int64_t wait = service->config->readiness_wait_seconds * 1000, left;

	if (sandbox->status == SANDBOX_READY)
		return wait < SILENT_WAIT_MS ? wait : SILENT_WAIT_MS;
	left = sandbox->created_ms + sandbox->create_timeout_s * 1000 - clock_boot_ms();
	return left < wait ? left : wait;
}

static void
submit_wait(struct exec_submit *submit, uint32_t slot, const struct sandbox_record *sandbox)
{
	struct err err;

	if (submit->timer != NULL)
		return;
	if (service_waiter_add(submit->service, &err) != 0) {
		exec_submit_tell(submit, NULL, &err);
		return;
	}
	submit->timer = service_timer(submit->service, submit_on_time, submit);
	service_timer_set(submit->timer, readiness_ms(submit->service, sandbox));
	watch_add(&submit->service->watches, &submit->watch, NOTIFY_SANDBOX, slot);
	submit_look(submit);
}

static void
submit_look(struct exec_submit *submit)
{
	struct sandbox_record sandbox;
	struct err err;
	uint32_t slot;

	if (sandbox_lookup(submit->service, submit->tenant, submit->sandbox_id, &sandbox, &slot, &err) != 0 ||
		(submit->sandbox_uid[0] != '\0' && strcmp(submit->sandbox_uid, sandbox.uid) != 0)) {
		if (submit->sandbox_uid[0] != '\0')
			err_set(&err, ERR_DELETED, "the sandbox \"%s\" was deleted meanwhile", submit->sandbox_id);
		exec_submit_tell(submit, NULL, &err);
		return;
	}
	memcpy(submit->sandbox_uid, sandbox.uid, sizeof submit->sandbox_uid);
	submit->silent = sandbox.status == SANDBOX_READY && !sandbox.ready;
	if (sandbox.status == SANDBOX_READY && sandbox.ready) {
		watch_remove(&submit->watch);
		submit_admit(submit, slot, &sandbox);
	} else if (submit->silent || sandbox.status == SANDBOX_PENDING || sandbox.status == SANDBOX_UNSCHEDULABLE) {
		submit_wait(submit, slot, &sandbox);
	} else {
		err_set(&err, ERR_NOT_READY, "the sandbox \"%s\" is not ready but %s%s%s", sandbox.id,
			sandbox_status_name((enum sandbox_status)sandbox.status),
			sandbox.message[0] != '\0' ? ": " : "", sandbox.message);
		exec_submit_tell(submit, NULL, &err);
	}
}

/* What goes to the agent, and what the answer needs besides. */
static struct json_object *
spec_json(const struct exec_spec *spec)
{
	struct json_object *object = json_object_new_object(), *request = json_object_new_object();

	json_object_object_add(request, "command", json_object_get(spec->command));
	if (spec->cwd != NULL)
		json_object_object_add(request, "cwd", json_object_new_string(spec->cwd));
	if (spec->env != NULL)
		json_object_object_add(request, "env", json_object_get(spec->env));
	if (spec->login_shell)
		json_object_object_add(request, "login_shell", json_object_new_boolean(true));
	if (spec->stdin_base64 != NULL)
		json_object_object_add(request, "stdin_base64", json_object_new_string(spec->stdin_base64));
	if (spec->user != NULL)
		json_object_object_add(request, "user", json_object_new_string(spec->user));
	json_object_object_add(request, "max_output_bytes", json_object_new_int64(spec->max_output_bytes));
	json_object_object_add(object, "request", request);
	json_object_object_add(object, "base64", json_object_new_boolean(spec->base64));
	return object;
}

void
exec_submit(struct service *service, const char *tenant, const char *sandbox_id, const struct exec_spec *spec,
	exec_submitted_f *done, void *arg, struct exec_submit **ret_submit)
{
	struct exec_submit *submit = alloc_zero(1, sizeof *submit);
	bool over = false;

	submit->service = service;
	submit->done = done;
	submit->arg = arg;
	submit->ret_over = &over;
	submit->spec = spec_json(spec);
	submit->watch = (struct watch){ .on_change = submit_on_change, .arg = submit };
	snprintf(submit->tenant, sizeof submit->tenant, "%s", tenant);
	snprintf(submit->sandbox_id, sizeof submit->sandbox_id, "%s", sandbox_id);
	submit->record = (struct job_record){
		.state = JOB_QUEUED,
		.detached = !spec->wait,
		.timeout_ms = spec->timeout_ms,
	};
	snprintf(submit->record.tenant, sizeof submit->record.tenant, "%s", tenant);
	snprintf(submit->record.lane, sizeof submit->record.lane, "%s", spec->lane);
	LIST_INSERT_HEAD(&service->submits, submit, link);
	submit_look(submit);
	if (over) {
		*ret_submit = NULL;
		return;
	}
	submit->ret_over = NULL;
	*ret_submit = submit;
}
