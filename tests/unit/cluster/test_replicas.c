/* test_replicas.c - several reapers at one redis-server: who lives, who is elected, who is gone. */
/* SPDX-License-Identifier: MIT */
#include "redis_rig.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "cluster/replicas.h"
#include "redis/client.h"
#include "redis/url.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/event.h>

enum { TTL_MS = 600, MEMBERS = 3 };

static const char *const ids[MEMBERS] = { "00000000-0000-4000-8000-00000000000a",
	"00000000-0000-4000-8000-00000000000b", "00000000-0000-4000-8000-00000000000c" };

static const char *const hosts[MEMBERS] = { "host-a", "host-b", "host-c" };

struct member {
	struct redis *redis;
	struct replicas *replicas;
	unsigned ups;
	struct ctx *ctx;
};

struct ctx {
	struct rig_server server;
	struct event_base *base;
	struct redis_url url;
	struct member members[MEMBERS];
	unsigned told; /* how often one was gone */
	const char *dead; /* the only one that may be */
};

static void
on_gone(void *arg, const char *id)
{
	struct member *member = arg;

	assert_non_null(member->ctx->dead);
	assert_string_equal(id, member->ctx->dead);
	member->ctx->told++;
}

static void
on_change(void *arg, bool up)
{
	struct member *member = arg;

	member->ups += up;
	if (member->replicas != NULL)
		replicas_on_redis(member->replicas, up);
}

static void
member_start(struct ctx *ctx, int i)
{
	struct member *member = &ctx->members[i];

	member->ctx = ctx;
	member->redis = redis_new(ctx->base, &(struct redis_options){ .url = &ctx->url });
	redis_on_change(member->redis, on_change, member);
	rig_until_count(ctx->base, &member->ups, member->ups + 1);
	member->replicas = replicas_new(&(struct replicas_options){ .base = ctx->base,
		.redis = member->redis,
		.prefix = "t:",
		.id = ids[i],
		.host = hosts[i],
		.version = "1",
		.ttl_ms = TTL_MS,
		.on_gone = on_gone,
		.ctx = member });
}

static void
member_stop(struct ctx *ctx, int i)
{
	struct member *member = &ctx->members[i];

	if (member->replicas != NULL)
		replicas_free(member->replicas);
	redis_free(member->redis);
	*member = (struct member){ 0 };
}

static int
elected(const struct ctx *ctx)
{
	int found = -1;

	for (int i = 0; i < MEMBERS; i++) {
		if (ctx->members[i].replicas == NULL || !replicas_is_elected(ctx->members[i].replicas))
			continue;
		assert_int_equal(found, -1);
		found = i;
	}
	return found;
}

/* Whatever happens, one is elected at most: looked at in each turn of the loop. */
static int
until_elected_other_than(struct ctx *ctx, int other)
{
	int64_t limit = clock_boot_ms() + 60000;
	int now = -1;

	do {
		event_base_loop(ctx->base, EVLOOP_ONCE);
		now = elected(ctx);
	} while ((now == -1 || now == other) && clock_boot_ms() < limit);
	assert_int_not_equal(now, -1);
	assert_int_not_equal(now, other);
	return now;
}

static void
until_alive(struct ctx *ctx, int i, uint32_t count)
{
	int64_t limit = clock_boot_ms() + 60000;

	while (replicas_alive(ctx->members[i].replicas) != count && clock_boot_ms() < limit)
		event_base_loop(ctx->base, EVLOOP_ONCE);
	assert_int_equal(replicas_alive(ctx->members[i].replicas), count);
}

static void
ctx_start(struct ctx *ctx, int members)
{
	struct err err;

	*ctx = (struct ctx){ .base = event_base_new() };
	if (!rig_server_start(&ctx->server, NULL))
		skip();
	assert_int_equal(redis_url_parse(ctx->server.url, &ctx->url, &err), 0);
	for (int i = 0; i < members; i++)
		member_start(ctx, i);
}

static void
ctx_stop(struct ctx *ctx)
{
	for (int i = 0; i < MEMBERS; i++)
		member_stop(ctx, i);
	event_base_free(ctx->base);
	rig_server_stop(&ctx->server);
}

static void
test_one_of_three_is_elected_until_it_leaves(void **state)
{
	struct ctx ctx;
	int first;

	(void)state;
	ctx_start(&ctx, MEMBERS);
	first = until_elected_other_than(&ctx, -1);
	until_alive(&ctx, (first + 1) % MEMBERS, 3);
	member_stop(&ctx, first);
	until_elected_other_than(&ctx, first);
	ctx_stop(&ctx);
}

/* A member in a process of its own. */
static pid_t
fork_member(const struct ctx *parent, int i)
{
	pid_t pid = fork();

	assert_int_not_equal(pid, -1);
	if (pid == 0) {
		struct ctx ctx = { .base = event_base_new(), .url = parent->url };

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		member_start(&ctx, i);
		event_base_dispatch(ctx.base);
		_exit(1);
	}
	return pid;
}

