/*
 * sweep.c - asks the rules of every sandbox, and the record log what may go.
 *
 * The whole table is looked at each time, which is cheap; of the removals only so
 * many are under way at a time, so that thousands at once neither hold the loop
 * up nor flood the driver. One that the driver fails at goes on by itself and
 * holds no place: it stops no sweep.
 */
/* SPDX-License-Identifier: MIT */
#include "reaper/reaper_priv.h"
#include "backend/record_log.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "conf/config.h"
#include "domain/exec/exec.h"
#include "domain/sandbox/expiry.h"
#include "domain/sandbox/sandbox.h"
#include "domain/service.h"
#include "ipc/job_table.h"
#include "ipc/shm.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { SWEEP_AT_ONCE = 64, CHECK_ROUND = 15, CHECK_BATCH = 1024 };

/* What one pass knows. */
struct pass {
	struct service *service;
	struct expiry_limits limits;
	bool *busy; /* per sandbox slot, once somebody asked: there are commands of it that have not ended */
	uint32_t bound;
	int64_t now_ms;
	bool judges; /* rules may be asked */
};

/* Those of a process that died have no place in the queue until another one goes on with them. */
static bool
has_commands(struct pass *pass, uint32_t slot)
{
	struct shm_jobs *jobs = shm_jobs(service_shm(pass->service));
	uint32_t bound = job_table_count(jobs) > 0 ? job_table_bound(jobs) : 0;
	struct job_record job;

	if (pass->busy != NULL)
		return pass->busy[slot];
	pass->busy = alloc_zero(pass->bound + (size_t)1, sizeof *pass->busy);
	for (uint32_t i = 0; i < bound; i++)
		if (job_table_read(jobs, i, &job) && job.sandbox_slot < pass->bound)
			pass->busy[job.sandbox_slot] = true;
	return pass->busy[slot];
}

/* The rule that ends it now, or EXPIRY_NEVER. A command that begins after this has touched the record (sandbox_reap). */
static enum expiry_rule
judge(struct pass *pass, uint32_t slot, const struct sandbox_record *record)
{
	struct expiry expiry = expiry_of(record, &pass->limits, false);

	if (expiry.at_ms <= pass->now_ms && (expiry.rule == EXPIRY_HEARTBEAT || expiry.rule == EXPIRY_IDLE) &&
		(sandbox_is_busy(pass->service, slot, record) || has_commands(pass, slot)))
		expiry = expiry_of(record, &pass->limits, true);
	return expiry.at_ms <= pass->now_ms ? expiry.rule : EXPIRY_NEVER;
}

static void
take(struct pass *pass, uint32_t slot, const struct sandbox_record *record, enum expiry_rule rule)
{
	struct err err;

	if (sandbox_reap(pass->service, slot, record, rule, &err) != 0 && err.code != ERR_NOT_FOUND &&
		err.code != ERR_CONFLICT)
		log_warn("sandbox in slot %u should go by the rule \"%s\" but cannot: %s", slot,
			expiry_rule_name(rule), err.msg);
}

/* Its agent lives, as far as the driver knows, but does not answer: asked again, but not for ever. */
static void
ask_silent(struct pass *pass, uint32_t slot, const struct sandbox_record *record)
{
	int64_t most_s = service_config(pass->service)->agent_silence_seconds;
	int64_t since_ms = record->status_ms;
	char words[SANDBOX_MESSAGE_SIZE];

	if (since_ms < pass->limits.served_since_ms)
		since_ms = pass->limits.served_since_ms;
	if (most_s == 0 || pass->now_ms - since_ms < most_s * 1000) {
		sandbox_probe(pass->service, slot);
		return;
	}
	snprintf(words, sizeof words, "its agent did not answer for %" PRId64 " s%s%.*s", most_s,
		record->message[0] != '\0' ? ": " : "", (int)sizeof words - 64, record->message);
	sandbox_lost(pass->service, slot, record->uid, words);
}

static void
sweep_one(struct pass *pass, uint32_t slot)
{
	struct sandbox_record record;
	enum expiry_rule rule;

	if (!sandbox_table_read(shm_sandboxes(service_shm(pass->service)), slot, &record))
		return;
	if (sandbox_is_foreign(&record)) {
		/* Whether it can be reached from here only this server can tell. */
		if (!record.elsewhere)
			sandbox_probe(pass->service, slot);
		return;
	}
	rule = pass->judges ? judge(pass, slot, &record) : EXPIRY_NEVER;
	if (rule != EXPIRY_NEVER)
		take(pass, slot, &record, rule);
	else if (record.status == SANDBOX_READY && !record.ready)
		ask_silent(pass, slot, &record);
}

bool
sweep_sandboxes(struct service *service, uint32_t *cursor)
{
	struct pass pass = {
		.service = service,
		.limits = service_expiry_limits(service),
		.bound = sandbox_table_bound(shm_sandboxes(service_shm(service))),
		.now_ms = clock_boot_ms(),
		.judges = service_may_judge(service),
	};
	uint32_t looked = 0;

	while (looked < pass.bound && sandbox_removals(service) < SWEEP_AT_ONCE) {
		*cursor = *cursor + 1 < pass.bound ? *cursor + 1 : 0;
		sweep_one(&pass, *cursor);
		looked++;
	}
	free(pass.busy);
	return looked < pass.bound;
}

void
sweep_agents(struct service *service, uint32_t number)
{
	struct shm_sandboxes *table = shm_sandboxes(service_shm(service));
	uint32_t bound = sandbox_table_bound(table);
	uint32_t round = bound / CHECK_BATCH > CHECK_ROUND ? bound / CHECK_BATCH : CHECK_ROUND;
	struct sandbox_record record;

	for (uint32_t slot = number % round; slot < bound; slot += round)
		if (sandbox_table_read(table, slot, &record) && record.status == SANDBOX_READY && record.ready &&
			!sandbox_is_foreign(&record))
			sandbox_check(service, slot, &record);
}

/* The oldest segment of the record log that something live still needs. */
static uint32_t
oldest_needed(struct service *service)
{
	struct shm_sandboxes *sandboxes = shm_sandboxes(service_shm(service));
	struct shm_jobs *jobs = shm_jobs(service_shm(service));
	uint32_t oldest = UINT32_MAX;
	struct sandbox_record sandbox;
	struct job_record job;

	for (uint32_t slot = 0; slot < job_table_bound(jobs); slot++)
		if (job_table_read(jobs, slot, &job) && job.spec.segment != 0 && job.spec.segment < oldest)
			oldest = job.spec.segment;
	for (uint32_t slot = 0; slot < sandbox_table_bound(sandboxes); slot++)
		if (sandbox_table_read(sandboxes, slot, &sandbox) && sandbox_is_being_made(&sandbox) &&
			sandbox.env.segment != 0 && sandbox.env.segment < oldest)
			oldest = sandbox.env.segment;
	return oldest;
}

void
sweep_record_log(struct service *service)
{
	struct err err;

	if (record_log_sweep(service_record_log(service), clock_steady(), oldest_needed(service), &err) != 0)
		log_warn("old job results cannot be removed: %s", err.msg);
	exec_move_specs(service);
	exec_prolong_keys(service);
	if (record_log_sweep(service_key_log(service), clock_steady(), UINT32_MAX, &err) != 0)
		log_warn("old Idempotency-Keys cannot be removed: %s", err.msg);
}
