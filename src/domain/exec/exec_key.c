/*
 * exec_key.c - a command with an Idempotency-Key: one job, however often it is asked for.
 *
 * The key is looked up before anything else. Unknown, the request goes the usual way,
 * and once it is admitted it claims the key for the job id that it has made up;
 * then the job is recorded. Of two requests that get so far together the first claim
 * stands, and the other gives its place back and attaches to that job. What is refused
 * on the way gives its claim up.
 *
 * A claim whose job is neither live nor stored is of a process that died before it
 * recorded the job, or is just about to. The request renews the claim and records
 * the job itself, under the same id: of two such records the job table takes one, and
 * the agent starts an id once. Renewing also makes the first one's giving up void.
 * After RECORD_S that is no more believed, nor once the key says that its job has ended:
 * then the outcome was dropped from the store for lack of room, or could not be stored,
 * and it is not run again. Another server's claim is never taken over that way: its agent might have forgotten the id. A result is stored and the key told before the live record
 * goes, so whoever has inserted a record and finds neither is the first.
 */
/* SPDX-License-Identifier: MIT */
#include "domain/exec/exec_priv.h"
#include "domain/job/job_priv.h"
#include "domain/keys.h"
#include "domain/service_priv.h"
#include "backend/job_store.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "cluster/job_board.h"
#include "conf/config.h"
#include "ipc/notify.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

enum {
	RECORD_S = 60, /* whoever has claimed a key has recorded the job by then, or is dead */
	QUEUE_S = 3600 /* a job may wait so long before its key has to be prolonged */
};

static void
key_replay(struct exec_submit *submit)
{
	char job_id[ID_UUID_SIZE];

	memcpy(job_id, submit->claim.id, sizeof job_id);
	service_count(submit->service, METRIC_KEY_REPLAYS, 1);
	exec_submit_tell(submit, job_id, NULL);
}

void
exec_key_lost(struct exec_submit *submit)
{
	struct err err;

	err_set(&err, ERR_OUTCOME_LOST,
		"this request was made before, as job %s, and how that ended is not known any more; it is not run "
		"again: use another Idempotency-Key if it should be",
		submit->claim.id);
	exec_submit_tell(submit, NULL, &err);
}

static bool
key_is_old(const struct exec_submit *submit)
{
	return submit->claim.ended || clock_steady() - submit->claim.claimed_at > RECORD_S;
}

/* It lives here. What its client is told may be asked of any server: not before they know of it. */
static void
key_on_known(const struct board_answer *answer, const struct err *why, void *arg)
{
	struct exec_submit *submit = arg;
	struct err err;

	if (answer != NULL) {
		key_replay(submit);
	} else if (why->code != ERR_NOT_FOUND) {
		exec_submit_tell(submit, NULL, why);
	} else {
		err_set(&err, ERR_UNAVAILABLE, "this request is just being recorded; ask again");
		exec_submit_tell(submit, NULL, &err);
	}
}

static void
key_replay_live(struct exec_submit *submit)
{
	struct err err;

	if (submit->service->board == NULL)
		key_replay(submit);
	else if (job_board_get(submit->service->board, submit->claim.id, key_on_known, submit, &err) != 0)
		exec_submit_tell(submit, NULL, &err);
}

/* Nobody knows of its job. */
static void
key_nowhere(struct exec_submit *submit)
{
	struct err err;

	if (key_is_old(submit)) {
		exec_key_lost(submit);
	} else if (submit->claim.home[0] != '\0') {
		err_set(&err, ERR_UNAVAILABLE, "another server is recording this request; ask again");
		exec_submit_tell(submit, NULL, &err);
	} else {
		submit->again = true;
		exec_submit_look(submit);
	}
}

/* Another server's, which alone records it; or one of ours that another server may have taken over. */
static void
key_on_far(const struct board_answer *answer, const struct err *why, void *arg)
{
	struct exec_submit *submit = arg;

	if (answer != NULL)
		key_replay(submit);
	else if (why->code != ERR_NOT_FOUND)
		exec_submit_tell(submit, NULL, why);
	else
		key_nowhere(submit);
}

static void
key_on_result(struct json_object *value, const struct err *why, void *arg)
{
	struct exec_submit *submit = arg;
	struct err err;

	if (value != NULL) {
		key_replay(submit);
	} else if (why->code != ERR_NOT_FOUND) {
		exec_submit_tell(submit, NULL, why);
	} else if (submit->service->board != NULL) {
		if (job_board_get(submit->service->board, submit->claim.id, key_on_far, submit, &err) != 0)
			exec_submit_tell(submit, NULL, &err);
	} else {
		key_nowhere(submit);
	}
}

