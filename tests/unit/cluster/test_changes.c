/* test_changes.c - what is appended to the stream is heard once and in order, and whoever may have missed something is told so. */
/* SPDX-License-Identifier: MIT */
#include "redis_rig.h"

#include "base/err.h"
#include "cluster/changes.h"
#include "redis/client.h"
#include "redis/url.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <event2/event.h>

struct ctx {
	struct rig_server server;
	struct event_base *base;
	struct redis_url url;
	struct redis *listens, *writes;
	struct changes *changes;
	unsigned heard, resumed, missed, done;
	char names[256]; /* of what was heard, in order */
};

static void
on_heard(void *arg, const char *kind, const struct redis_answer *fields)
{
	struct ctx *ctx = arg;
	size_t len = strlen(ctx->names);

	ctx->heard++;
	snprintf(ctx->names + len, sizeof ctx->names - len, "%s:%s ", kind, redis_answer_field(fields, "id")->text);
}

static void
on_resumed(void *arg, bool missed)
{
	struct ctx *ctx = arg;

	ctx->resumed++;
	ctx->missed += missed;
}

static void
on_done(void *arg, const struct redis_answer *answer)
{
	struct ctx *ctx = arg;
	struct err err;

	if (redis_answer_check(answer, &err) != 0)
		fail_msg("%s", err.msg);
	ctx->done++;
}

/* Sends words that are separated by blanks, and waits until Redis has done it. */
static void
say(struct ctx *ctx, const char *line)
{
	char words[256], *rest = words, *word;
	unsigned before = ctx->done;
	struct redis_args args;
	struct err err;

	snprintf(words, sizeof words, "%s", line);
	redis_args_init(&args);
	while ((word = strtok_r(rest, " ", &rest)) != NULL)
		redis_args_text(&args, word);
	while (!redis_is_up(ctx->writes))
		event_base_loop(ctx->base, EVLOOP_ONCE);
	assert_int_equal(
		redis_send(ctx->writes, &args, (struct redis_reply_to){ .fn = on_done, .ctx = ctx }, &err), 0);
	rig_until_count(ctx->base, &ctx->done, before + 1);
}

static void
add(struct ctx *ctx, const char *id)
{
	char line[128];

	snprintf(line, sizeof line, "XADD t:changes * kind k id %s", id);
	say(ctx, line);
}

static void
until_heard(struct ctx *ctx, const char *names)
{
	unsigned count = 0;

	for (const char *c = names; *c != '\0'; c++)
		count += *c == ' ';
	rig_until_count(ctx->base, &ctx->heard, count);
	assert_string_equal(ctx->names, names);
}

static int
start(void **state)
{
	static struct ctx ctx;
	struct err err;

	ctx = (struct ctx){ .base = event_base_new() };
	assert_true(rig_server_start(&ctx.server, NULL));
	assert_int_equal(redis_url_parse(ctx.server.url, &ctx.url, &err), 0);
	ctx.writes = redis_new(ctx.base, &(struct redis_options){ .url = &ctx.url, .silence_ms = 60000 });
	ctx.listens = redis_new(ctx.base, &(struct redis_options){ .url = &ctx.url, .silence_ms = 60000 });
	*state = &ctx;
	return 0;
}

static int
stop(void **state)
{
	struct ctx *ctx = *state;

	changes_free(ctx->changes);
	redis_free(ctx->listens);
	redis_free(ctx->writes);
	event_base_free(ctx->base);
	rig_server_stop(&ctx->server);
	return 0;
}

static void
listen_to_it(struct ctx *ctx)
{
	ctx->changes = changes_new(&(struct changes_options){
		.base = ctx->base,
		.redis = ctx->listens,
		.prefix = "t:",
		.heard = on_heard,
		.resumed = on_resumed,
		.ctx = ctx,
	});
	rig_until_count(ctx->base, &ctx->resumed, 1);
}

/* Ends every connection but the writer's own. */
static void
cut(struct ctx *ctx)
{
	say(ctx, "CLIENT KILL TYPE normal SKIPME yes");
}

static void
test_a_listener_compares_once_and_then_hears_all_in_order(void **state)
{
	struct ctx *ctx = *state;
	char id[8], names[256] = "";

	add(ctx, "before");
	listen_to_it(ctx);
	assert_int_equal(ctx->missed, 1);
	assert_string_not_equal(changes_epoch(ctx->changes), "");
	for (int i = 0; i < 20; i++) {
		snprintf(id, sizeof id, "n%d", i);
		add(ctx, id);
		snprintf(names + strlen(names), sizeof names - strlen(names), "k:%s ", id);
	}
	until_heard(ctx, names);
	assert_int_equal(ctx->resumed, 1);
}

