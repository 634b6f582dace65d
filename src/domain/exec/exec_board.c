/*
 * exec_board.c - other servers are told of commands, where there are any.
 *
 * Of a live one only when a client may ask for it elsewhere: one that was told its id and did not wait. Of the end
 * always, and only then the agent may forget it, for a result stands in two places.
 */
/* SPDX-License-Identifier: MIT */
#include "domain/exec/exec_priv.h"
#include "domain/job/job_priv.h"
#include "domain/sandbox/sandbox_priv.h"
#include "domain/service_priv.h"
#include "backend/agent_client.h"
#include "backend/job_store.h"
#include "backend/record_log.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "cluster/job_board.h"
#include "conf/config.h"
#include "ipc/shm.h"
#include "redis/client.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIVE_KEEP_MS = 24 * 3600 * 1000 };

/* An end that is told to others. */
struct exec_told {
	LIST_ENTRY(exec_told) link;
	bool ack; /* then its agent may forget it */
	bool lost; /* no end of it is stored here */
	struct json_object *ours; /* owned; as it is stored here, while it is compared with what was told before */
	struct service *service;
	uint32_t sandbox_slot;
	char sandbox_uid[ID_UUID_SIZE], job_id[ID_UUID_SIZE];
};

/* --- live ones --- */

static bool
board_put(struct exec *exec, job_board_told_f *done, void *arg)
{
	struct json_object *request = json_object_object_get(exec->spec, "request");
	AUTO_JSON struct json_object *job = job_live_json(
		&exec->record, json_object_object_get(request, "command"), UINT32_MAX);
	AUTO_JSON struct json_object *take = job_take_json(
		&exec->record, json_object_get_boolean(json_object_object_get(exec->spec, "base64")));

	return job_board_put(exec->service->board,
		&(struct board_job){
			.id = exec->record.id,
			.tenant = exec->record.tenant,
			.sandbox_id = exec->record.sandbox_id,
			.sandbox_uid = exec->record.sandbox_uid,
			.state = exec->record.state == JOB_QUEUED ? "queued" : "running",
			.json = json_text(job, NULL),
			.take = json_text(take, NULL),
			.host = exec->service->host,
			.created_at = exec->record.created_at,
			.keep_ms = LIVE_KEEP_MS + exec->record.timeout_ms,
		},
		done, arg);
}

void
exec_board_tell(struct exec *exec)
{
	if (exec->service->board != NULL && (exec->record.detached || exec->record.taken))
		(void)!board_put(exec, NULL, NULL);
}

void
exec_board_tell_all(struct service *service)
{
	struct exec *exec;

	for (int i = 0; i < SERVICE_EXEC_BUCKETS; i++) {
		LIST_FOREACH(exec, &service->exec_buckets[i], link)
		{
			if (exec->step != EXEC_STORING && exec->step != EXEC_SAVING)
				exec_board_tell(exec);
		}
	}
	exec_submit_announce_again(service);
}

int
exec_board_check(const struct service *service, const struct job_record *record, struct err *err)
{
	if (service->board == NULL || !record->detached || redis_is_up(service->share->redis))
		return 0;
	return err_set(err, ERR_UNAVAILABLE,
		"Redis is away, so other servers can't be told of this command: ask again, or wait for its end");
}

static void
board_on_announced(bool told, void *arg)
{
	exec_submit_announced(arg, told);
}

bool
exec_board_announce(struct exec *exec, struct exec_submit *submit)
{
	return board_put(exec, board_on_announced, submit);
}

/* --- ends --- */

static struct exec_told *
told_new(struct service *service, uint32_t sandbox_slot, const char *sandbox_uid, const char *job_id)
{
	struct exec_told *told = alloc_zero(1, sizeof *told);

	told->service = service;
	told->sandbox_slot = sandbox_slot;
	snprintf(told->sandbox_uid, sizeof told->sandbox_uid, "%s", sandbox_uid);
	snprintf(told->job_id, sizeof told->job_id, "%s", job_id);
	LIST_INSERT_HEAD(&service->tolds, told, link);
	return told;
}

static void
told_free(struct exec_told *told)
{
	LIST_REMOVE(told, link);
	json_object_put(told->ours);
	free(told);
}

void
exec_board_free_all(struct service *service)
{
	struct exec_told *told;

	while ((told = LIST_FIRST(&service->tolds)) != NULL) {
		service_forget(service, told);
		told_free(told);
	}
}

static void
told_ack(struct exec_told *told)
{
	struct sandbox_record sandbox;
	struct agent_target target;

	if (told->ack && sandbox_read_life(told->service, told->sandbox_slot, told->sandbox_uid, &sandbox)) {
		target = service_target(&sandbox);
		agent_job_ack(told->service->agents, &target, told->job_id);
	}
	told_free(told);
}

static bool
is_same(struct json_object *ours, struct json_object *theirs, const char *name)
{
	return json_object_equal(json_object_object_get(ours, name), json_object_object_get(theirs, name)) != 0;
}

/* The first end stands for all: another one that is stored here is forgotten, so that this server says the same. */
static void
told_on_standing(const struct board_answer *answer, const struct err *why, void *arg)
{
	struct exec_told *told = arg;
	struct record_key key = record_key_job(told->job_id);
	AUTO_JSON struct json_object *theirs = NULL;

	(void)why;
	if (answer != NULL && job_far_has_ended(answer))
		theirs = job_far_json(answer, job_seal_tenant(told->ours));
	if (theirs != NULL &&
		!(is_same(told->ours, theirs, "verdict") && is_same(told->ours, theirs, "exit_code") &&
			is_same(told->ours, theirs, "completed_at") && is_same(told->ours, theirs, "error")))
		record_index_drop(shm_index(told->service->shm), &key);
	told_ack(told);
}

