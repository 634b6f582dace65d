/*
 * recovery.c - finds the work of dead processes by its owners, and takes it over.
 *
 * Each look is a scan of shared memory: nothing has to be told to the reaper, so
 * nothing can be missed. Taken over work has this process as its owner.
 */
/* SPDX-License-Identifier: MIT */
#include "reaper/reaper_priv.h"
#include "base/log.h"
#include "domain/exec/exec.h"
#include "domain/sandbox/sandbox.h"
#include "domain/service.h"
#include "ipc/exec_lock.h"
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
			(!sandbox_is_being_made(&record) && record.status != SANDBOX_DELETING) ||
			sandbox_is_foreign(&record) || scoreboard_is_current(board, record.owner))
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

static bool
job_has_ticket(struct shm_jobs *table, const struct exec_ticket *ticket)
{
	uint32_t bound = job_table_bound(table);
	struct job_record record;

	for (uint32_t slot = 0; slot < bound; slot++)
		if (job_table_read(table, slot, &record) && record.lock_node == ticket->node &&
			record.fence == ticket->number)
			return true;
	return false;
}

/* Places whose owner died after it had removed the job and before it gave them back. */
static void
drop_places(struct service *service)
{
	struct shm *shm = service_shm(service);
	struct exec_ticket ticket;
	uint32_t at = 0;

	while (exec_lock_next_orphan(shm_exec_lock(shm), shm_scoreboard(shm), &at, &ticket))
		if (!job_has_ticket(shm_jobs(shm), &ticket))
			exec_give_back(service, ticket);
}

void
recovery_scan(struct service *service)
{
	uint32_t sandboxes = recover_sandboxes(service, RECOVERY_BATCH);
	uint32_t jobs = recover_jobs(service, RECOVERY_BATCH);

	/* While jobs are left to take over, their places are no orphans worth the search. */
	if (jobs < RECOVERY_BATCH)
		drop_places(service);
	if (sandboxes + jobs > 0)
		log_info("took over %u sandboxes and %u jobs of processes that are gone", sandboxes, jobs);
}
