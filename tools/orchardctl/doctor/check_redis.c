/*
 * check_redis.c - the Redis of the server's settings: is it reached, does it take writes, does it keep what it is told.
 *
 * Asked by the server's own client, from here: what it says is what the server is told.
 */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "conf/config.h"
#include "orchardctl/doctor/finding.h"
#include "redis/client.h"
#include "redis/url.h"

#include <event2/event.h>
#include <stdio.h>

enum { PATIENCE_MS = 5000, TICK_US = 20000, LEAST_VERSION = 60006 };

struct visit {
	struct event_base *base;
	struct redis *redis;
	int64_t end_ms;
	bool asked, up;
	char before[128]; /* what its problem was before it tried */
	char *info; /* owned; NULL: it does not tell us */
};

static void
on_info(void *ctx, const struct redis_answer *answer)
{
	struct visit *visit = ctx;

	if (answer->kind == REDIS_STRING)
		visit->info = alloc_string(answer->text);
	event_base_loopbreak(visit->base);
}

static void
on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct visit *visit = arg;
	struct redis_reply_to to = { on_info, visit, PATIENCE_MS };
	struct redis_args args;
	struct err err;

	(void)fd;
	(void)what;
	if (!redis_is_up(visit->redis)) {
		if (strcmp(redis_problem(visit->redis), visit->before) != 0 || clock_boot_ms() > visit->end_ms)
			event_base_loopbreak(visit->base);
		return;
	}
	if (visit->asked)
		return;
	visit->asked = visit->up = true;
	redis_args_init(&args);
	redis_args_text(&args, "INFO");
	if (redis_send(visit->redis, &args, to, &err) != 0)
		event_base_loopbreak(visit->base);
}

/* "redis-cli -h db1 -p 6379", without the password, which it then asks for; malloc'ed. */
static char *
cli_of(const struct redis_url *url)
{
	AUTO_FREE char *place = url->host[0] == '\0' ? alloc_format("-s '%s'", url->path)
						     : alloc_format("-h %s -p %u", url->host, url->port);
	AUTO_FREE char *user = url->user[0] == '\0' ? alloc_string("") : alloc_format(" --user '%s'", url->user);

	return alloc_format("redis-cli %s%s%s", place, user, url->password[0] != '\0' ? " --askpass" : "");
}

static void
add_problem(struct findings *findings, const char *problem, const char *place, const char *cli)
{
	static const struct {
		const char *said, *words, *cure; /* words: of redis-cli; or "", and the cure is no command of it */
	} cures[] = {
		{ "NOAUTH", "", "put its password into redis_url: redis://:PASSWORD@HOST:PORT/0" },
		{ "WRONGPASS", " ping", ": does it take that password? else correct redis_url" },
		{ "AUTH", " acl whoami", ": redis_url names a password, and it may want none, or another user" },
		{ "NOPERM", " acl list", ": docs/redis.md, \"Which Redis\", has the rights that the user needs" },
		{ "replica", " role", " names the master, which redis_url must name" },
		{ "OOM", " config set maxmemory 4gb", ", or as much as its host has for it" },
		{ "MISCONF", " config get dir", ": that disk is full, or not writable" },
		{ "Redis Cluster", "", "redis_url must name a Redis that has all keys" },
	};

	for (size_t i = 0; i < sizeof cures / sizeof *cures; i++) {
		AUTO_FREE char *cure = NULL;

		if (strstr(problem, cures[i].said) == NULL)
			continue;
		cure = alloc_format("%s%s%s", cures[i].words[0] != '\0' ? cli : "", cures[i].words, cures[i].cure);
		finding_add(findings, FINDING_FAIL, "redis-server", cure, "%s: %s", place, problem);
		return;
	}
	AUTO_FREE char *cure = alloc_format("%s ping; on its host: systemctl restart redis-server", cli);

	finding_add(findings, FINDING_FAIL, "redis-server", cure, "%s: %s", place,
		problem[0] != '\0' ? problem : "it does not answer");
}

/* A line of INFO, such as "maxmemory_policy:"; what stands behind it, "" for none. */
static void
info_value(const char *info, const char *name, char *buf, size_t size)
{
	const char *found = strstr(info, name);

	buf[0] = '\0';
	if (found != NULL)
		snprintf(buf, size, "%.*s", (int)strcspn(found + strlen(name), "\r\n"), found + strlen(name));
}

