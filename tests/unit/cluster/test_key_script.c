/* test_key_script.c - one key, several servers, a real Redis: the first claim stands, and only its owner moves it. */
/* SPDX-License-Identifier: MIT */
#include "cluster/key_script.h"
#include "redis/answer.h"
#include "redis/answer_impl.h"
#include "redis_server.h"

#include <hiredis/hiredis.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct rig_server server;
static redisContext *redis;
static redisReply *reply; /* of the last call */
static struct redis_answer answer;
static const struct key_name name = { .prefix = "t:", .digest = "abc" };

static void
drop_answer(void)
{
	if (reply == NULL)
		return;
	redis_answer_clear(&answer);
	freeReplyObject(reply);
	reply = NULL;
}

static int
start(void **state)
{
	(void)state;
	redis_server_start(&server);
	redis = redis_server_connect(&server);
	return 0;
}

static int
stop(void **state)
{
	(void)state;
	drop_answer();
	redisFree(redis);
	rig_server_stop(&server);
	return 0;
}

static int
flush(void **state)
{
	(void)state;
	freeReplyObject(redisCommand(redis, "FLUSHALL"));
	return 0;
}

/* The word it answers with. */
static const char *
run(const struct redis_script *script, const struct redis_args *args)
{
	const char *argv[16] = { "EVAL", script->text, "1" };
	size_t lens[16] = { 4, strlen(script->text), 1 };

	drop_answer();
	for (size_t i = 0; i < args->count; i++) {
		argv[3 + i] = args->list[i].data;
		lens[3 + i] = args->list[i].size;
	}
	reply = redisCommandArgv(redis, (int)args->count + 3, argv, lens);
	assert_non_null(reply);
	redis_answer_fill(&answer, reply);
	if (answer.kind != REDIS_ARRAY)
		fail_msg("%.200s", answer.text);
	return redis_answer_item(&answer, 0)->text;
}

static const char *
put(const char *claim, const char *mark)
{
	struct key_text text = { .claim = claim, .len = strlen(claim), .mark = mark, .keep_ms = 60000 };
	struct redis_args args;

	key_script_put_args(&args, &name, &text);
	return run(&key_script_put, &args);
}

static const char *
renew(const char *old, const char *claim, const char *mark)
{
	struct key_text text = { .claim = claim, .len = strlen(claim), .mark = mark, .keep_ms = 60000 };
	struct redis_args args;

	key_script_renew_args(&args, &name, old, &text);
	return run(&key_script_renew, &args);
}

static const char *
give_up(const char *mark)
{
	struct redis_args args;

	key_script_give_up_args(&args, &name, mark);
	return run(&key_script_give_up, &args);
}

static const char *
settle(int64_t keep_ms)
{
	struct redis_args args;

	key_script_settle_args(&args, &name, keep_ms);
	return run(&key_script_settle, &args);
}

static const char *
get(void)
{
	struct redis_args args;

	key_script_get_args(&args, &name);
	return run(&key_script_get, &args);
}

static const char *
again(const char *claim, const char *mark, const struct key_past *past)
{
	struct key_text text = { .claim = claim, .len = strlen(claim), .mark = mark, .keep_ms = 30000 };
	struct redis_args args;

	key_script_again_args(&args, &name, &text, past);
	return run(&key_script_again, &args);
}

static long long
left_ms(void)
{
	redisReply *r = redisCommand(redis, "PTTL t:key:abc");
	long long ms = r->integer;

	freeReplyObject(r);
	return ms;
}

static void
expect_claim(const char *claim, const char *mark, int64_t ended)
{
	int64_t number = -1;

	assert_string_equal(redis_answer_item(&answer, 2)->text, claim);
	assert_string_equal(redis_answer_item(&answer, 3)->text, mark);
	assert_true(redis_answer_number(redis_answer_item(&answer, 4), &number));
	assert_int_equal(number, ended);
	assert_true(redis_answer_number(redis_answer_item(&answer, 5), &number));
	assert_true(number >= 0);
}

static void
test_the_first_claim_stands(void **state)
{
	(void)state;
	assert_string_equal(get(), "none");
	assert_string_equal(put("one", "m1"), "made");
	assert_string_equal(put("two", "m2"), "there");
	expect_claim("one", "m1", 0);
	assert_string_equal(put("one", "m1"), "made"); /* asked again, since the answer was lost */
	assert_string_equal(get(), "there");
	expect_claim("one", "m1", 0);
	assert_true(left_ms() > 0);
}

