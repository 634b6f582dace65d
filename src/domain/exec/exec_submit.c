/*
 * exec_submit.c - from a request to a recorded job.
 *
 * A submit waits for the sandbox to be ready, then asks for a place in the
 * queue. Only after that something is written down: what a full queue refuses
 * leaves nothing behind.
 */
/* SPDX-License-Identifier: MIT */
#include "domain/exec/exec.h"
#include "domain/exec/exec_priv.h"
#include "domain/idempotency.h"
#include "domain/sandbox/sandbox_priv.h"
#include "domain/service_priv.h"
#include "backend/job_store.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"
#include "base/json.h"
#include "cluster/job_board.h"
#include "conf/config.h"
#include "ipc/shm.h"

#include <event2/event.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How long who was promised a job is kept waiting for Redis; then its server alone knows of it. */
enum { SILENT_WAIT_MS = 3000, UNTOLD_WAIT_MS = 10000 };

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
	if (submit->keyed)
		service_forget(submit->service, submit);
	if (submit->service->board != NULL)
		job_board_forget(submit->service->board, submit);
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

/* Its job stands, and goes on without this process if need be. */
static void
submit_promise(struct exec_submit *submit)
{
	char job_id[ID_UUID_SIZE];

	memcpy(job_id, submit->record.id, sizeof job_id);
	exec_submit_tell(submit, job_id, NULL);
}

void
exec_submit_end_all(struct service *service)
{
	struct exec_submit *submit;
	struct err err;

	err_set(&err, ERR_UNAVAILABLE, "this server process stops; ask again");
	while ((submit = LIST_FIRST(&service->submits)) != NULL) {
		if (submit->recorded)
			submit_promise(submit);
		else
			exec_submit_tell(submit, NULL, &err);
	}
}

/* --- recording --- */

struct exec_submit *
exec_submit_withdraw(struct exec *exec)
{
	struct exec_submit *submit = exec->submit;

	if (submit != NULL)
		submit->exec = NULL;
	exec_free(exec);
	return submit;
}

void
exec_submit_refuse(struct exec *exec, const struct err *why)
{
	exec_key_give_up(exec);
	exec_submit_tell(exec_submit_withdraw(exec), NULL, why);
}

static void submit_on_time(evutil_socket_t fd, short what, void *arg);

/* A job that other servers deny looks lost to a client that asks them. */
static void
submit_hold(struct exec_submit *submit)
{
	struct err err;

	if (submit->timer == NULL && service_waiter_add(submit->service, &err) != 0) {
		submit_promise(submit);
		return;
	}
	if (submit->timer == NULL)
		submit->timer = service_timer(submit->service, submit_on_time, submit);
	if (!event_pending(submit->timer, EV_TIMEOUT, NULL))
		service_timer_set(submit->timer, UNTOLD_WAIT_MS);
	submit->untold = true;
}

void
exec_submit_announced(struct exec_submit *submit, bool told)
{
	if (told)
		submit_promise(submit);
	else
		submit_hold(submit);
}

void
exec_submit_announce_again(struct service *service)
{
	struct exec_submit *submit;

	LIST_FOREACH(submit, &service->submits, link)
	{
		submit->due = submit->untold;
	}
	do {
		LIST_FOREACH(submit, &service->submits, link)
		{
			if (submit->due)
				break;
		}
		if (submit != NULL) {
			struct exec *exec = exec_of_job(service, submit->record.id);

			submit->due = false;
			/* Its end is on its way to Redis, and does not overtake a question that comes by another server. */
			if (exec == NULL && job_board_tells(service->board, submit->record.id))
				continue;
			submit->untold = false;
			if (exec == NULL)
				submit_promise(submit);
			else if (!exec_board_announce(exec, submit))
				submit_hold(submit);
		}
	} while (submit != NULL);
}

static void
submit_announce(struct exec_submit *submit, struct exec *exec)
{
	submit->recorded = true;
	memcpy(submit->record.id, exec->record.id, sizeof submit->record.id);
	exec->submit = NULL;
	submit->exec = NULL;
	if (submit->service->board == NULL || !exec->record.detached)
		submit_promise(submit);
	else if (!exec_board_announce(exec, submit))
		submit_hold(submit);
}