static void
check_version(struct findings *findings, const char *info, const char *place)
{
	int major = 0, minor = 0, patch = 0;
	char version[32];

	info_value(info, "redis_version:", version, sizeof version);
	(void)sscanf(version, "%d.%d.%d", &major, &minor, &patch);
	if (major * 10000 + minor * 100 + patch < LEAST_VERSION && version[0] != '\0')
		finding_add(findings, FINDING_FAIL, "redis-server", "upgrade it",
			"%s is %s; 6.0.6 is the oldest that will do", place, version);
	else
		finding_add(
			findings, FINDING_OK, "redis-server", NULL, "%s takes writes; version %s", place, version);
}

static void
check_memory(struct findings *findings, const char *info, const char *cli)
{
	AUTO_FREE char *cure = alloc_format("%s config set maxmemory-policy noeviction (and: config rewrite)", cli);
	char policy[32], most[32];

	info_value(info, "maxmemory_policy:", policy, sizeof policy);
	info_value(info, "maxmemory_human:", most, sizeof most);
	if (policy[0] == '\0')
		return;
	if (strcmp(policy, "noeviction") != 0)
		finding_add(findings, FINDING_WARN, "redis-memory", cure,
			"it drops sandboxes and jobs when its memory is full: maxmemory-policy is %s", policy);
	else
		finding_add(findings, FINDING_OK, "redis-memory", NULL, "it drops nothing (%s); maxmemory is %s",
			policy, strcmp(most, "0B") == 0 ? "not set" : most);
}

static void
check_disk(struct findings *findings, const char *info, const char *cli)
{
	AUTO_FREE char *begin = alloc_format("%s config set appendonly yes (and: config rewrite)", cli);
	AUTO_FREE char *look = alloc_format("%s config get dir: is that disk full?", cli);
	char appends[8], wrote[8];

	info_value(info, "aof_enabled:", appends, sizeof appends);
	info_value(info, "aof_last_write_status:", wrote, sizeof wrote);
	if (appends[0] == '\0')
		return;
	if (appends[0] == '0')
		finding_add(findings, FINDING_WARN, "redis-disk", begin,
			"what it was told since its last snapshot is gone when it restarts: appendonly is off");
	else if (strcmp(wrote, "err") == 0)
		finding_add(findings, FINDING_FAIL, "redis-disk", look, "it could not write what it was told");
	else
		finding_add(findings, FINDING_OK, "redis-disk", NULL, "it keeps what it is told (appendonly)");
}

static void
visit_run(struct visit *visit, const struct redis_url *url, const char *probe)
{
	const struct redis_options options = {
		.url = url, .name = "orchardctl", .probe = probe, .connect_ms = PATIENCE_MS
	};
	struct event *tick;

	visit->base = must_alloc(event_base_new());
	visit->end_ms = clock_boot_ms() + PATIENCE_MS + 1000;
	visit->redis = redis_new(visit->base, &options);
	snprintf(visit->before, sizeof visit->before, "%s", redis_problem(visit->redis));
	tick = must_alloc(event_new(visit->base, -1, EV_PERSIST, on_tick, visit));
	event_add(tick, &(struct timeval){ .tv_usec = TICK_US });
	event_base_dispatch(visit->base);
	event_free(tick);
}

static void
visit_end(struct visit *visit)
{
	redis_forget(visit->redis, visit);
	redis_free(visit->redis);
	event_base_free(visit->base);
	free(visit->info);
}

void
doctor_check_redis(struct findings *findings, const struct config *config)
{
	AUTO_FREE char *probe = alloc_format("%sprobe", config->redis_prefix), *cli = NULL;
	struct visit visit = { 0 };
	struct redis_url url;
	char place[2 * REDIS_URL_TEXT_MAX];
	struct err err;

	if (!config->use_redis)
		return;
	if (redis_url_parse(config->redis_url, &url, &err) != 0) {
		finding_add(findings, FINDING_FAIL, "redis-server", "correct redis_url", "%s", err.msg);
		return;
	}
	redis_url_describe(&url, place, sizeof place);
	cli = cli_of(&url);
	visit_run(&visit, &url, probe);
	if (!visit.up) {
		add_problem(findings, redis_problem(visit.redis), place, cli);
	} else if (visit.info == NULL) {
		finding_add(findings, FINDING_WARN, "redis-server",
			"give the user the right +info: what Redis drops and keeps is not known without it",
			"%s takes writes, and does not tell us more", place);
	} else {
		check_version(findings, visit.info, place);
		check_memory(findings, visit.info, cli);
		check_disk(findings, visit.info, cli);
	}
	visit_end(&visit);
	explicit_bzero(&url, sizeof url);
}
