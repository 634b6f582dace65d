/* service_share.c - a process's part in what several servers share, where they do: lanes, and what is told of jobs. */
/* SPDX-License-Identifier: MIT */
#include "domain/exec/exec_priv.h"
#include "domain/job/job_priv.h"
#include "domain/sandbox/sandbox_priv.h"
#include "domain/service_priv.h"
#include "base/clock.h"
#include "cluster/changes.h"
#include "cluster/host.h"
#include "cluster/job_board.h"
#include "cluster/key_share.h"
#include "cluster/job_live.h"
#include "cluster/lanes.h"
#include "cluster/sandbox_share.h"
#include "conf/config.h"
#include "ipc/shm.h"
#include "redis/client.h"

#include <stddef.h>
#include <string.h>

static void
share_on_redis(struct service *service, bool up)
{
	if (up)
		service->shared_since_ms = clock_boot_ms();
	sandbox_share_on_redis(service->sandboxes, up);
}

static void
on_mark(void *ctx, const char *job_id, enum board_mark mark)
{
	if (mark == BOARD_CANCEL)
		job_heard_cancel(ctx, job_id);
	else if (mark == BOARD_LOST)
		job_heard_lost(ctx, job_id);
	else
		job_heard_claim(ctx, job_id);
}

static void
on_news(void *ctx, enum mirror_outcome what, const struct mirror_place *place)
{
	sandbox_heard(ctx, what, place);
}

static void
share_begin_sandboxes(struct service *service)
{
	const struct service_share *share = service->share;

	cluster_host(service->config, service->host);
	service->sandboxes = sandbox_share_new(&(struct sandbox_share_options){
		.redis = share->redis,
		.table = service_sandboxes(service),
		.scripts = {
			.prefix = share->prefix,
			.replica = share->replica,
			.host = service->host,
			.record_ttl_ms = SANDBOX_RECORD_TTL_MS,
			.tombstone_ttl_ms = service->config->idempotency_ttl_seconds * 1000,
			.changes = CHANGES_KEPT,
		},
		.adopts = config_is_kubernetes(service->config),
		.deadline_ms = (uint32_t)service->config->redis_timeout_ms,
		.news = on_news,
		.ctx = service,
	});
	if (redis_is_up(share->redis))
		share_on_redis(service, true);
}

void
service_share_begin(struct service *service, const struct service_share *share)
{
	if (share == NULL)
		return;
	service->share = share;
	service->lanes = lanes_new(&(struct lanes_options){
		.base = service->base,
		.redis = share->redis,
		.table = shm_lanes(service->shm),
		.lock = shm_exec_lock(service->shm),
		.notify = service->notify,
		.prefix = share->prefix,
		.replica = share->replica,
		.lease_ms = (uint32_t)service->config->redis_lane_seconds * 1000,
		.deadline_ms = (uint32_t)service->config->redis_timeout_ms,
	});
	service->board = job_board_new(&(struct job_board_options){
		.base = service->base,
		.redis = share->redis,
		.prefix = share->prefix,
		.replica = share->replica,
		.deadline_ms = (uint32_t)service->config->redis_timeout_ms,
		.marked = on_mark,
		.ctx = service,
	});
	service->far_look_ms = JOB_FAR_LOOK_MS;
	service->key_share = key_share_new(&(struct key_share_options){
		.redis = share->redis,
		.prefix = share->prefix,
		.replica = share->replica,
		.deadline_ms = (uint32_t)service->config->redis_timeout_ms,
	});
	share_begin_sandboxes(service);
}

uint32_t
service_share_busy(const struct service *service)
{
	return service->board != NULL ? job_board_waiting(service->board) : 0;
}

void
service_share_end_jobs(struct service *service)
{
	if (service->board == NULL)
		return;
	job_taking_end_all(service);
	job_board_free(service->board);
	service->board = NULL;
	job_live_free(service->live);
	service->live = NULL;
	exec_retell_free(STEAL_PTR(service->retell));
	exec_board_free_all(service);
}

void
service_share_end(struct service *service)
{
	lanes_free(service->lanes);
	service->lanes = NULL;
}

void
service_share_end_keys(struct service *service)
{
	if (service->key_share != NULL)
		key_share_end(service->key_share);
}

void
service_share_end_sandboxes(struct service *service)
{
	sandbox_share_free(service->sandboxes);
	service->sandboxes = NULL;
	key_share_free(service->key_share);
	service->key_share = NULL;
}

struct sandbox_share *
service_sandbox_share(const struct service *service)
{
	return service->sandboxes;
}

bool
service_may_judge(const struct service *service)
{
	return service->share == NULL || redis_is_up(service->share->redis);
}

void
service_on_redis(struct service *service, bool up)
{
	if (service->share == NULL)
		return;
	share_on_redis(service, up);
	key_share_on_redis(service->key_share, up);
	lanes_on_redis(service->lanes, up);
	job_board_on_redis(service->board, up);
	/* What changed while nobody could be told. */
	if (up)
		exec_board_tell_all(service);
	if (up && service->live != NULL)
		job_live_look(service->live);
}

static bool
is_ours(const struct service *service, const char *to)
{
	return strcmp(to, service->share->replica) == 0;
}

void
service_heard_lane(struct service *service, const char *key, const char *to)
{
	if (service->share != NULL && is_ours(service, to))
		lanes_heard(service->lanes, key);
}

void
service_heard_job(struct service *service, const char *job_id, const char *to)
{
	if (service->share == NULL)
		return;
	if (is_ours(service, to))
		job_heard_cancel(service, job_id);
	else
		job_heard_far(service, job_id);
}

void
service_heard_claim(struct service *service, const char *job_id, const char *to)
{
	char id[1][ID_UUID_SIZE];

	/* What was said may be old: what stands there counts. */
	if (service->share == NULL || !is_ours(service, to) || !id_is_uuid(job_id))
		return;
	memcpy(id[0], job_id, ID_UUID_SIZE);
	job_board_marks(service->board, 1, id);
}

void
service_hear_anew(struct service *service)
{
	uint32_t bound = job_table_bound(service_jobs(service));
	char ids[BOARD_MARKS][ID_UUID_SIZE];
	struct job_record record;
	size_t count = 0;

	if (service->share == NULL)
		return;
	for (uint32_t slot = 0; slot < bound; slot++) {
		if (!job_table_read(service_jobs(service), slot, &record) || (!record.detached && !record.taken))
			continue;
		memcpy(ids[count++], record.id, ID_UUID_SIZE);
		if (count == BOARD_MARKS) {
			job_board_marks(service->board, count, ids);
			count = 0;
		}
	}
	job_board_marks(service->board, count, ids);
}
