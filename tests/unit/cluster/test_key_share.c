/* test_key_share.c - an Idempotency-Key at two servers and a real Redis: one claim stands, and each says the same of it. */
/* SPDX-License-Identifier: MIT */
#include "redis_rig.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "cluster/key_share.h"
#include "redis/client.h"
#include "redis/url.h"

#include <json-c/json.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <event2/event.h>

struct ctx {
	struct rig_server server;
	struct event_base *base;
	struct redis_url url;
	struct redis *redis;
	struct key_share *a, *b;
};

/* What came of a call. */
struct outcome {
	bool ended;
	enum err_code code;
	struct key_claim claim; /* all zero: none */
	char answer[64];
};

static const char digest[] = "d1";

static void
on_done(const struct key_claim *claim, const struct err *why, void *arg)
{
	struct outcome *outcome = arg;

	outcome->ended = true;
	outcome->code = why != NULL ? why->code : ERR_NONE;
	if (claim == NULL)
		return;
	outcome->claim = *claim;
	if (claim->answer != NULL)
		snprintf(outcome->answer, sizeof outcome->answer, "%s", json_text(claim->answer, NULL));
	outcome->claim.answer = NULL; /* borrowed */
}

static struct key_share *
share_new(struct ctx *ctx, const char *replica)
{
	return key_share_new(&(struct key_share_options){
		.redis = ctx->redis, .prefix = "t:", .replica = replica, .deadline_ms = 5000 });
}

static int
start(void **state)
{
	static struct ctx ctx;
	struct err err;

	memset(&ctx, 0, sizeof ctx);
	if (!rig_server_start(&ctx.server, NULL))
		return -1;
	ctx.base = event_base_new();
	if (redis_url_parse(ctx.server.url, &ctx.url, &err) != 0)
		return -1;
	ctx.redis = redis_new(ctx.base, &(struct redis_options){ .url = &ctx.url, .silence_ms = 60000 });
	while (!redis_is_up(ctx.redis))
		event_base_loop(ctx.base, EVLOOP_ONCE);
	ctx.a = share_new(&ctx, "A");
	ctx.b = share_new(&ctx, "B");
	*state = &ctx;
	return 0;
}

static int
stop(void **state)
{
	struct ctx *ctx = *state;

	key_share_end(ctx->a);
	key_share_end(ctx->b);
	key_share_free(ctx->a);
	key_share_free(ctx->b);
	redis_free(ctx->redis);
	event_base_free(ctx->base);
	rig_server_stop(&ctx->server);
	return 0;
}

/* --- calls --- */

static struct outcome
get(struct ctx *ctx, struct key_share *share, const char *name)
{
	struct record_key key = key_store_key("t", name);
	struct outcome outcome = { 0 };

	key_share_get(share, &key, on_done, &outcome);
	rig_until(ctx->base, &outcome.ended);
	return outcome;
}

static struct key_claim
claim_for(const char *id)
{
	struct key_claim claim = { .claimed_at = 1 };

	snprintf(claim.digest, sizeof claim.digest, "%s", digest);
	snprintf(claim.id, sizeof claim.id, "%s", id);
	return claim;
}

static struct outcome
put(struct ctx *ctx, struct key_share *share, const char *name, const char *id)
{
	struct record_key key = key_store_key("t", name);
	struct key_claim claim = claim_for(id);
	struct outcome outcome = { 0 };

	key_share_put(share, &key, &claim, clock_steady() + 60, on_done, &outcome);
	rig_until(ctx->base, &outcome.ended);
	return outcome;
}

static struct outcome
renew(struct ctx *ctx, struct key_share *share, const char *name, struct key_claim *claim)
{
	struct record_key key = key_store_key("t", name);
	struct outcome outcome = { 0 };

	key_share_renew(share, &key, claim, clock_steady() + 60, on_done, &outcome);
	rig_until(ctx->base, &outcome.ended);
	return outcome;
}

/* --- tests --- */

static void
test_the_first_claim_stands_for_both(void **state)
{
	struct ctx *ctx = *state;
	struct outcome first, second, seen;

	assert_int_equal(get(ctx, ctx->a, "first").code, ERR_NOT_FOUND);
	first = put(ctx, ctx->a, "first", "job-a");
	assert_int_equal(first.code, ERR_NONE);
	assert_int_not_equal(first.claim.place.segment, 0);
	second = put(ctx, ctx->b, "first", "job-b");
	assert_int_equal(second.code, ERR_EXISTS);
	assert_string_equal(second.claim.id, "job-a");
	assert_string_equal(second.claim.digest, digest);
	assert_string_equal(second.claim.home, "A");
	assert_memory_equal(&second.claim.place, &first.claim.place, sizeof first.claim.place);
	/* By this server's clock, whatever the other one's says. */
	assert_true(clock_steady() - second.claim.claimed_at < 30);
	seen = get(ctx, ctx->a, "first");
	assert_int_equal(seen.code, ERR_NONE);
	assert_string_equal(seen.claim.home, "");
	assert_false(seen.claim.ended);
}

