/* membership.c - this server among others at one Redis: says that it lives, and may be elected for common duties. */
/* SPDX-License-Identifier: MIT */
#include "config.h"
#include "reaper/reaper_priv.h"

#include "base/alloc.h"
#include "cluster/cluster.h"
#include "cluster/host.h"
#include "cluster/replicas.h"
#include "conf/config.h"
#include "domain/service.h"
#include "ipc/scoreboard.h"

struct membership {
	struct membership_options options;
	struct cluster_listener listener;
	struct replicas *replicas;
	struct service *service; /* that takes jobs over; NULL: none now */
	char host[ID_UUID_SIZE];
	bool counted_elected; /* as the scoreboard has it */
	int64_t counted_alive;
};

static void
membership_on_change(void *ctx, bool up)
{
	const struct membership *membership = ctx;

	replicas_on_redis(membership->replicas, up);
}

static void
membership_on_taken(const char *server, void *arg)
{
	struct membership *membership = arg;

	replicas_bury(membership->replicas, server);
}

/* Each server takes over what it can reach; the elected one gives up what nobody can. */
static void
membership_on_gone(void *ctx, const char *id)
{
	struct membership *membership = ctx;

	if (membership->service != NULL)
		service_take_over(membership->service, id, replicas_is_elected(membership->replicas),
			membership_on_taken, membership);
}

struct membership *
membership_create(const struct membership_options *options)
{
	struct membership *membership = alloc_zero(1, sizeof *membership);

	membership->options = *options;
	cluster_host(options->config, membership->host);
	membership->replicas = replicas_new(&(struct replicas_options){
		.base = options->base,
		.redis = cluster_redis(options->cluster),
		.prefix = cluster_prefix(options->cluster),
		.id = cluster_replica(options->cluster),
		.host = membership->host,
		.version = PACKAGE_VERSION,
		.ttl_ms = (uint32_t)options->config->redis_replica_seconds * 1000,
		.on_gone = membership_on_gone,
		.ctx = membership,
	});
	membership->listener = (struct cluster_listener){ .on_change = membership_on_change, .ctx = membership };
	cluster_listen(options->cluster, &membership->listener);
	return membership;
}

void
membership_serve(struct membership *membership, struct service *service)
{
	membership->service = service;
}

bool
membership_is_elected(const struct membership *membership)
{
	return replicas_is_elected(membership->replicas);
}

bool
membership_is_gone(const struct membership *membership, const char *server)
{
	return replicas_is_gone(membership->replicas, server);
}

const char *
membership_self(const struct membership *membership)
{
	return cluster_replica(membership->options.cluster);
}

void
membership_count(struct membership *membership)
{
	struct shm_scoreboard *board = membership->options.board;
	bool elected = replicas_is_elected(membership->replicas);
	int64_t alive = replicas_alive(membership->replicas);

	if (elected != membership->counted_elected)
		scoreboard_add(board, membership->options.self, METRIC_REPLICA_ELECTED, elected ? 1 : -1);
	if (alive != membership->counted_alive)
		scoreboard_add(
			board, membership->options.self, METRIC_REPLICAS_ALIVE, alive - membership->counted_alive);
	membership->counted_elected = elected;
	membership->counted_alive = alive;
}

void
membership_free(struct membership *membership)
{
	if (membership == NULL)
		return;
	cluster_unlisten(membership->options.cluster, &membership->listener);
	replicas_free(membership->replicas);
	free(membership);
}