void
exec_submit_recorded(struct exec *exec)
{
	exec->step = EXEC_QUEUED;
	if (exec->submit != NULL)
		submit_announce(exec->submit, exec);
	if (exec_watch(exec) && exec->granted)
		exec_start(exec);
}

static void
submit_on_stored(const struct record_location *place, const struct err *why, void *arg)
{
	struct exec *exec = arg;
	struct err err;

	if (why != NULL) {
		exec_submit_refuse(exec, why);
		return;
	}
	/* Its client left before there was a job, and nobody else can know of it. */
	if (exec->submit == NULL && !exec->record.detached) {
		exec_free(exec);
		return;
	}
	exec->record.spec = *place;
	if (job_table_insert(service_jobs(exec->service), &exec->record, &exec->job_slot, &err) == 0) {
		exec_keep(exec);
		exec_lock_name(shm_exec_lock(exec->service->shm), exec->ticket, exec->job_slot);
		if (exec->record.keep_until > 0)
			exec_key_check(exec);
		else
			exec_submit_recorded(exec);
	} else if (err.code == ERR_EXISTS && exec->record.keep_until > 0) {
		exec_key_attach(exec);
	} else {
		exec_submit_refuse(exec, &err);
	}
}

void
exec_submit_record(struct exec *exec)
{
	job_store_put_spec(exec->service->store, exec->record.id, exec->spec, submit_on_stored, exec);
}

void
exec_submit_end_told(struct service *service, const char *job_id)
{
	struct exec_submit *submit;

	LIST_FOREACH(submit, &service->submits, link)
	if (submit->untold && strcmp(submit->record.id, job_id) == 0)
		break;
	if (submit != NULL)
		submit_promise(submit);
}

static struct exec *
submit_exec(struct exec_submit *submit, uint32_t slot, const struct sandbox_record *sandbox)
{
	struct exec *exec = exec_new(submit->service);

	exec->submit = submit;
	submit->exec = exec;
	exec->record = submit->record;
	exec->record.sandbox_slot = slot;
	memcpy(exec->record.sandbox_id, sandbox->id, sizeof exec->record.sandbox_id);
	memcpy(exec->record.sandbox_uid, sandbox->uid, sizeof exec->record.sandbox_uid);
	exec->record.created_at = clock_wall();
	exec->record.created_ms = clock_boot_ms();
	exec->record.owner = submit->service->self;
	if (submit->again)
		memcpy(exec->record.id, submit->claim.id, sizeof exec->record.id);
	else
		id_uuid4(exec->record.id);
	exec->spec = json_object_get(submit->spec);
	return exec;
}

static void
submit_admit(struct exec_submit *submit, uint32_t slot, const struct sandbox_record *sandbox)
{
	struct exec *exec;
	struct err err;

	/* Another life of that id: whatever became of the first request, it was not for this one. */
	if (submit->again && strcmp(submit->claim.sandbox_uid, sandbox->uid) != 0) {
		exec_key_lost(submit);
		return;
	}
	if (!submit->keyed && exec_board_check(submit->service, &submit->record, &err) != 0) {
		service_count(submit->service, METRIC_EXECS_REFUSED, 1);
		exec_submit_tell(submit, NULL, &err);
		return;
	}
	if (submit->timer != NULL)
		event_del(submit->timer);
	exec = submit_exec(submit, slot, sandbox);
	if (exec_acquire(exec, &exec->granted, &err) != 0) {
		exec_submit_withdraw(exec);
		if (submit->keyed) {
			exec_key_refused(submit, &err);
			return;
		}
		service_count(submit->service, METRIC_EXECS_REFUSED, 1);
		exec_submit_tell(submit, NULL, &err);
		return;
	}
	sandbox_touch(submit->service, slot, sandbox);
	if (submit->keyed)
		exec_key_claim(exec);
	else
		exec_submit_record(exec);
}

/* --- readiness --- */

static void
submit_on_change(void *arg)
{
	exec_submit_look(arg);
}