static void
test_a_renewed_claim_is_another_one(void **state)
{
	struct ctx *ctx = *state;
	AUTO_JSON struct json_object *answer = json_object_new_string("made");
	struct record_key key = key_store_key("t", "renewed");
	struct outcome first = put(ctx, ctx->a, "renewed", "box"), seen;
	struct key_claim claim = claim_for("box"), late = claim;

	claim.place = late.place = first.claim.place;
	claim.answer = answer;
	assert_int_equal(renew(ctx, ctx->b, "renewed", &claim).code, ERR_NONE);
	assert_int_equal(renew(ctx, ctx->a, "renewed", &late).code, ERR_STALE);
	key_share_give_up(ctx->a, &key, &first.claim.place);
	seen = get(ctx, ctx->a, "renewed");
	assert_int_equal(seen.code, ERR_NONE);
	assert_string_equal(seen.answer, "\"made\"");
	assert_string_equal(seen.claim.home, "B");
	key_share_settle(ctx->b, &key, clock_steady() + 60);
	seen = get(ctx, ctx->a, "renewed");
	assert_true(seen.claim.ended);
	assert_int_equal(renew(ctx, ctx->a, "renewed", &seen.claim).code, ERR_STALE);
}

static void
test_a_claim_that_is_given_up_leaves_the_key_free(void **state)
{
	struct ctx *ctx = *state;
	struct record_key key = key_store_key("t", "freed");
	struct outcome first = put(ctx, ctx->a, "freed", "job-a");

	key_share_give_up(ctx->a, &key, &first.claim.place);
	assert_int_equal(put(ctx, ctx->b, "freed", "job-b").code, ERR_NONE);
}

/* Redis does what it is told, late: nobody hears of it. */
static struct outcome
lose_answer(struct ctx *ctx, const char *name, struct key_claim *claim)
{
	struct key_share *hasty = key_share_new(&(struct key_share_options){
		.redis = ctx->redis, .prefix = "t:", .replica = "A", .deadline_ms = 1 });
	struct outcome lost = { 0 };

	kill(ctx->server.pid, SIGSTOP);
	lost = claim->place.segment != 0 ? renew(ctx, hasty, name, claim) : put(ctx, hasty, name, claim->id);
	kill(ctx->server.pid, SIGCONT);
	/* Its own words stay in front of whatever is asked by the same connection afterwards. */
	key_share_end(hasty);
	key_share_free(hasty);
	return lost;
}

static void
test_a_first_claim_that_nobody_heard_of_is_given_up(void **state)
{
	struct ctx *ctx = *state;
	struct key_claim claim = claim_for("job-a");

	assert_int_equal(lose_answer(ctx, "lost", &claim).code, ERR_UNAVAILABLE);
	assert_int_equal(put(ctx, ctx->b, "lost", "job-b").code, ERR_NONE);
}

/* What it stands for lives: it must not be made again. */
static void
test_a_renewed_claim_that_nobody_heard_of_stands(void **state)
{
	struct ctx *ctx = *state;
	struct key_claim claim = claim_for("job-a");
	struct outcome seen;

	claim.place = put(ctx, ctx->a, "lost", "job-a").claim.place;
	assert_int_equal(lose_answer(ctx, "lost", &claim).code, ERR_UNAVAILABLE);
	seen = get(ctx, ctx->b, "lost");
	assert_int_equal(seen.code, ERR_NONE);
	assert_string_equal(seen.claim.id, "job-a");
	assert_memory_not_equal(&seen.claim.place, &claim.place, sizeof claim.place);
}

static void
test_whoever_is_forgotten_is_not_told(void **state)
{
	struct ctx *ctx = *state;
	struct record_key key = key_store_key("t", "forgotten");
	struct outcome outcome = { 0 };

	key_share_get(ctx->a, &key, on_done, &outcome);
	key_share_forget(ctx->a, &outcome);
	assert_int_equal(get(ctx, ctx->a, "forgotten").code, ERR_NOT_FOUND);
	assert_false(outcome.ended);
}

static void
test_without_redis_nobody_waits(void **state)
{
	struct ctx *ctx = *state;
	struct record_key key = key_store_key("t", "away");
	struct outcome waits = { 0 }, after = { 0 };

	key_share_get(ctx->b, &key, on_done, &waits);
	key_share_end(ctx->b);
	assert_int_equal(waits.code, ERR_UNAVAILABLE);
	key_share_get(ctx->b, &key, on_done, &after);
	assert_int_equal(after.code, ERR_UNAVAILABLE);
}

/* --- another run of Redis --- */

