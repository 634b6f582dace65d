/*
 * exec_finish.c - a command has ended: written down, told, forgotten.
 *
 * The result is stored before the agent may forget it and before the record of
 * the live job goes, so that at every moment one of them knows it; then the lane
 * goes on. The first end that is stored stands.
 */
/* SPDX-License-Identifier: MIT */
#include "domain/exec_priv.h"
#include "domain/job_priv.h"
#include "domain/sandbox_priv.h"
#include "domain/service_priv.h"
#include "backend/agent_client.h"
#include "backend/job_store.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/log.h"
#include "conf/config.h"

#include <event2/event.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct json_object *
exec_command(const struct exec *exec)
{
	struct json_object *request = json_object_object_get(exec->spec, "request");

	return json_object_object_get(request, "command");
}

static bool
exec_base64(const struct exec *exec)
{
	return json_object_get_boolean(json_object_object_get(exec->spec, "base64"));
}

static const char *
result_word(struct json_object *job, const char *name)
{
	const char *word = json_object_get_string(json_object_object_get(job, name));

	return word != NULL ? word : "";
}

static void
exec_count_end(struct exec *exec)
{
	bool succeeded = strcmp(result_word(exec->result, "status"), "succeeded") == 0;

	service_count(exec->service, succeeded ? METRIC_EXECS_SUCCEEDED : METRIC_EXECS_FAILED, 1);
	if (strcmp(result_word(exec->result, "verdict"), "timed_out") == 0)
		service_count(exec->service, METRIC_EXECS_TIMED_OUT, 1);
}

/* Nothing of it is left here after this; the job's end is known to all. */
static void
exec_conclude(struct exec *exec)
{
	struct service *service = exec->service;
	struct json_object *result = STEAL_PTR(exec->result);
	struct job_record record = exec->record;
	uint32_t slot = exec->job_slot;

	/* Seen from outside it has ended before the next of its lane starts: only exec_free gives the place back. */
	job_table_remove(service_jobs(service), slot, record.id);
	exec_free(exec);
	notify_post(service->notify, NOTIFY_JOB, slot);
	if (result != NULL && job_unseal(result, record.tenant, NULL))
		job_waits_tell(service, slot, record.id, result);
	json_object_put(result);
}

static void
exec_ack(struct exec *exec)
{
	struct sandbox_record sandbox;
	struct agent_target target;

	if (!exec->agent_ended ||
		!sandbox_read_life(exec->service, exec->record.sandbox_slot, exec->record.sandbox_uid, &sandbox))
		return;
	target = service_target(&sandbox);
	agent_job_ack(exec->service->agents, &target, exec->record.id);
}

static void
exec_on_theirs(struct json_object *value, const struct err *why, void *arg)
{
	struct exec *exec = arg;

	(void)why;
	if (value != NULL) {
		json_object_put(exec->result);
		exec->result = json_object_get(value);
	}
	exec_ack(exec);
	exec_conclude(exec);
}

/* What fits a full disk: everything but the outputs, and it says so. */
static struct json_object *
result_brief(struct json_object *result)
{
	struct json_object *brief = job_without_outputs(result);

	json_object_object_add(brief, "stdout", json_object_new_string(""));
	json_object_object_add(brief, "stderr", json_object_new_string(""));
	json_object_object_add(brief, "stdout_truncated", json_object_new_boolean(true));
	json_object_object_add(brief, "stderr_truncated", json_object_new_boolean(true));
	if (json_object_object_get(brief, "error") == NULL)
		json_object_object_add(brief, "error",
			json_object_new_string("the server's disk was full: outputs were not kept"));
	return brief;
}

static void exec_store_result(struct exec *exec, struct json_object *job);