static void
told_on_ours(struct json_object *value, const struct err *why, void *arg)
{
	struct exec_told *told = arg;
	struct err err;

	(void)why;
	told->ours = json_object_get(value);
	if (value == NULL || job_board_get(told->service->board, told->job_id, told_on_standing, told, &err) != 0)
		told_ack(told);
}

/* Given up: exec_tidy() of somebody comes to it once the agent keeps much. */
static void
board_on_told(enum board_told how, void *arg)
{
	struct exec_told *told = arg;

	/* Given up: whoever was promised it is told so after a while. */
	if (how != BOARD_GIVEN_UP)
		exec_submit_end_told(told->service, told->job_id);
	if (how == BOARD_GIVEN_UP)
		told_free(told);
	else if (how == BOARD_TOLD)
		told_ack(told);
	else
		job_store_get_result(told->service->store, told->job_id, told_on_ours, told);
}

/* Kept as long as here: what has an Idempotency-Key may have to be kept longer. told NULL: nobody wants to know. */
static void
board_end(struct service *service, const struct job_record *record, struct json_object *job, struct exec_told *told)
{
	double keep_s = service->config->orphan_job_ttl_hours * 3600, left_s = record->keep_until - clock_steady();
	AUTO_JSON struct json_object *bounded = job_bounded(job, (size_t)service->config->redis_output_bytes);
	AUTO_JSON struct json_object *brief = job_without_outputs(job);

	(void)!job_unseal(brief, record->tenant, NULL);
	job_board_end(service->board,
		&(struct board_end){
			.id = record->id,
			.tenant = record->tenant,
			.sandbox_uid = record->sandbox_uid,
			.json = json_text(bounded, NULL),
			.brief = json_text(brief, NULL),
			.created_at = record->created_at,
			.keep_ms = (int64_t)((left_s > keep_s ? left_s : keep_s) * 1000),
		},
		told != NULL ? board_on_told : NULL, told);
}

static struct job_record
stored_record(const char *job_id, const char *sandbox_uid, struct json_object *value)
{
	struct job_record record = { 0 };

	snprintf(record.id, sizeof record.id, "%s", job_id);
	snprintf(record.sandbox_uid, sizeof record.sandbox_uid, "%s", sandbox_uid);
	snprintf(record.tenant, sizeof record.tenant, "%s", value != NULL ? job_seal_tenant(value) : "");
	record.created_at = json_object_get_double(json_object_object_get(value, "created_at"));
	record.keep_until = job_seal_keep(value);
	return record;
}

void
exec_board_end_again(
	struct service *service, const char *job_id, const char *sandbox_uid, struct json_object *result)
{
	struct job_record record = stored_record(job_id, sandbox_uid, result);

	board_end(service, &record, result, NULL);
}

bool
exec_board_end(struct exec *exec)
{
	const struct job_record *record = &exec->record;
	struct exec_told *told;

	if (exec->service->board == NULL)
		return false;
	told = told_new(exec->service, record->sandbox_slot, record->sandbox_uid, record->id);
	told->ack = exec->agent_ended;
	board_end(exec->service, record, exec->result, told);
	return true;
}

/* --- what an agent still keeps --- */

/* The reaper alone does, so that it is done once: a live job of this server that has neither a record nor an end here. */
static void
board_take_up(const struct exec_told *told, const struct board_answer *answer)
{
	struct service *service = told->service;
	struct job_record record;
	uint32_t slot;

	if (told->lost && service->live != NULL && strcmp(answer->home, service->share->replica) == 0 &&
		!job_table_find(service_jobs(service), told->job_id, &record, &slot) &&
		!job_is_taken(service, told->job_id))
		job_take_up(service, told->job_id, answer);
}

static void
board_on_known(const struct board_answer *answer, const struct err *why, void *arg)
{
	(void)why;
	/* A live one is another server's, and so may be one that nobody has told of; or it was lost here. */
	if (answer != NULL && !job_far_has_ended(answer))
		board_take_up(arg, answer);
	board_on_told(answer != NULL && job_far_has_ended(answer) ? BOARD_TOLD : BOARD_GIVEN_UP, arg);
}

static void
board_on_stored(struct json_object *value, const struct err *why, void *arg)
{
	struct exec_told *told = arg;
	struct job_record record = stored_record(told->job_id, told->sandbox_uid, value);
	struct err err;

	told->lost = why != NULL && why->code == ERR_NOT_FOUND;
	if (value != NULL)
		board_end(told->service, &record, value, told);
	else if (job_board_get(told->service->board, told->job_id, board_on_known, told, &err) != 0)
		told_free(told);
}

bool
exec_board_settle(struct service *service, uint32_t sandbox_slot, const char *sandbox_uid, const char *job_id)
{
	struct exec_told *told;

	if (service->board == NULL)
		return false;
	/* Nothing can be told, or it will be: again and again, it would push others out. */
	if (!redis_is_up(service->share->redis) || job_board_tells(service->board, job_id))
		return true;
	told = told_new(service, sandbox_slot, sandbox_uid, job_id);
	told->ack = true;
	job_store_get_result(service->store, job_id, board_on_stored, told);
	return true;
}
