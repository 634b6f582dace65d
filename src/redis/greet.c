/*
 * greet.c - the first words on a connection: who we are, which database, and whether this Redis is one to write to.
 *
 * A user whose rights do not reach to ROLE, INFO or CLIENT may still serve: only what Redis says, not what it keeps from
 * us, makes it unfit. Who writes tries so here: a Redis that answers, but takes no writes, would come and go.
 */
/* SPDX-License-Identifier: MIT */
#include "redis/client_impl.h"
#include "redis/url.h"

#include "base/err.h"

#include <stdio.h>
#include <string.h>

static void
greet_put(struct redis *redis, const struct redis_args *args, redis_reply_fn *fn)
{
	redis_put(redis, args, (struct redis_reply_to){ .fn = fn, .ctx = redis });
}

/* Of AUTH and SELECT. */
static void
greet_on_answer(void *ctx, const struct redis_answer *answer)
{
	struct redis *redis = ctx;

	if (redis->state == REDIS_GREETING && answer->kind == REDIS_ERROR)
		redis_down(redis, "it refuses us: %s", answer->text);
}

static void
greet_on_ping(void *ctx, const struct redis_answer *answer)
{
	struct redis *redis = ctx;

	if (redis->state == REDIS_GREETING && !redis_answer_is(answer, "PONG"))
		redis_down(redis, "it is not ready: %s", answer->kind == REDIS_ERROR ? answer->text : "no PONG");
}

static void
greet_on_role(void *ctx, const struct redis_answer *answer)
{
	struct redis *redis = ctx;

	if (redis->state != REDIS_GREETING)
		return;
	if (redis_answer_is(redis_answer_item(answer, 0), "slave"))
		redis_down(redis, "it is a replica, which takes no writes; redis_url must name the master");
	else if (redis->options.probe == NULL)
		redis_up(redis);
}

/* Behind what is known of it so far. */
static void
learn_identity(struct redis *redis, const char *info, const char *name)
{
	const char *found = strstr(info, name);
	size_t len = strlen(redis->identity);

	if (found != NULL)
		snprintf(redis->identity + len, sizeof redis->identity - len, "%.*s,",
			(int)strspn(found + strlen(name), "0123456789abcdef"), found + strlen(name));
}

static void
greet_on_replication(void *ctx, const struct redis_answer *answer)
{
	struct redis *redis = ctx;

	if (redis->state == REDIS_GREETING && answer->kind == REDIS_STRING)
		learn_identity(redis, answer->text, "master_replid:");
}

/* Scripts here write keys that a cluster keeps on several servers. */
static void
greet_on_info(void *ctx, const struct redis_answer *answer)
{
	struct redis *redis = ctx;

	if (redis->state != REDIS_GREETING || answer->kind != REDIS_STRING)
		return;
	learn_identity(redis, answer->text, "run_id:");
	if (strstr(answer->text, "redis_mode:cluster") != NULL ||
		strstr(answer->text, "server_mode:cluster") != NULL)
		redis_down(redis, "it is part of a Redis Cluster; redis_url must name a Redis that has all keys");
}

static void
greet_on_probe(void *ctx, const struct redis_answer *answer)
{
	struct redis *redis = ctx;

	if (redis->state != REDIS_GREETING)
		return;
	if (answer->kind == REDIS_ERROR)
		redis_down(redis, "it takes no writes: %s", answer->text);
	else
		redis_up(redis);
}

static void
greet_probe(struct redis *redis)
{
	struct redis_args args;

	redis_args_init(&args);
	redis_args_text(&args, "INFO");
	redis_args_text(&args, "server");
	greet_put(redis, &args, greet_on_info);
	redis_args_init(&args);
	redis_args_text(&args, "INFO");
	redis_args_text(&args, "replication");
	greet_put(redis, &args, greet_on_replication);
	redis_args_init(&args);
	redis_args_text(&args, "SET");
	redis_args_text(&args, redis->options.probe);
	redis_args_text(&args, "");
	redis_args_text(&args, "PX");
	redis_args_number(&args, 1000);
	greet_put(redis, &args, greet_on_probe);
}

void
redis_greet(struct redis *redis)
{
	const struct redis_url *url = redis->options.url;
	struct redis_args args;

	redis->state = REDIS_GREETING;
	redis->identity[0] = '\0';
	if (url->password[0] != '\0') {
		redis_args_init(&args);
		redis_args_text(&args, "AUTH");
		if (url->user[0] != '\0')
			redis_args_text(&args, url->user);
		redis_args_text(&args, url->password);
		greet_put(redis, &args, greet_on_answer);
	}
	if (url->db != 0) {
		redis_args_init(&args);
		redis_args_text(&args, "SELECT");
		redis_args_number(&args, url->db);
		greet_put(redis, &args, greet_on_answer);
	}
	if (redis->name != NULL) {
		redis_args_init(&args);
		redis_args_text(&args, "CLIENT");
		redis_args_text(&args, "SETNAME");
		redis_args_text(&args, redis->name);
		greet_put(redis, &args, NULL);
	}
	redis_args_init(&args);
	redis_args_text(&args, "PING");
	greet_put(redis, &args, greet_on_ping);
	redis_args_init(&args);
	redis_args_text(&args, "ROLE");
	greet_put(redis, &args, greet_on_role);
	if (redis->options.probe != NULL)
		greet_probe(redis);
}
