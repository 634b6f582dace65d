/* cluster.c - a process's connection to Redis: made, counted, its troubles told to whom they concern. */
/* SPDX-License-Identifier: MIT */
#include "cluster/cluster.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "conf/config.h"
#include "ipc/shm.h"
#include "master/replica_id.h"
#include "redis/client.h"
#include "redis/url.h"

#include <string.h>

#include <event2/event.h>

enum { TICK_MS = 1000 };

struct cluster {
	struct cluster_options options;
	struct redis_url url;
	struct redis *redis;
	struct event *tick;
	struct redis_stats counted; /* as the scoreboard has them */
	bool counted_up;
	TAILQ_HEAD(, cluster_listener) listeners;
	char replica[ID_UUID_SIZE];
	char *probe; /* owned */
	char place[320]; /* where Redis is, for people */
	char told[640]; /* the trouble that was logged last */
};

static void
cluster_count(struct cluster *cluster)
{
	static const struct {
		enum metric metric;
		size_t offset;
	} counters[] = {
		{ METRIC_REDIS_COMMANDS, offsetof(struct redis_stats, commands) },
		{ METRIC_REDIS_REFUSED, offsetof(struct redis_stats, refused) },
		{ METRIC_REDIS_LATE, offsetof(struct redis_stats, late) },
		{ METRIC_REDIS_LOST, offsetof(struct redis_stats, lost) },
		{ METRIC_REDIS_ERRORS, offsetof(struct redis_stats, errors) },
		{ METRIC_REDIS_CONNECTS, offsetof(struct redis_stats, connects) },
		{ METRIC_REDIS_ANSWERED, offsetof(struct redis_stats, answered) },
		{ METRIC_REDIS_ANSWER_US, offsetof(struct redis_stats, answer_us) },
	};
	struct shm_scoreboard *board = shm_scoreboard(cluster->options.shm);
	struct redis_stats stats;
	bool up = redis_is_up(cluster->redis);

	redis_stats(cluster->redis, &stats);
	for (size_t i = 0; i < sizeof counters / sizeof counters[0]; i++) {
		uint64_t now, before;

		memcpy(&now, (const char *)&stats + counters[i].offset, sizeof now);
		memcpy(&before, (const char *)&cluster->counted + counters[i].offset, sizeof before);
		if (now != before)
			scoreboard_add(board, cluster->options.self, counters[i].metric, (int64_t)(now - before));
	}
	cluster->counted = stats;
	if (up != cluster->counted_up)
		scoreboard_add(board, cluster->options.self, METRIC_REDIS_UP, up ? 1 : -1);
	cluster->counted_up = up;
}

static void
cluster_tell_trouble(struct cluster *cluster)
{
	char words[sizeof cluster->told];

	if (!cluster_problem(cluster, words, sizeof words)) {
		cluster->told[0] = '\0';
	} else if (strcmp(words, cluster->told) != 0) {
		log_error("%s", words);
		memcpy(cluster->told, words, sizeof words);
	}
}

static void
cluster_on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct cluster *cluster = arg;

	(void)fd;
	(void)what;
	cluster_count(cluster);
	cluster_tell_trouble(cluster);
}

/* A line of INFO, such as "maxmemory_policy:"; what stands behind it. */
static const char *
info_value(const char *info, const char *name, char *buf, size_t size)
{
	const char *found = strstr(info, name);

	if (found == NULL)
		return NULL;
	found += strlen(name);
	snprintf(buf, size, "%.*s", (int)strcspn(found, "\r\n"), found);
	return buf;
}

static void
cluster_on_info(void *ctx, const struct redis_answer *answer)
{
	const struct cluster *cluster = ctx;
	char policy[64];

	if (answer->kind == REDIS_STRING &&
		info_value(answer->text, "maxmemory_policy:", policy, sizeof policy) != NULL &&
		strcmp(policy, "noeviction") != 0)
		log_warn("Redis at %s may drop sandboxes and jobs when its memory is full: set its "
			 "maxmemory-policy to noeviction (it is %s)",
			cluster->place, policy);
}