/* Somebody has the key. */
static void
key_judge(struct exec_submit *submit, const struct key_claim *claim)
{
	struct job_record record;
	struct err err;
	uint32_t slot;

	if (strcmp(claim->digest, submit->digest) != 0) {
		service_count(submit->service, METRIC_KEY_CONFLICTS, 1);
		err_set(&err, ERR_KEY_CONFLICT, "this Idempotency-Key was used for another request");
		exec_submit_tell(submit, NULL, &err);
		return;
	}
	submit->claim = *claim;
	submit->claim.answer = NULL;
	if (job_find_live(submit->service, submit->tenant, claim->id, &record, &slot))
		key_replay_live(submit);
	else
		job_store_get_result(submit->service->store, claim->id, key_on_result, submit);
}

static void
key_on_claim(const struct key_claim *claim, const struct err *why, void *arg)
{
	struct exec_submit *submit = arg;

	if (claim != NULL) {
		key_judge(submit, claim);
	} else if (why->code != ERR_NOT_FOUND) {
		exec_submit_tell(submit, NULL, why);
	} else {
		submit->again = false;
		exec_submit_look(submit);
	}
}

void
exec_key_look(struct exec_submit *submit)
{
	keys_get(submit->service, &submit->record.key, key_on_claim, submit);
}

static void
key_on_refused(const struct key_claim *claim, const struct err *why, void *arg)
{
	struct exec_submit *submit = arg;
	struct job_record record;
	struct err refusal = submit->refusal;
	uint32_t slot;

	(void)why;
	if (claim != NULL && job_find_live(submit->service, submit->tenant, claim->id, &record, &slot)) {
		key_judge(submit, claim);
		return;
	}
	service_count(submit->service, METRIC_EXECS_REFUSED, 1);
	exec_submit_tell(submit, NULL, &refusal);
}

void
exec_key_refused(struct exec_submit *submit, const struct err *why)
{
	submit->refusal = *why;
	keys_get(submit->service, &submit->record.key, key_on_refused, submit);
}

/* --- the one that is admitted --- */

static void
key_on_claimed(const struct key_claim *claim, const struct err *why, void *arg)
{
	struct exec *exec = arg;
	struct exec_submit *submit = exec->submit;

	if (why == NULL) {
		if (exec->first)
			exec->claim = claim->place;
		exec_submit_record(exec);
	} else if (why->code == ERR_EXISTS || why->code == ERR_STALE) {
		submit = exec_submit_withdraw(exec);
		if (submit != NULL && claim != NULL)
			key_judge(submit, claim);
		else if (submit != NULL)
			exec_key_look(submit);
	} else {
		exec_submit_refuse(exec, why);
	}
}

/* Until when the key must be known if the command starts QUEUE_S from now at the latest. */
static double
key_life(const struct config *config, const struct job_record *record)
{
	return clock_steady() + QUEUE_S + (double)record->timeout_ms / 1000 + config->kill_grace_seconds +
		(double)config->idempotency_ttl_seconds;
}

void
exec_key_claim(struct exec *exec)
{
	const struct exec_submit *submit = exec->submit;
	struct key_claim claim = { .claimed_at = clock_steady() };

	exec->first = !submit->again;
	memcpy(claim.digest, submit->digest, sizeof claim.digest);
	memcpy(claim.id, exec->record.id, sizeof exec->record.id);
	memcpy(claim.sandbox_uid, exec->record.sandbox_uid, sizeof claim.sandbox_uid);
	exec->record.keep_until = key_life(exec->service->config, &exec->record);
	if (submit->again) {
		claim.place = submit->claim.place;
		keys_renew(exec->service, &exec->record.key, &claim, exec->record.keep_until, key_on_claimed, exec);
	} else {
		keys_put(exec->service, &exec->record.key, &claim, exec->record.keep_until, key_on_claimed, exec);
	}
}

void
exec_key_give_up(struct exec *exec)
{
	if (exec->claim.segment != 0)
		keys_give_up(exec->service, &exec->record.key, &exec->claim);
}

void
exec_key_attach(struct exec *exec)
{
	struct exec_submit *submit = exec->submit;

	if (submit != NULL)
		memcpy(submit->claim.id, exec->record.id, sizeof exec->record.id);
	submit = exec_submit_withdraw(exec);
	if (submit != NULL)
		key_replay_live(submit);
}