static void
test_a_killed_one_is_gone_until_it_is_buried(void **state)
{
	struct ctx ctx;
	pid_t pid;

	(void)state;
	ctx_start(&ctx, 2);
	ctx.dead = ids[2]; /* or slow, on a busy machine */
	pid = fork_member(&ctx, 2);
	for (int i = 0; i < 2; i++)
		until_alive(&ctx, i, 3);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	ctx.told = 0;
	rig_until_count(ctx.base, &ctx.told, 2);
	for (int i = 0; i < 2; i++) {
		until_alive(&ctx, i, 2);
		assert_false(replicas_is_alive(ctx.members[i].replicas, ids[2]));
		assert_true(replicas_is_alive(ctx.members[i].replicas, ids[1 - i]));
	}
	replicas_bury(ctx.members[0].replicas, ids[2]);
	replicas_bury(ctx.members[0].replicas, ids[1]); /* alive: nothing comes of it */
	for (int i = 0; i < 2; i++)
		until_alive(&ctx, i, 2);
	ctx_stop(&ctx);
}

static void
on_counted(void *arg, const struct redis_answer *answer)
{
	unsigned *answers = arg;

	assert_int_equal(answer->kind, REDIS_INTEGER);
	++*answers;
}

/* Redis has failed over to a machine whose clock is behind, and one server died before that. */
static void
test_a_beat_from_a_clock_that_was_ahead_keeps_nobody_alive(void **state)
{
	static const char *const words[] = { "ZADD", "t:replicas", "4102444800000" };
	unsigned answers = 0;
	struct redis_args args;
	struct err err;
	struct ctx ctx;

	(void)state;
	ctx_start(&ctx, 1);
	ctx.dead = ids[1];
	redis_args_init(&args);
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		redis_args_text(&args, words[i]);
	redis_args_text(&args, ids[1]);
	assert_int_equal(redis_send(ctx.members[0].redis, &args,
				 (struct redis_reply_to){ on_counted, &answers, 60000 }, &err),
		0);
	rig_until_count(ctx.base, &answers, 1);
	rig_until_count(ctx.base, &ctx.told, 1);
	assert_false(replicas_is_alive(ctx.members[0].replicas, ids[1]));
	ctx_stop(&ctx);
}

static void
on_host_score(void *arg, const struct redis_answer *answer)
{
	unsigned *answers = arg;
	int64_t beat_ms;

	assert_true(redis_answer_number(answer, &beat_ms));
	assert_true(beat_ms > 0);
	++*answers;
}

/* When any server of a host last lived is known also after that one is buried, and its key has run out. */
static void
test_a_host_outlives_its_servers(void **state)
{
	unsigned answers = 0;
	struct redis_args args;
	struct err err;
	struct ctx ctx;
	pid_t pid;

	(void)state;
	ctx_start(&ctx, 1);
	ctx.dead = ids[1];
	pid = fork_member(&ctx, 1);
	until_alive(&ctx, 0, 2);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	rig_until_count(ctx.base, &ctx.told, 1);
	replicas_bury(ctx.members[0].replicas, ids[1]);
	redis_args_init(&args);
	redis_args_text(&args, "ZSCORE");
	redis_args_text(&args, "t:hosts");
	redis_args_text(&args, "host-b");
	assert_int_equal(redis_send(ctx.members[0].redis, &args,
				 (struct redis_reply_to){ on_host_score, &answers, 60000 }, &err),
		0);
	rig_until_count(ctx.base, &answers, 1);
	ctx_stop(&ctx);
}

/* Nobody beat for a while because everything stood still: old beats prove nothing then. */
static void
test_a_pause_of_all_buries_nobody(void **state)
{
	struct timespec pause = { .tv_sec = 2 * TTL_MS / 1000, .tv_nsec = 2 * TTL_MS % 1000 * 1000000L };
	struct ctx ctx;

	(void)state;
	ctx_start(&ctx, MEMBERS);
	for (int i = 0; i < MEMBERS; i++)
		until_alive(&ctx, i, 3);
	until_elected_other_than(&ctx, -1);
	nanosleep(&pause, NULL);
	until_elected_other_than(&ctx, -1);
	for (int i = 0; i < MEMBERS; i++)
		until_alive(&ctx, i, 3);
	ctx_stop(&ctx);
}

/* Their beats are old when it thaws, and nobody is gone. */
static void
test_a_frozen_redis_buries_nobody(void **state)
{
	struct ctx ctx;
	struct timeval frozen = clock_tv(3 * TTL_MS);

	(void)state;
	ctx_start(&ctx, MEMBERS);
	until_elected_other_than(&ctx, -1);
	for (int i = 0; i < MEMBERS; i++)
		until_alive(&ctx, i, 3);
	kill(ctx.server.pid, SIGSTOP);
	event_base_loopexit(ctx.base, &frozen);
	event_base_dispatch(ctx.base);
	assert_int_equal(elected(&ctx), -1); /* the lease has ended here, too */
	kill(ctx.server.pid, SIGCONT);
	until_elected_other_than(&ctx, -1);
	for (int i = 0; i < MEMBERS; i++)
		until_alive(&ctx, i, 3);
	assert_int_equal(ctx.told, 0);
	ctx_stop(&ctx);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_of_three_is_elected_until_it_leaves),
		cmocka_unit_test(test_a_host_outlives_its_servers),
		cmocka_unit_test(test_a_killed_one_is_gone_until_it_is_buried),
		cmocka_unit_test(test_a_beat_from_a_clock_that_was_ahead_keeps_nobody_alive),
		cmocka_unit_test(test_a_pause_of_all_buries_nobody),
		cmocka_unit_test(test_a_frozen_redis_buries_nobody),
	};

	signal(SIGPIPE, SIG_IGN);
	log_set_fd(open("/dev/null", O_WRONLY | O_CLOEXEC));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
