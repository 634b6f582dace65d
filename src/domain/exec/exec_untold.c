/*
 * exec_untold.c - ends that no process has told other servers of, told after all.
 *
 * A process keeps an end in its memory until Redis has it, and may go before. What Redis names as a live job of this
 * server, and this server knows no more as one, has ended: its result is in the store. Where it is not, the job was lost
 * on its way into the table, or with that: it is taken up as those of a server that is gone are.
 */
/* SPDX-License-Identifier: MIT */
#include "domain/exec/exec_priv.h"
#include "domain/service_priv.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/id.h"
#include "cluster/job_board.h"
#include "cluster/job_live.h"
#include "conf/config.h"
#include "ipc/job_table.h"
#include "ipc/sandbox_table.h"

#include <stdio.h>
#include <string.h>

struct untold {
	struct service *service;
	char job_id[ID_UUID_SIZE];
};

static bool
is_live(struct service *service, const char *job_id)
{
	struct job_record record;
	uint32_t slot;

	return job_table_find(service_jobs(service), job_id, &record, &slot);
}

static void
untold_settle(struct service *service, const struct board_answer *answer, const char *job_id)
{
	struct sandbox_record sandbox;
	uint32_t slot;

	/* Where the sandbox is gone nothing is acknowledged. */
	if (!sandbox_table_find(service_sandboxes(service), answer->sandbox_id, &sandbox, &slot))
		slot = UINT32_MAX;
	(void)!exec_board_settle(service, slot, answer->sandbox_uid, job_id);
}

static void
untold_on_known(const struct board_answer *answer, const struct err *why, void *arg)
{
	AUTO_FREE struct untold *untold = arg;
	struct service *service = untold->service;

	if (answer == NULL && why->code != ERR_NOT_FOUND)
		return;
	if (answer == NULL || strcmp(answer->state, "ended") == 0)
		job_live_drop(service->live, untold->job_id);
	else if (strcmp(answer->home, service->share->replica) == 0 && !is_live(service, untold->job_id))
		untold_settle(service, answer, untold->job_id);
}

static void
on_found(void *ctx, const char *job_id)
{
	struct service *service = ctx;
	struct untold *untold;
	struct err err;

	if (!id_is_uuid(job_id)) {
		job_live_drop(service->live, job_id);
		return;
	}
	if (is_live(service, job_id) || job_board_tells(service->board, job_id))
		return;
	untold = alloc_zero(1, sizeof *untold);
	untold->service = service;
	snprintf(untold->job_id, sizeof untold->job_id, "%s", job_id);
	if (job_board_get(service->board, job_id, untold_on_known, untold, &err) != 0)
		free(untold);
}

void
service_tell_untold(struct service *service)
{
	if (service->share == NULL || service->live != NULL)
		return;
	service->live = job_live_new(&(struct job_live_options){
		.base = service->base,
		.redis = service->share->redis,
		.prefix = service->share->prefix,
		.replica = service->share->replica,
		.deadline_ms = (uint32_t)service->config->redis_timeout_ms,
		.found = on_found,
		.ctx = service,
	});
	job_live_look(service->live);
}
