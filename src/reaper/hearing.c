/*
 * hearing.c - hears what other servers have changed, and hands it on to the service; tells them how our sandboxes are.
 *
 * Reading the stream blocks a connection, so it has one of its own. What was missed is missed: who waits for a lane or a
 * job asks again by himself, and sandboxes are compared, now and then also without a reason.
 */
/* SPDX-License-Identifier: MIT */
#include "reaper/reaper_priv.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "cluster/changes.h"
#include "cluster/cluster.h"
#include "cluster/sandbox_feed.h"
#include "cluster/sandbox_teller.h"
#include "conf/config.h"
#include "domain/sandbox/sandbox.h"
#include "domain/service.h"
#include "ipc/scoreboard.h"
#include "ipc/shm.h"
#include "redis/client.h"
#include "redis/url.h"

#include <stdlib.h>
#include <string.h>

struct hearing {
	struct event_base *base;
	const struct config *config;
	struct cluster *cluster;
	struct cluster_listener listener;
	struct service_share share;
	struct service *service; /* NULL: it is not told */
	struct redis_url url;
	struct redis *redis; /* to read with */
	struct changes *changes;
	struct proc_ref self;
	bool hears; /* as the scoreboard has it */
	int64_t heard_ms; /* when it last did */
	bool warned;
	struct sandbox_feed *feed;
	struct sandbox_teller *teller;
	int64_t compared_ms, told_ms; /* when all were last */
	int64_t compare_at_ms; /* besides; 0: no reason */
	int64_t workers; /* which ones there were: the sum of their process ids */
};

/* Telling all of them also keeps their records in Redis from running out. */
enum { COMPARE_MS = 5 * 60 * 1000, TELL_MS = 3600 * 1000 };
/* A connection that is made again is no news. */
enum { DEAF_MS = 5000 };
/* What a worker that died had agreed with Redis to make is taken for a stray by then. */
enum { AFTER_DEATH_MS = 65 * 1000 };

static const char *
word(const struct redis_answer *fields, const char *name)
{
	const struct redis_answer *value = redis_answer_field(fields, name);

	return value->kind == REDIS_STRING ? value->text : "";
}

static void
hearing_on_change(void *ctx, const char *kind, const struct redis_answer *fields)
{
	struct hearing *hearing = ctx;

	if (strcmp(kind, "lane") == 0)
		service_heard_lane(hearing->service, word(fields, "id"), word(fields, "to"));
	else if (strcmp(kind, "job") == 0)
		service_heard_job(hearing->service, word(fields, "id"), word(fields, "to"));
	else if (strcmp(kind, "claim") == 0)
		service_heard_claim(hearing->service, word(fields, "id"), word(fields, "to"));
	else if (strcmp(kind, "sandbox") == 0)
		sandbox_feed_heard(hearing->feed, fields);
}

static void
tell_all(struct hearing *hearing)
{
	hearing->told_ms = clock_boot_ms();
	sandbox_teller_all(hearing->teller, changes_epoch(hearing->changes));
}

static void
compare_all(struct hearing *hearing)
{
	hearing->compared_ms = clock_boot_ms();
	if (hearing->compare_at_ms <= hearing->compared_ms)
		hearing->compare_at_ms = 0;
	sandbox_feed_compare(hearing->feed);
}

/* A Redis that has never heard of this server has nothing of it. */
static void
on_told(void *ctx, const struct redis_answer *answer)
{
	struct hearing *hearing = ctx;

	service_tell_again(hearing->service, answer->kind != REDIS_STRING);
}

/* Asked before tell_all() says so. */
static void
tell_results_again(struct hearing *hearing)
{
	struct redis_args args;
	struct err err;

	redis_args_init(&args);
	redis_args_text(&args, "GET");
	redis_args_format(&args, "%stold:%s", hearing->share.prefix, hearing->share.replica);
	if (redis_send(hearing->share.redis, &args,
		    (struct redis_reply_to){
			    .fn = on_told, .ctx = hearing, .deadline_ms = cluster_deadline_ms(hearing->cluster) },
		    &err) != 0)
		service_tell_again(hearing->service, true);
}

static void
hearing_on_resumed(void *ctx, bool missed)
{
	struct hearing *hearing = ctx;

	if (missed)
		tell_results_again(hearing);
	tell_all(hearing);
	/* A reader that begins has missed all that was said before. */
	service_hear_anew(hearing->service);
	if (missed)
		compare_all(hearing);
}

static int64_t
count_workers(struct hearing *hearing)
{
	struct shm_scoreboard *board = shm_scoreboard(service_shm(hearing->service));
	struct proc_info info;
	int64_t sum = 0;

	for (uint32_t slot = 0; slot < SHM_PROCESSES; slot++)
		if (scoreboard_info(board, slot, &info) && info.role == PROC_WORKER)
			sum += info.pid;
	return sum;
}

static void
watch_workers(struct hearing *hearing, int64_t now_ms)
{
	int64_t workers = count_workers(hearing);

	if (workers != hearing->workers)
		hearing->compare_at_ms = now_ms + AFTER_DEATH_MS;
	hearing->workers = workers;
}

