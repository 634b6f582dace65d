/*
 * replicas.c - beats, the list of those that beat, and the lease of the elected.
 *
 * A beat and its answer are one script. That a server is gone is judged from the times in one answer, which are all of
 * Redis' clock, and only when this server's own beats came through without a gap since `since_ms`: what keeps our beats
 * from coming through keeps others' as well.
 *
 * The lease is counted from before the command was sent, on this host's clock and a tenth short, so it ends here before
 * it does in Redis.
 */
/* SPDX-License-Identifier: MIT */
#include "cluster/replicas.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"
#include "base/log.h"
#include "redis/client.h"

#include <string.h>

#include <event2/event.h>

enum { BEATS = 3, REPLICAS_MAX = 1024, SOON_MS = 20 };

struct replica {
	char id[ID_UUID_SIZE];
	bool gone;
};

struct replicas {
	struct replicas_options options;
	struct event *timer;
	char token[ID_TOKEN_SIZE]; /* of the lease; random, so another life of this server has another */
	int64_t sent_ms; /* the beat under way */
	int64_t elected_until_ms;
	bool was_elected;
	int64_t since_ms, beat_ms; /* Redis' clock: beats came through since, and the last did; 0: none yet */
	uint32_t count, alive;
	struct replica *list;
};

/* clang-format off */
/*
 * KEYS  replicas, this one, the lease, hosts
 * ARGV  1 id, 2 time to live in ms, 3 token, 4 host, 5 version, 6 ms after which a silent server is forgotten
 * ->    now, how long another's lease lasts (0: it is ours), ids and their last beats
 *
 * A beat from later than now is of a Redis whose clock was ahead: its server has another time to live from now.
 */
static const struct redis_script beat_script = { .keys = 4, .text =
	"local time = redis.call('TIME')\n"
	"local now = time[1] * 1000 + math.floor(time[2] / 1000)\n"
	"local word = string.format('%.0f', now)\n"
	"redis.call('ZADD', KEYS[1], word, ARGV[1])\n"
	"redis.call('ZADD', KEYS[4], word, ARGV[4])\n"
	"for _, key in ipairs({ KEYS[1], KEYS[4] }) do\n"
	"  redis.call('ZREMRANGEBYSCORE', key, '-inf', string.format('%.0f', now - ARGV[6]))\n"
	"end\n"
	"redis.call('HSET', KEYS[2], 'host', ARGV[4], 'version', ARGV[5], 'beat_ms', word)\n"
	"redis.call('PEXPIRE', KEYS[2], ARGV[2])\n"
	"local all = redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')\n"
	"for i = 2, #all, 2 do\n"
	"  if tonumber(all[i]) > now then\n"
	"    redis.call('ZADD', KEYS[1], word, all[i - 1])\n"
	"    all[i] = word\n"
	"  end\n"
	"end\n"
	"local holder, left = redis.call('GET', KEYS[3]), 0\n"
	"if not holder or holder == ARGV[3] then\n"
	"  redis.call('SET', KEYS[3], ARGV[3], 'PX', ARGV[2])\n"
	"else\n"
	"  left = math.max(redis.call('PTTL', KEYS[3]), 1)\n"
	"end\n"
	"return { word, left, all }\n" };

/* KEYS  the lease; ARGV  1 token */
static const struct redis_script leave_script = { .keys = 1, .text =
	"if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end\n"
	"return 0\n" };

/* KEYS  replicas; ARGV  1 id, 2 ms of silence: one that beats again meanwhile stays */
static const struct redis_script bury_script = { .keys = 1, .text =
	"local beat, time = redis.call('ZSCORE', KEYS[1], ARGV[1]), redis.call('TIME')\n"
	"if beat and time[1] * 1000 + math.floor(time[2] / 1000) - beat > tonumber(ARGV[2]) then\n"
	"  return redis.call('ZREM', KEYS[1], ARGV[1])\n"
	"end\n"
	"return 0\n" };
/* clang-format on */

static const int64_t forget_ms = (int64_t)7 * 24 * 3600 * 1000;

static void
beat_plan(struct replicas *replicas, int64_t ms)
{
	struct timeval tv = clock_tv(ms);

	event_add(replicas->timer, &tv);
}

bool
replicas_is_elected(const struct replicas *replicas)
{
	return clock_boot_ms() < replicas->elected_until_ms;
}

static void
tell_election(struct replicas *replicas)
{
	bool elected = replicas_is_elected(replicas);

	if (elected != replicas->was_elected)
		log_info(elected ? "this server does what all servers need done once"
				 : "another server does what all need done once, or none can");
	replicas->was_elected = elected;
}

static void
learn_lease(struct replicas *replicas, int64_t left_ms)
{
	int64_t ttl = replicas->options.ttl_ms, next = ttl / BEATS;

	replicas->elected_until_ms = left_ms == 0 ? replicas->sent_ms + ttl - ttl / 10 : 0;
	tell_election(replicas);
	if (left_ms > 0 && left_ms + SOON_MS < next)
		next = left_ms + SOON_MS;
	beat_plan(replicas, next);
}

/* A gap as long as two beats: Redis, the way there or this process stood still, and others' beats may have, too. */
static void
learn_time(struct replicas *replicas, int64_t now_ms)
{
	int64_t gap = (int64_t)replicas->options.ttl_ms * 2 / BEATS;

	if (replicas->beat_ms == 0 || now_ms - replicas->beat_ms > gap || now_ms < replicas->beat_ms)
		replicas->since_ms = now_ms;
	replicas->beat_ms = now_ms;
}

