/*
 * sweep.c - asks the rules of every sandbox, and the record log what may go.
 *
 * The whole table is looked at each time, which is cheap; the removals are
 * paced. A record that cannot be removed is said and left for the next sweep:
 * it never stops this one.
 */
/* SPDX-License-Identifier: MIT */
#include "reaper/reaper_priv.h"
#include "reaper/rules.h"
#include "backend/record_log.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "conf/config.h"
#include "domain/sandbox.h"
#include "domain/service.h"
#include "ipc/job_table.h"
#include "ipc/shm.h"

#include <stdlib.h>

enum { SWEEP_BATCH = 64, CHECK_ROUND = 15, CHECK_BATCH = 1024 };

/* One byte per sandbox slot: commands of it are queued or running. */
static bool *
busy_slots(struct service *service, uint32_t sandboxes)
{
	struct shm_jobs *jobs = shm_jobs(service_shm(service));
	uint32_t bound = job_table_count(jobs) > 0 ? job_table_bound(jobs) : 0;
	bool *busy = calloc(sandboxes + (size_t)1, sizeof *busy);
	struct job_record job;

	if (busy == NULL)
		abort();
	for (uint32_t slot = 0; slot < bound; slot++)
		if (job_table_read(jobs, slot, &job) && job.sandbox_slot < sandboxes)
			busy[job.sandbox_slot] = true;
	return busy;
}

static bool
sweep_one(struct service *service, uint32_t slot, const struct sandbox_record *record, const char *rule)
{
	struct err err;

	if (sandbox_reap(service, slot, record->uid, rule, &err) == 0)
		return true;
	if (err.code != ERR_NOT_FOUND && err.code != ERR_CONFLICT)
		log_warn("sandbox in slot %u should go by the rule \"%s\" but cannot: %s", slot, rule, err.msg);
	return false;
}

void
sweep_sandboxes(struct service *service)
{
	const struct config *config = service_config(service);
	const struct reap_limits limits = {
		.heartbeat = config->heartbeat_cleanup_enabled,
		.heartbeat_timeout_ms = config->heartbeat_timeout_seconds * 1000,
		.pending_buffer_ms = config->pending_timeout_buffer_seconds * 1000,
	};
	struct shm_sandboxes *table = shm_sandboxes(service_shm(service));
	uint32_t bound = sandbox_table_bound(table), reaped = 0;
	AUTO_FREE bool *busy = busy_slots(service, bound);
	int64_t now_ms = clock_boot_ms();
	struct sandbox_record record;
	const char *rule;

	for (uint32_t slot = 0; slot < bound && reaped < SWEEP_BATCH; slot++) {
		if (!sandbox_table_read(table, slot, &record))
			continue;
		rule = reap_rule(&record, &limits, busy[slot], now_ms);
		if (rule != NULL)
			reaped += sweep_one(service, slot, &record, rule);
		else if (record.status == SANDBOX_READY && !record.ready)
			sandbox_probe(service, slot);
	}
}

void
sweep_agents(struct service *service, uint32_t number)
{
	struct shm_sandboxes *table = shm_sandboxes(service_shm(service));
	uint32_t bound = sandbox_table_bound(table);
	uint32_t round = bound / CHECK_BATCH > CHECK_ROUND ? bound / CHECK_BATCH : CHECK_ROUND;
	struct sandbox_record record;

	for (uint32_t slot = number % round; slot < bound; slot += round)
		if (sandbox_table_read(table, slot, &record) && record.status == SANDBOX_READY && record.ready)
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
		if (sandbox_table_read(sandboxes, slot, &sandbox) && sandbox.status == SANDBOX_PENDING &&
			sandbox.env.segment != 0 && sandbox.env.segment < oldest)
			oldest = sandbox.env.segment;
	return oldest;
}

void
sweep_record_log(struct service *service)
{
	struct err err;

	if (record_log_sweep(service_record_log(service), clock_wall(), oldest_needed(service), &err) != 0)
		log_warn("old job results cannot be removed: %s", err.msg);
}