/* Commands may well get through while nothing is heard: it has a connection of its own. */
static void
watch_hearing(struct hearing *hearing, int64_t now_ms)
{
	bool hears = redis_is_up(hearing->redis);

	if (hears != hearing->hears)
		scoreboard_add(shm_scoreboard(service_shm(hearing->service)), hearing->self, METRIC_REDIS_HEARS,
			hears ? 1 : -1);
	hearing->hears = hears;
	if (hears) {
		if (hearing->warned)
			log_info("changes of other servers are heard again");
		hearing->heard_ms = now_ms;
		hearing->warned = false;
	} else if (!hearing->warned && now_ms - hearing->heard_ms >= DEAF_MS) {
		log_warn("changes of other servers are not heard, and looked for now and then: %s",
			redis_problem(hearing->redis));
		hearing->warned = true;
	}
}

void
hearing_tick(struct hearing *hearing)
{
	int64_t now_ms = clock_boot_ms();

	if (hearing == NULL)
		return;
	sandbox_teller_tick(hearing->teller);
	watch_hearing(hearing, now_ms);
	watch_workers(hearing, now_ms);
	if (now_ms - hearing->compared_ms >= COMPARE_MS ||
		(hearing->compare_at_ms != 0 && now_ms >= hearing->compare_at_ms))
		compare_all(hearing);
	if (now_ms - hearing->told_ms >= TELL_MS && *changes_epoch(hearing->changes) != '\0')
		tell_all(hearing);
}

static void
hearing_on_signed(void *ctx, uint32_t slot, const struct sandbox_record *sign)
{
	struct hearing *hearing = ctx;

	sandbox_teller_heard(hearing->teller, slot, sign);
}

static void
hearing_on_unwanted(void *ctx, uint32_t slot, const struct sandbox_record *record)
{
	struct hearing *hearing = ctx;

	sandbox_unwanted(hearing->service, slot, record->uid);
}

static bool
hearing_is_busy(void *ctx, uint32_t slot, const struct sandbox_record *record)
{
	struct hearing *hearing = ctx;

	return sandbox_is_busy(hearing->service, slot, record);
}

static void
hearing_on_sandbox(uint32_t slot, void *arg)
{
	struct hearing *hearing = arg;

	sandbox_teller_mark(hearing->teller, slot);
}

static void
hearing_on_redis(void *ctx, bool up)
{
	struct hearing *hearing = ctx;

	service_on_redis(hearing->service, up);
}

struct hearing *
hearing_new(struct event_base *base, const struct config *config, struct cluster *cluster, struct proc_ref self)
{
	struct hearing *hearing = alloc_zero(1, sizeof *hearing);

	hearing->self = self;
	hearing->heard_ms = clock_boot_ms();
	hearing->base = base;
	hearing->config = config;
	hearing->cluster = cluster;
	hearing->share = (struct service_share){
		.redis = cluster_redis(cluster),
		.prefix = cluster_prefix(cluster),
		.replica = cluster_replica(cluster),
	};
	return hearing;
}

const struct service_share *
hearing_share(const struct hearing *hearing)
{
	return &hearing->share;
}

static void
begin_sandboxes(struct hearing *hearing)
{
	struct sandbox_share *share = service_sandbox_share(hearing->service);
	uint32_t deadline_ms = cluster_deadline_ms(hearing->cluster);

	hearing->feed = sandbox_feed_new(&(struct sandbox_feed_options){
		.base = hearing->base,
		.redis = hearing->share.redis,
		.share = share,
		.prefix = hearing->share.prefix,
		.deadline_ms = deadline_ms,
		.signed_elsewhere = hearing_on_signed,
		.ctx = hearing,
	});
	hearing->teller = sandbox_teller_new(&(struct sandbox_teller_options){
		.redis = hearing->share.redis,
		.share = share,
		.prefix = hearing->share.prefix,
		.deadline_ms = deadline_ms,
		.unwanted = hearing_on_unwanted,
		.is_busy = hearing_is_busy,
		.ctx = hearing,
	});
	hearing->compared_ms = hearing->told_ms = clock_boot_ms();
	service_watch_sandboxes(hearing->service, hearing_on_sandbox, hearing);
}

int
hearing_begin(struct hearing *hearing, struct service *service, struct err *err)
{
	if (redis_url_parse(hearing->config->redis_url, &hearing->url, err) != 0)
		return -1;
	hearing->service = service;
	hearing->listener = (struct cluster_listener){ .on_change = hearing_on_redis, .ctx = hearing };
	cluster_listen(hearing->cluster, &hearing->listener);
	begin_sandboxes(hearing);
	service_tell_untold(service);
	hearing->redis = redis_new(hearing->base,
		&(struct redis_options){
			.url = &hearing->url,
			.name = "orchard-hearing",
			.silence_ms = cluster_deadline_ms(hearing->cluster),
		});
	hearing->changes = changes_new(&(struct changes_options){
		.base = hearing->base,
		.redis = hearing->redis,
		.prefix = hearing->share.prefix,
		.deadline_ms = cluster_deadline_ms(hearing->cluster),
		.heard = hearing_on_change,
		.resumed = hearing_on_resumed,
		.ctx = hearing,
	});
	return 0;
}

void
hearing_end(struct hearing *hearing)
{
	if (hearing == NULL || hearing->service == NULL)
		return;
	cluster_unlisten(hearing->cluster, &hearing->listener);
	redis_forget(hearing->share.redis, hearing);
	changes_free(hearing->changes);
	redis_free(hearing->redis);
	service_watch_sandboxes(hearing->service, NULL, NULL);
	sandbox_teller_free(hearing->teller);
	sandbox_feed_free(hearing->feed);
	hearing->service = NULL;
}

void
hearing_free(struct hearing *hearing)
{
	if (hearing == NULL)
		return;
	explicit_bzero(&hearing->url, sizeof hearing->url);
	free(hearing);
}
