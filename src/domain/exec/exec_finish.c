/*
 * exec_finish.c - a command has ended: written down, told, forgotten.
 *
 * The result is stored before the agent may forget it and before the record of
 * the live job goes, so that at every moment one of them knows it; then the lane
 * goes on. The first end that is stored stands.
 */
/* SPDX-License-Identifier: MIT */
#include "domain/exec/exec_priv.h"
#include "domain/job/job_priv.h"
#include "domain/sandbox/sandbox_priv.h"
#include "domain/service_priv.h"
#include "backend/agent_client.h"
#include "backend/job_store.h"
#include "base/alloc.h"
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

	exec_key_settle(exec);
	/* Seen from outside it has ended before the next of its lane starts: only exec_free gives the place back. */
	job_table_remove(service_jobs(service), slot, record.id);
	exec_free(exec);
	if (result != NULL && job_unseal(result, record.tenant, NULL))
		job_waits_tell(service, slot, record.id, result);
	/* Behind those that were told: a process need not wake itself for them. */
	watch_post(&service->watches, NOTIFY_JOB, slot);
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

/* It stands here; the agent may forget it once it stands elsewhere, too. */
static void
exec_stored(struct exec *exec)
{
	if (!exec_board_end(exec))
		exec_ack(exec);
	exec_conclude(exec);
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
	exec_stored(exec);
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
		exec_stored(exec);
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
		/* Where other servers can be told, it stands there. */
		(void)!exec_board_end(exec);
		exec_conclude(exec);
	}
}

static void
exec_store_result(struct exec *exec, struct json_object *job)
{
	struct job_life life = {
		.expires_at = clock_steady() + exec->service->config->orphan_job_ttl_hours * 3600,
		.lasting = exec->record.keep_until > 0,
	};

	if (life.expires_at < exec->record.keep_until)
		life.expires_at = exec->record.keep_until;
	job_store_put_result(exec->service->store, exec->record.id, job, &life, exec_on_saved, exec);
}

/*
 * --- the sandbox's chain of ended jobs ---
 *
 * The sandbox's record takes a job in: which one is the last now, and which one it follows. Only then the job's own
 * record says what it follows. Whoever covers the last one with the next says it in its place first, so that a process
 * that takes a job over can always tell: it is the last one, or says itself that it was, or has never been taken in.
 */

struct chain_link {
	const char *job_id;
	const char *last; /* the last one as it was seen */
	char *ret_prev;
};

static int
change_last_job(struct sandbox_record *record, void *arg, struct err *err)
{
	const struct chain_link *link = arg;

	if (strcmp(record->last_job, link->job_id) != 0) {
		if (strcmp(record->last_job, link->last) != 0)
			return err_set(err, ERR_CONFLICT, "another job was faster");
		memcpy(record->last_prev, record->last_job, sizeof record->last_prev);
		snprintf(record->last_job, sizeof record->last_job, "%s", link->job_id);
		record->activity_ms = clock_boot_ms();
	}
	memcpy(link->ret_prev, record->last_prev, sizeof record->last_prev);
	return 0;
}

static int
change_chained(struct job_record *record, void *arg, struct err *err)
{
	(void)err;
	memcpy(record->prev_job, arg, sizeof record->prev_job);
	record->chained = true;
	return 0;
}

/* The last one is about to be covered: its record says what it follows, if it still has one. */
static void
chain_settle(struct service *service, struct sandbox_record *sandbox)
{
	struct job_record last;
	struct err err;
	uint32_t slot;

	if (sandbox->last_job[0] != '\0' &&
		job_table_find(service_jobs(service), sandbox->last_job, &last, &slot) && !last.chained)
		(void)!job_table_change(
			service_jobs(service), slot, last.id, change_chained, sandbox->last_prev, &err);
}

/* Its sandbox's record was read before: what covered it there has said so in the job's record. */
static bool
exec_was_chained(struct exec *exec)
{
	struct job_record now;

	if (!job_table_read(service_jobs(exec->service), exec->job_slot, &now) ||
		strcmp(now.id, exec->record.id) != 0 || !now.chained)
		return false;
	memcpy(exec->record.prev_job, now.prev_job, sizeof exec->record.prev_job);
	return true;
}

/* Its end is known: says so in the chain and in its record; false: it is not ours any more, and exec is gone. */
static bool
exec_link(struct exec *exec)
{
	struct sandbox_record sandbox;
	struct chain_link link = {
		.job_id = exec->record.id, .last = sandbox.last_job, .ret_prev = exec->record.prev_job
	};
	struct err err;

	exec->record.state = JOB_SAVING;
	if (!exec_write_record(exec))
		return false;
	/* A sandbox that is gone has no chain any more. */
	while (!exec->record.chained &&
		sandbox_read_life(exec->service, exec->record.sandbox_slot, exec->record.sandbox_uid, &sandbox)) {
		if (strcmp(sandbox.last_job, link.job_id) != 0) {
			exec->record.chained = exec_was_chained(exec);
			if (exec->record.chained)
				break;
			chain_settle(exec->service, &sandbox);
		}
		exec->record.chained = sandbox_table_change(service_sandboxes(exec->service),
					       exec->record.sandbox_slot, exec->record.sandbox_uid, change_last_job,
					       &link, &err) == 0;
		if (!exec->record.chained && err.code != ERR_CONFLICT)
			break;
	}
	return exec_write_record(exec);
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
	service_forget(exec->service, exec);
	exec_others_forget(exec);
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
	if (!exec_link(exec))
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
exec_finish_unsent(struct exec *exec)
{
	if (exec->record.cancel)
		exec_finish_words(exec, "canceled", "canceled before it started");
	else
		exec_finish_words(exec, "never_started",
			"the server process died before the command started; it did not run");
}

static void
exec_on_drained(const struct agent_answer *answer, void *arg)
{
	struct exec *exec = arg;

	exec->call = NULL;
	if (answer->outcome != AGENT_JOB) {
		exec_finish_words(exec, "sandbox_deleted", exec->deleted_error);
		return;
	}
	if (strcmp(result_word(answer->body, "state"), "ended") == 0) {
		exec_finish_agent(exec, answer->body);
		return;
	}
	exec_save(exec,
		job_cut_json(&exec->record, exec_command(exec), "sandbox_deleted", exec->deleted_error,
			answer->body, exec_base64(exec)));
}

void
exec_finish_deleted(struct exec *exec, const char *error)
{
	struct sandbox_record sandbox;
	struct agent_target target;
	struct err err;

	if (exec->step == EXEC_DRAINING)
		return;
	if (!exec_was_sent(exec) ||
		!sandbox_read_life(exec->service, exec->record.sandbox_slot, exec->record.sandbox_uid, &sandbox)) {
		exec_finish_words(exec, "sandbox_deleted", error);
		return;
	}
	if (exec->sent_ms == 0)
		exec->sent_ms = exec->record.started_ms;
	exec_stop_all(exec);
	exec->step = EXEC_DRAINING;
	exec->deleted_error = alloc_string(error);
	target = service_target(&sandbox);
	if (agent_job_get(exec->service->agents, &target, exec->record.id, 0, exec_on_drained, exec, &exec->call,
		    &err) != 0)
		exec_finish_words(exec, "sandbox_deleted", error);
}

void
exec_finish_theirs(struct exec *exec, struct json_object *job)
{
	exec_save(exec, job);
}

void
exec_finish_stored(struct exec *exec)
{
	exec->step = EXEC_SAVING;
	exec_stop_all(exec);
	job_store_get_result(exec->service->store, exec->record.id, exec_on_theirs, exec);
}