static void
exec_on_saved(const struct record_location *place, const struct err *why, void *arg)
{
	struct exec *exec = arg;
	struct log_ctx ctx = { .sandbox_id = exec->record.sandbox_id, .job_id = exec->record.id };

	(void)place;
	if (why == NULL) {
		exec_count_end(exec);
		exec_ack(exec);
		exec_conclude(exec);
	} else if (why->code == ERR_EXISTS) {
		job_store_get_result(exec->service->store, exec->record.id, exec_on_theirs, exec);
	} else if (!exec->saved_short) {
		AUTO_JSON struct json_object *brief = result_brief(exec->result);

		log_write(LOG_LEVEL_ERROR, &ctx, "job result not stored, trying without outputs: %s", why->msg);
		exec->saved_short = true;
		exec_store_result(exec, brief);
	} else {
		log_write(LOG_LEVEL_ERROR, &ctx, "job result lost to all but those who wait now: %s", why->msg);
		exec_count_end(exec);
		exec_conclude(exec);
	}
}

static void
exec_store_result(struct exec *exec, struct json_object *job)
{
	double expires_at = clock_wall() + exec->service->config->orphan_job_ttl_hours * 3600;

	job_store_put_result(exec->service->store, exec->record.id, job, expires_at, exec_on_saved, exec);
}

/* --- the sandbox's chain of ended jobs --- */

struct chain_link {
	const char *job_id;
	char *ret_prev; /* ID_UUID_SIZE */
};

static int
change_last_job(struct sandbox_record *record, void *arg, struct err *err)
{
	struct chain_link *link = arg;

	(void)err;
	record->activity_ms = clock_boot_ms();
	if (strcmp(record->last_job, link->job_id) != 0) {
		memcpy(link->ret_prev, record->last_job, ID_UUID_SIZE);
		snprintf(record->last_job, sizeof record->last_job, "%s", link->job_id);
	}
	return 0;
}

static void
exec_link(struct exec *exec)
{
	struct chain_link link = { .job_id = exec->record.id, .ret_prev = exec->record.prev_job };
	struct err err;

	/* A sandbox that is gone has no list any more. */
	(void)!sandbox_table_change(service_sandboxes(exec->service), exec->record.sandbox_slot,
		exec->record.sandbox_uid, change_last_job, &link, &err);
}

/* --- the ways to end --- */

static void
exec_stop_all(struct exec *exec)
{
	if (exec->call != NULL)
		agent_call_cancel(STEAL_PTR(exec->call));
	if (exec->cancel_call != NULL)
		agent_call_cancel(STEAL_PTR(exec->cancel_call));
	event_del(exec->timer);
	event_del(exec->cancel_timer);
	watch_remove(&exec->sandbox_watch);
	watch_remove(&exec->job_watch);
}

/* Takes the result over. */
static void
exec_save(struct exec *exec, struct json_object *result)
{
	exec->step = EXEC_SAVING;
	exec->result = result;
	exec_stop_all(exec);
	exec_link(exec);
	exec->record.state = JOB_SAVING;
	if (!exec_write_record(exec))
		return;
	job_seal(result, &exec->record);
	exec_store_result(exec, result);
}

void
exec_finish_agent(struct exec *exec, struct json_object *agent_job)
{
	exec->agent_ended = true;
	exec_save(exec, job_agent_json(&exec->record, exec_command(exec), agent_job, exec_base64(exec)));
}

void
exec_finish_words(struct exec *exec, const char *verdict, const char *error)
{
	/* What never ran has no start. */
	if (strcmp(verdict, "never_started") == 0 || (exec->sent_ms == 0 && exec->call == NULL)) {
		exec->record.started_at = 0;
		exec->record.started_ms = 0;
	}
	exec_save(exec, job_words_json(&exec->record, exec_command(exec), verdict, error, exec_base64(exec)));
}

void
exec_finish_stored(struct exec *exec)
{
	exec->step = EXEC_SAVING;
	exec_stop_all(exec);
	job_store_get_result(exec->service->store, exec->record.id, exec_on_theirs, exec);
}