/* It was recorded after the job of its id had ended. */
static void
key_drop_record(struct exec *exec)
{
	job_table_remove(service_jobs(exec->service), exec->job_slot, exec->record.id);
	notify_post(exec->service->notify, NOTIFY_JOB, exec->job_slot);
}

/* No result; perhaps there was none to be kept. */
static void
key_on_end(const struct key_claim *claim, const struct err *why, void *arg)
{
	struct exec *exec = arg;
	struct exec_submit *submit;

	if (claim == NULL && why->code != ERR_NOT_FOUND) {
		key_drop_record(exec);
		exec_submit_refuse(exec, why);
		return;
	}
	if (claim == NULL || !claim->ended) {
		exec_submit_recorded(exec);
		return;
	}
	key_drop_record(exec);
	submit = exec_submit_withdraw(exec);
	if (submit != NULL) {
		submit->claim = *claim;
		submit->claim.answer = NULL;
		exec_key_lost(submit);
	}
}

static void
key_on_checked(struct json_object *value, const struct err *why, void *arg)
{
	struct exec *exec = arg;

	if (value == NULL && why->code != ERR_NOT_FOUND) {
		key_drop_record(exec);
		exec_submit_refuse(exec, why);
		return;
	}
	if (value == NULL) {
		keys_get(exec->service, &exec->record.key, key_on_end, exec);
		return;
	}
	key_drop_record(exec);
	exec_key_settle(exec);
	exec_key_attach(exec);
}

void
exec_key_check(struct exec *exec)
{
	job_store_get_result(exec->service->store, exec->record.id, key_on_checked, exec);
}

void
exec_key_settle(struct exec *exec)
{
	double expires_at = clock_steady() + (double)exec->service->config->idempotency_ttl_seconds;

	if (exec->record.keep_until == 0)
		return;
	/* keep_until is later, unless the settings have changed meanwhile. */
	keys_settle(exec->service, &exec->record.key,
		expires_at < exec->record.keep_until ? expires_at : exec->record.keep_until);
}

/* --- those that wait for long --- */

struct prolong {
	struct service *service;
	uint32_t slot;
	struct job_record record; /* keep_until: the new one */
};

static int
change_keep_until(struct job_record *record, void *arg, struct err *err)
{
	(void)err;
	record->keep_until = ((struct prolong *)arg)->record.keep_until;
	return 0;
}

static void
prolong_on_renewed(const struct key_claim *claim, const struct err *why, void *arg)
{
	AUTO_FREE struct prolong *prolong = arg;
	struct err err;

	(void)claim;
	/* Stale: it has just ended. */
	if (why != NULL && why->code == ERR_STALE)
		return;
	if (why != NULL)
		log_write(LOG_LEVEL_WARN, &(struct log_ctx){ .job_id = prolong->record.id },
			"its Idempotency-Key could not be prolonged: %s", why->msg);
	else if (job_table_change(service_jobs(prolong->service), prolong->slot, prolong->record.id,
			 change_keep_until, prolong, &err) != 0)
		keys_settle(prolong->service, &prolong->record.key, prolong->record.keep_until);
}

static void
prolong_on_claim(const struct key_claim *claim, const struct err *why, void *arg)
{
	struct prolong *prolong = arg;

	if (claim != NULL)
		keys_renew(prolong->service, &prolong->record.key, claim, prolong->record.keep_until,
			prolong_on_renewed, prolong);
	else
		prolong_on_renewed(NULL, why, prolong);
}

void
exec_prolong_keys(struct service *service)
{
	struct shm_jobs *jobs = service_jobs(service);
	uint32_t bound = job_table_count(jobs) > 0 ? job_table_bound(jobs) : 0;
	struct job_record record;

	for (uint32_t slot = 0; slot < bound; slot++) {
		struct prolong *prolong;
		double until;

		if (!job_table_read(jobs, slot, &record) || record.keep_until == 0)
			continue;
		until = key_life(service->config, &record);
		if (record.keep_until > until - QUEUE_S / 2)
			continue;
		prolong = alloc_zero(1, sizeof *prolong);
		prolong->service = service;
		prolong->slot = slot;
		prolong->record = record;
		prolong->record.keep_until = until;
		keys_get(service, &record.key, prolong_on_claim, prolong);
	}
}