static void
test_what_was_said_during_a_cut_is_heard_after_it(void **state)
{
	struct ctx *ctx = *state;

	add(ctx, "before");
	listen_to_it(ctx);
	cut(ctx);
	add(ctx, "a");
	add(ctx, "b");
	until_heard(ctx, "k:a k:b ");
	rig_until_count(ctx->base, &ctx->resumed, 2);
	assert_int_equal(ctx->missed, 1);
}

static void
test_a_cut_over_a_trimmed_stream_means_to_compare(void **state)
{
	struct ctx *ctx = *state;

	add(ctx, "before");
	listen_to_it(ctx);
	say(ctx, "MULTI"); /* so that it cannot be back in between */
	cut(ctx);
	add(ctx, "a");
	add(ctx, "b");
	add(ctx, "c");
	say(ctx, "XTRIM t:changes MAXLEN 1");
	say(ctx, "EXEC");
	rig_until_count(ctx->base, &ctx->missed, 2);
	add(ctx, "d");
	rig_until_count(ctx->base, &ctx->heard, 2);
	assert_string_equal(ctx->names, "k:c k:d ");
}

static void
test_an_emptied_redis_is_noticed_without_a_cut(void **state)
{
	struct ctx *ctx = *state;
	char epoch[64];

	add(ctx, "before");
	listen_to_it(ctx);
	snprintf(epoch, sizeof epoch, "%s", changes_epoch(ctx->changes));
	say(ctx, "FLUSHALL");
	rig_until_count(ctx->base, &ctx->missed, 2);
	assert_string_not_equal(changes_epoch(ctx->changes), epoch);
	add(ctx, "a");
	until_heard(ctx, "k:a ");
}

static void
test_a_killed_redis_that_comes_back_empty_means_to_compare(void **state)
{
	struct ctx *ctx = *state;

	listen_to_it(ctx);
	add(ctx, "a");
	until_heard(ctx, "k:a ");
	rig_server_kill(&ctx->server);
	rig_server_restart(&ctx->server);
	rig_until_count(ctx->base, &ctx->missed, 2);
	add(ctx, "b");
	until_heard(ctx, "k:a k:b ");
}

/* What its stream shows may be newer than what was heard, and still lack something. */
static void
test_another_run_of_redis_means_to_compare(void **state)
{
	struct ctx *ctx = *state;
	char epoch[64];

	add(ctx, "before");
	listen_to_it(ctx);
	snprintf(epoch, sizeof epoch, "%s", changes_epoch(ctx->changes));
	cut(ctx);
	rig_until_count(ctx->base, &ctx->resumed, 2);
	assert_string_equal(changes_epoch(ctx->changes), epoch);
	assert_int_equal(ctx->missed, 1);
	say(ctx, "SET t:run another");
	cut(ctx);
	rig_until_count(ctx->base, &ctx->missed, 2);
	assert_string_not_equal(changes_epoch(ctx->changes), epoch);
	add(ctx, "a");
	until_heard(ctx, "k:a ");
}

static void
test_an_older_copy_of_redis_means_to_compare(void **state)
{
	struct ctx *ctx = *state;

	add(ctx, "before");
	listen_to_it(ctx);
	add(ctx, "a");
	until_heard(ctx, "k:a ");
	say(ctx, "MULTI");
	cut(ctx);
	say(ctx, "DEL t:changes");
	say(ctx, "XADD t:changes 5-1 kind k id old");
	say(ctx, "EXEC");
	rig_until_count(ctx->base, &ctx->missed, 2);
	say(ctx, "XADD t:changes 5-2 kind k id b");
	until_heard(ctx, "k:a k:b ");
}

static void
test_a_stream_that_is_none_is_tried_again(void **state)
{
	struct ctx *ctx = *state;

	listen_to_it(ctx);
	say(ctx, "SET t:changes x");
	cut(ctx);
	say(ctx, "DEL t:changes");
	add(ctx, "a");
	rig_until_count(ctx->base, &ctx->heard, 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_a_listener_compares_once_and_then_hears_all_in_order, start, stop),
		cmocka_unit_test_setup_teardown(test_what_was_said_during_a_cut_is_heard_after_it, start, stop),
		cmocka_unit_test_setup_teardown(test_a_cut_over_a_trimmed_stream_means_to_compare, start, stop),
		cmocka_unit_test_setup_teardown(test_an_emptied_redis_is_noticed_without_a_cut, start, stop),
		cmocka_unit_test_setup_teardown(
			test_a_killed_redis_that_comes_back_empty_means_to_compare, start, stop),
		cmocka_unit_test_setup_teardown(test_another_run_of_redis_means_to_compare, start, stop),
		cmocka_unit_test_setup_teardown(test_an_older_copy_of_redis_means_to_compare, start, stop),
		cmocka_unit_test_setup_teardown(test_a_stream_that_is_none_is_tried_again, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