static void
learn_list(struct replicas *replicas, const struct redis_answer *list)
{
	replicas->count = replicas->alive = 0;
	for (size_t i = 0; i + 1 < list->size && replicas->count < REPLICAS_MAX; i += 2) {
		const struct redis_answer *id = &list->items[i];
		struct replica *replica = &replicas->list[replicas->count];
		int64_t beat_ms;

		if (id->kind != REDIS_STRING || id->size >= sizeof replica->id ||
			!redis_answer_number(&list->items[i + 1], &beat_ms))
			continue;
		memcpy(replica->id, id->text, id->size + 1);
		if (beat_ms < replicas->since_ms)
			beat_ms = replicas->since_ms;
		replica->gone = replicas->beat_ms - beat_ms > replicas->options.ttl_ms;
		replicas->alive += !replica->gone;
		replicas->count++;
	}
}

static void
tell_gone(struct replicas *replicas)
{
	for (uint32_t i = 0; i < replicas->count; i++) {
		if (replicas->list[i].gone && replicas->options.on_gone != NULL)
			replicas->options.on_gone(replicas->options.ctx, replicas->list[i].id);
	}
}

static void
beat_on_answer(void *ctx, const struct redis_answer *answer)
{
	struct replicas *replicas = ctx;
	const struct redis_answer *list = redis_answer_item(answer, 2);
	int64_t now_ms, left_ms;
	struct err err;

	if (redis_answer_check(answer, &err) != 0) {
		if (err.code == ERR_INTERNAL)
			log_error("this server can't say that it lives: %s", err.msg);
		beat_plan(replicas, replicas->options.ttl_ms / BEATS);
	} else if (redis_answer_number(redis_answer_item(answer, 0), &now_ms) &&
		redis_answer_number(redis_answer_item(answer, 1), &left_ms) && list->kind == REDIS_ARRAY) {
		learn_time(replicas, now_ms);
		learn_list(replicas, list);
		learn_lease(replicas, left_ms);
		tell_gone(replicas);
	} else {
		log_error("this server can't say that it lives: Redis gives an answer of another kind");
		beat_plan(replicas, replicas->options.ttl_ms / BEATS);
	}
}

static void
beat(evutil_socket_t fd, short what, void *arg)
{
	struct replicas *replicas = arg;
	const struct replicas_options *options = &replicas->options;
	struct redis_reply_to to = { beat_on_answer, replicas, options->ttl_ms / BEATS };
	struct redis_args args;
	struct err err;

	(void)fd;
	(void)what;
	tell_election(replicas);
	redis_args_init(&args);
	redis_args_format(&args, "%sreplicas", options->prefix);
	redis_args_format(&args, "%sreplica:%s", options->prefix, options->id);
	redis_args_format(&args, "%sduties", options->prefix);
	redis_args_format(&args, "%shosts", options->prefix);
	redis_args_text(&args, options->id);
	redis_args_number(&args, options->ttl_ms);
	redis_args_text(&args, replicas->token);
	redis_args_text(&args, options->host);
	redis_args_text(&args, options->version);
	redis_args_number(&args, forget_ms);
	replicas->sent_ms = clock_boot_ms();
	if (redis_run(options->redis, &beat_script, &args, to, &err) != 0)
		beat_plan(replicas, options->ttl_ms / BEATS);
}

struct replicas *
replicas_new(const struct replicas_options *options)
{
	struct replicas *replicas = alloc_zero(1, sizeof *replicas);

	replicas->options = *options;
	replicas->list = alloc_zero(REPLICAS_MAX, sizeof *replicas->list);
	id_token(replicas->token);
	replicas->timer = must_alloc(event_new(options->base, -1, 0, beat, replicas));
	beat_plan(replicas, 0);
	return replicas;
}

void
replicas_on_redis(struct replicas *replicas, bool up)
{
	replicas->beat_ms = 0;
	if (up)
		beat_plan(replicas, 0);
}

void
replicas_free(struct replicas *replicas)
{
	struct redis_args args;
	struct err err;

	if (replicas == NULL)
		return;
	redis_forget(replicas->options.redis, replicas);
	redis_args_init(&args);
	redis_args_format(&args, "%sduties", replicas->options.prefix);
	redis_args_text(&args, replicas->token);
	/* Where that does not get through the lease ends by itself. */
	if (replicas_is_elected(replicas) &&
		redis_run(replicas->options.redis, &leave_script, &args, (struct redis_reply_to){ 0 }, &err) != 0)
		log_debug("the lease of common duties is not given back: %s", err.msg);
	event_free(replicas->timer);
	free(replicas->list);
	free(replicas);
}

uint32_t
replicas_alive(const struct replicas *replicas)
{
	return replicas->alive;
}

bool
replicas_is_alive(const struct replicas *replicas, const char *id)
{
	for (uint32_t i = 0; i < replicas->count; i++) {
		if (strcmp(replicas->list[i].id, id) == 0)
			return !replicas->list[i].gone;
	}
	return false;
}

bool
replicas_is_gone(const struct replicas *replicas, const char *id)
{
	return replicas->beat_ms != 0 && replicas->beat_ms - replicas->since_ms > replicas->options.ttl_ms &&
		!replicas_is_alive(replicas, id);
}

void
replicas_bury(struct replicas *replicas, const char *id)
{
	struct redis_reply_to to = { .deadline_ms = replicas->options.ttl_ms };
	struct redis_args args;
	struct err err;

	redis_args_init(&args);
	redis_args_format(&args, "%sreplicas", replicas->options.prefix);
	redis_args_text(&args, id);
	redis_args_number(&args, replicas->options.ttl_ms);
	if (redis_run(replicas->options.redis, &bury_script, &args, to, &err) != 0)
		log_debug("server %s will be found gone once more: %s", id, err.msg);
}