static void
test_only_the_claim_that_is_there_is_renewed(void **state)
{
	(void)state;
	assert_string_equal(renew("m0", "x", "m9"), "stale");
	assert_string_equal(put("one", "m1"), "made");
	assert_string_equal(renew("m1", "answer", "m2"), "made");
	assert_string_equal(renew("m1", "late", "m3"), "stale");
	assert_string_equal(renew("m1", "answer", "m2"), "made"); /* asked again */
	assert_string_equal(get(), "there");
	expect_claim("answer", "m2", 0);
}

static void
test_a_claim_is_given_up_by_its_owner_alone(void **state)
{
	(void)state;
	assert_string_equal(put("one", "m1"), "made");
	assert_string_equal(give_up("m2"), "done");
	assert_string_equal(get(), "there");
	assert_string_equal(give_up("m1"), "done");
	assert_string_equal(get(), "none");
	assert_string_equal(put("two", "m2"), "made");
	assert_string_equal(give_up("m1"), "done"); /* late */
	assert_string_equal(get(), "there");
}

static void
test_what_has_ended_is_kept_no_longer_and_not_renewed(void **state)
{
	(void)state;
	assert_string_equal(settle(1000), "none");
	assert_string_equal(put("one", "m1"), "made");
	assert_string_equal(settle(500000), "done");
	assert_true(left_ms() <= 60000);
	assert_string_equal(settle(30000), "done");
	assert_true(left_ms() <= 30000);
	assert_string_equal(renew("m1", "x", "m2"), "stale");
	assert_string_equal(get(), "there");
	expect_claim("one", "m1", 1);
}

static void
test_the_age_is_the_keys_and_not_the_renewals(void **state)
{
	int64_t age = 0;

	(void)state;
	assert_string_equal(put("one", "m1"), "made");
	freeReplyObject(redisCommand(redis, "HINCRBY t:key:abc claimed_ms -90000"));
	assert_string_equal(renew("m1", "two", "m2"), "made");
	assert_string_equal(get(), "there");
	assert_true(redis_answer_number(redis_answer_item(&answer, 5), &age));
	assert_true(age >= 90000);
}

static void
test_what_redis_has_lost_is_said_again(void **state)
{
	const struct key_past first = { .before = "", .age_ms = 20000 };
	int64_t age = 0;

	(void)state;
	assert_string_equal(again("one", "m1", &first), "done");
	assert_string_equal(get(), "there");
	expect_claim("one", "m1", 0);
	assert_true(redis_answer_number(redis_answer_item(&answer, 5), &age));
	assert_true(age >= 20000);
	assert_true(left_ms() > 0 && left_ms() <= 30000);
	/* The other one's claim was there first, or made in between. */
	assert_string_equal(again("two", "m2", &first), "there");
	expect_claim("one", "m1", 0);
}

static void
test_a_renewal_that_redis_has_lost_takes_the_place_of_its_claim_alone(void **state)
{
	const struct key_past renewed = { .before = "m1" };
	int64_t age = 0;

	(void)state;
	assert_string_equal(put("one", "m1"), "made");
	freeReplyObject(redisCommand(redis, "HINCRBY t:key:abc claimed_ms -90000"));
	assert_string_equal(again("two", "m2", &renewed), "done");
	assert_string_equal(again("late", "m3", &renewed), "there");
	expect_claim("two", "m2", 0);
	assert_true(redis_answer_number(redis_answer_item(&answer, 5), &age));
	assert_true(age >= 90000);
}

static void
test_an_end_that_redis_has_lost_is_said_again(void **state)
{
	const struct key_past live = { .before = "" }, ended = { .before = "", .ended = true };

	(void)state;
	assert_string_equal(put("one", "m1"), "made");
	assert_string_equal(again("one", "m1", &live), "done");
	assert_true(left_ms() > 30000); /* nothing was lost of it */
	assert_string_equal(again("one", "m1", &ended), "done");
	assert_string_equal(again("one", "m1", &live), "done"); /* by who does not know of its end */
	assert_string_equal(get(), "there");
	expect_claim("one", "m1", 1);
	assert_true(left_ms() <= 30000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_the_first_claim_stands, flush),
		cmocka_unit_test_setup(test_only_the_claim_that_is_there_is_renewed, flush),
		cmocka_unit_test_setup(test_a_claim_is_given_up_by_its_owner_alone, flush),
		cmocka_unit_test_setup(test_what_has_ended_is_kept_no_longer_and_not_renewed, flush),
		cmocka_unit_test_setup(test_the_age_is_the_keys_and_not_the_renewals, flush),
		cmocka_unit_test_setup(test_what_redis_has_lost_is_said_again, flush),
		cmocka_unit_test_setup(
			test_a_renewal_that_redis_has_lost_takes_the_place_of_its_claim_alone, flush),
		cmocka_unit_test_setup(test_an_end_that_redis_has_lost_is_said_again, flush),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