static void
cluster_look_at_server(struct cluster *cluster)
{
	struct redis_reply_to to = { cluster_on_info, cluster, cluster_deadline_ms(cluster) };
	struct redis_args args;
	struct err err;

	redis_args_init(&args);
	redis_args_text(&args, "INFO");
	redis_args_text(&args, "memory");
	if (redis_send(cluster->redis, &args, to, &err) != 0)
		log_warn("cannot ask Redis for its memory policy: %s", err.msg);
}

static void
cluster_on_change(void *ctx, bool up)
{
	struct cluster *cluster = ctx;
	struct cluster_listener *listener;

	if (up) {
		log_info("Redis at %s serves", cluster->place);
		cluster->told[0] = '\0';
		if (cluster->options.warns)
			cluster_look_at_server(cluster);
	} else {
		cluster_tell_trouble(cluster);
	}
	cluster_count(cluster);
	TAILQ_FOREACH(listener, &cluster->listeners, entry)
	listener->on_change(listener->ctx, up);
}

static void
cluster_connect(struct cluster *cluster)
{
	struct timeval tick = clock_tv(TICK_MS);
	char name[64];
	struct redis_options options = {
		.url = &cluster->url,
		.name = name,
		.probe = cluster->probe,
		.silence_ms = cluster_deadline_ms(cluster),
	};

	snprintf(name, sizeof name, "orchard-%s", cluster->options.role);
	scoreboard_add(shm_scoreboard(cluster->options.shm), cluster->options.self, METRIC_REDIS_USED, 1);
	cluster->redis = redis_new(cluster->options.base, &options);
	redis_on_change(cluster->redis, cluster_on_change, cluster);
	cluster->tick = must_alloc(event_new(cluster->options.base, -1, EV_PERSIST, cluster_on_tick, cluster));
	event_add(cluster->tick, &tick);
}

int
cluster_create(const struct cluster_options *options, struct cluster **ret_cluster, struct err *err)
{
	struct cluster *cluster = alloc_zero(1, sizeof *cluster);

	cluster->options = *options;
	TAILQ_INIT(&cluster->listeners);
	if (redis_url_parse(options->config->redis_url, &cluster->url, err) != 0 ||
		replica_id_read(options->config, cluster->replica, err) != 0) {
		free(cluster);
		return -1;
	}
	cluster->probe = alloc_format("%sprobe", options->config->redis_prefix);
	redis_url_describe(&cluster->url, cluster->place, sizeof cluster->place);
	cluster_connect(cluster);
	*ret_cluster = cluster;
	return 0;
}

void
cluster_free(struct cluster *cluster)
{
	if (cluster == NULL)
		return;
	cluster_count(cluster);
	redis_free(cluster->redis);
	event_free(cluster->tick);
	free(cluster->probe);
	explicit_bzero(&cluster->url, sizeof cluster->url);
	free(cluster);
}

struct redis *
cluster_redis(const struct cluster *cluster)
{
	return cluster->redis;
}

const char *
cluster_prefix(const struct cluster *cluster)
{
	return cluster->options.config->redis_prefix;
}

const char *
cluster_replica(const struct cluster *cluster)
{
	return cluster->replica;
}

const struct redis_url *
cluster_url(const struct cluster *cluster)
{
	return &cluster->url;
}

uint32_t
cluster_deadline_ms(const struct cluster *cluster)
{
	return (uint32_t)cluster->options.config->redis_timeout_ms;
}

bool
cluster_problem(const struct cluster *cluster, char *buf, size_t size)
{
	const char *refusal = redis_refusal(cluster->redis);

	if (!redis_is_up(cluster->redis))
		snprintf(
			buf, size, "Redis at %s does not serve: %s", cluster->place, redis_problem(cluster->redis));
	else if (refusal[0] != '\0')
		snprintf(buf, size, "Redis at %s refuses what must be done there: %s", cluster->place, refusal);
	else
		return false;
	return true;
}

void
cluster_listen(struct cluster *cluster, struct cluster_listener *listener)
{
	TAILQ_INSERT_TAIL(&cluster->listeners, listener, entry);
}

void
cluster_unlisten(struct cluster *cluster, struct cluster_listener *listener)
{
	TAILQ_REMOVE(&cluster->listeners, listener, entry);
}
