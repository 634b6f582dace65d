/*
 * recovery.c - finds the work of dead processes by its owners, and takes it over.
 *
 * Each look is a scan of shared memory: nothing has to be told to the reaper, so
 * nothing can be missed. Taken over work has this process as its owner.
 */
/* SPDX-License-Identifier: MIT */
#include "reaper/reaper_priv.h"
#include "base/log.h"
#include "domain/exec.h"
#include "domain/sandbox.h"
#include "domain/service.h"
#include "ipc/job_table.h"
#include "ipc/shm.h"

enum { RECOVERY_BATCH = 256 }; /* each opens a connection to an agent, or keeps the driver busy */

static uint32_t
recover_sandboxes(struct service *service, uint32_t max)
{
	struct shm_scoreboard *board = shm_scoreboard(service_shm(service));
	struct shm_sandboxes *table = shm_sandboxes(service_shm(service));
	uint32_t bound = sandbox_table_bound(table), n = 0;
	struct sandbox_record record;

	for (uint32_t slot = 0; slot < bound && n < max; slot++) {
		if (!sandbox_table_read(table, slot, &record) ||
			(record.status != SANDBOX_PENDING && record.status != SANDBOX_DELETING) ||
			scoreboard_is_current(board, record.owner))
			continue;
		sandbox_resume(service, slot);
		n++;
	}
	return n;
}

static uint32_t
recover_jobs(struct service *service, uint32_t max)
{
	struct shm_scoreboard *board = shm_scoreboard(service_shm(service));
	struct shm_jobs *table = shm_jobs(service_shm(service));
	uint32_t bound = job_table_count(table) > 0 ? job_table_bound(table) : 0, n = 0;
	struct job_record record;

	for (uint32_t slot = 0; slot < bound && n < max; slot++) {
		if (!job_table_read(table, slot, &record) || scoreboard_is_current(board, record.owner))
			continue;
		exec_resume(service, slot);
		n++;
	}
	return n;
}

void
recovery_scan(struct service *service)
{
	uint32_t sandboxes = recover_sandboxes(service, RECOVERY_BATCH);
	uint32_t jobs = recover_jobs(service, RECOVERY_BATCH);

	if (sandboxes + jobs > 0)
		log_info("took over %u sandboxes and %u jobs of processes that are gone", sandboxes, jobs);
}