/* Empty, as a copy that lacks everything would be. */
static void
replace_redis(struct ctx *ctx)
{
	rig_server_kill(&ctx->server);
	while (redis_is_up(ctx->redis))
		event_base_loop(ctx->base, EVLOOP_ONCE);
	key_share_on_redis(ctx->a, false);
	key_share_on_redis(ctx->b, false);
	rig_server_restart(&ctx->server);
	while (!redis_is_up(ctx->redis))
		event_base_loop(ctx->base, EVLOOP_ONCE);
}

static void
test_another_redis_is_told_what_was_claimed_before(void **state)
{
	struct ctx *ctx = *state;
	AUTO_JSON struct json_object *answer = json_object_new_string("made");
	struct record_key ended = key_store_key("t", "ended");
	struct key_claim claim = claim_for("box");
	struct outcome seen;

	put(ctx, ctx->a, "live", "job-live");
	put(ctx, ctx->a, "ended", "job-ended");
	key_share_settle(ctx->a, &ended, clock_steady() + 60);
	claim.place = put(ctx, ctx->a, "made", "box").claim.place;
	claim.answer = answer;
	assert_int_equal(renew(ctx, ctx->a, "made", &claim).code, ERR_NONE);
	replace_redis(ctx);
	key_share_on_redis(ctx->a, true);
	key_share_on_redis(ctx->b, true);
	seen = get(ctx, ctx->b, "live");
	assert_int_equal(seen.code, ERR_NONE);
	assert_string_equal(seen.claim.id, "job-live");
	assert_string_equal(seen.claim.home, "A");
	assert_false(seen.claim.ended);
	seen = get(ctx, ctx->b, "ended");
	assert_int_equal(seen.code, ERR_NONE);
	assert_true(seen.claim.ended);
	seen = get(ctx, ctx->b, "made");
	assert_int_equal(seen.code, ERR_NONE);
	assert_string_equal(seen.answer, "\"made\"");
}

/* Whoever has claimed it may not have said so yet. */
static void
test_a_key_that_another_redis_lacks_is_not_new_at_once(void **state)
{
	struct ctx *ctx = *state;

	put(ctx, ctx->a, "late", "job-a");
	replace_redis(ctx);
	key_share_on_redis(ctx->b, true);
	assert_int_equal(get(ctx, ctx->b, "late").code, ERR_UNAVAILABLE);
	assert_int_equal(put(ctx, ctx->b, "late", "job-b").code, ERR_UNAVAILABLE);
	key_share_on_redis(ctx->a, true);
	assert_string_equal(get(ctx, ctx->b, "late").claim.id, "job-a");
}

static void
test_what_was_given_up_does_not_come_back(void **state)
{
	struct ctx *ctx = *state;
	struct record_key key = key_store_key("t", "freed");
	struct outcome first = put(ctx, ctx->a, "freed", "job-a");

	key_share_give_up(ctx->a, &key, &first.claim.place);
	replace_redis(ctx);
	key_share_on_redis(ctx->a, true);
	assert_int_equal(get(ctx, ctx->b, "freed").code, ERR_NOT_FOUND);
}

/* More than are said at once. */
static void
test_all_of_many_are_said_again(void **state)
{
	enum { MANY = 300 };
	struct ctx *ctx = *state;
	char name[32];

	for (int i = 0; i < MANY; i++) {
		snprintf(name, sizeof name, "key-%d", i);
		put(ctx, ctx->a, name, name);
	}
	replace_redis(ctx);
	key_share_on_redis(ctx->a, true);
	for (int i = 0; i < MANY; i++) {
		struct outcome seen = { 0 };
		int64_t limit = clock_boot_ms() + 60000;

		snprintf(name, sizeof name, "key-%d", i);
		while (seen.claim.id[0] == '\0' && clock_boot_ms() < limit)
			seen = get(ctx, ctx->a, name);
		assert_string_equal(seen.claim.id, name);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_the_first_claim_stands_for_both, start, stop),
		cmocka_unit_test_setup_teardown(test_a_renewed_claim_is_another_one, start, stop),
		cmocka_unit_test_setup_teardown(test_a_claim_that_is_given_up_leaves_the_key_free, start, stop),
		cmocka_unit_test_setup_teardown(test_a_first_claim_that_nobody_heard_of_is_given_up, start, stop),
		cmocka_unit_test_setup_teardown(test_a_renewed_claim_that_nobody_heard_of_stands, start, stop),
		cmocka_unit_test_setup_teardown(test_whoever_is_forgotten_is_not_told, start, stop),
		cmocka_unit_test_setup_teardown(test_without_redis_nobody_waits, start, stop),
		cmocka_unit_test_setup_teardown(test_another_redis_is_told_what_was_claimed_before, start, stop),
		cmocka_unit_test_setup_teardown(
			test_a_key_that_another_redis_lacks_is_not_new_at_once, start, stop),
		cmocka_unit_test_setup_teardown(test_what_was_given_up_does_not_come_back, start, stop),
		cmocka_unit_test_setup_teardown(test_all_of_many_are_said_again, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