static void
submit_on_time(evutil_socket_t fd, short what, void *arg)
{
	struct exec_submit *submit = arg;
	struct err err;

	(void)fd;
	(void)what;
	if (submit->recorded) {
		submit_promise(submit);
		return;
	}
	if (submit->silent)
		sandbox_silent_err(submit->service, submit->tenant, submit->sandbox_id, &err);
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

	if (submit->watch.armed)
		return;
	if (submit->timer == NULL && service_waiter_add(submit->service, &err) != 0) {
		exec_submit_tell(submit, NULL, &err);
		return;
	}
	if (submit->timer == NULL)
		submit->timer = service_timer(submit->service, submit_on_time, submit);
	service_timer_set(submit->timer, readiness_ms(submit->service, sandbox));
	watch_add(&submit->service->watches, &submit->watch, NOTIFY_SANDBOX, slot);
	exec_submit_look(submit);
}

/* There is no such sandbox, or not the one it waited for. */
static void
submit_gone(struct exec_submit *submit, struct err *err)
{
	if (submit->again) {
		exec_key_lost(submit);
		return;
	}
	if (submit->sandbox_uid[0] != '\0')
		err_set(err, ERR_DELETED, "the sandbox \"%s\" was deleted meanwhile", submit->sandbox_id);
	exec_submit_tell(submit, NULL, err);
}

void
exec_submit_look(struct exec_submit *submit)
{
	struct sandbox_record sandbox;
	struct err err;
	uint32_t slot;

	if (sandbox_lookup(submit->service, submit->tenant, submit->sandbox_id, &sandbox, &slot, &err) != 0 ||
		(submit->sandbox_uid[0] != '\0' && strcmp(submit->sandbox_uid, sandbox.uid) != 0)) {
		submit_gone(submit, &err);
		return;
	}
	if (sandbox_check_host(&sandbox, &err) != 0) {
		exec_submit_tell(submit, NULL, &err);
		return;
	}
	memcpy(submit->sandbox_uid, sandbox.uid, sizeof submit->sandbox_uid);
	submit->silent = sandbox.status == SANDBOX_READY && !sandbox.ready;
	if (sandbox.status == SANDBOX_READY && sandbox.ready) {
		watch_remove(&submit->watch);
		submit_admit(submit, slot, &sandbox);
	} else if (submit->silent || sandbox_is_being_made(&sandbox)) {
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
	if (spec->apply_patch)
		json_object_object_add(request, "apply_patch", json_object_new_boolean(true));
	if (spec->stdin_base64 != NULL)
		json_object_object_add(request, "stdin_base64", json_object_new_string(spec->stdin_base64));
	if (spec->stdin_open)
		json_object_object_add(request, "stdin_open", json_object_new_boolean(true));
	if (spec->user != NULL)
		json_object_object_add(request, "user", json_object_new_string(spec->user));
	json_object_object_add(request, "max_output_bytes", json_object_new_int64(spec->max_output_bytes));
	json_object_object_add(request, "spool_bytes", json_object_new_int64(spec->spool_bytes));
	if (spec->hold_ms > 0)
		json_object_object_add(request, "hold_ms", json_object_new_int64(spec->hold_ms));
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
	struct err err;

	/* Who could not wait for the end is told before there is something to wait for. */
	if (spec->wait && service_waiter_check(service, &err) != 0) {
		*ret_submit = NULL;
		free(submit);
		service_count(service, METRIC_EXECS_REFUSED, 1);
		done(NULL, &err, arg);
		return;
	}
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
		.detached = !spec->wait || spec->key != NULL,
		.stdin_open = spec->stdin_open,
		.timeout_ms = spec->timeout_ms,
	};
	snprintf(submit->record.tenant, sizeof submit->record.tenant, "%s", tenant);
	snprintf(submit->record.lane, sizeof submit->record.lane, "%s", spec->lane);
	LIST_INSERT_HEAD(&service->submits, submit, link);
	if (spec->key != NULL) {
		submit->keyed = true;
		submit->record.key = key_store_key(tenant, spec->key->name);
		memcpy(submit->digest, spec->key->digest, sizeof submit->digest);
		exec_key_look(submit);
	} else {
		exec_submit_look(submit);
	}
	if (over) {
		*ret_submit = NULL;
		return;
	}
	submit->ret_over = NULL;
	*ret_submit = submit;
}
