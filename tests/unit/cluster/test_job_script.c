/* test_job_script.c - one job's record in a real Redis: its home, its one end, who is told. */
/* SPDX-License-Identifier: MIT */
#include "cluster/job_script.h"
#include "redis_server.h"

#include <hiredis/hiredis.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct rig_server server;
static redisContext *redis;

static long long
number(redisReply *reply)
{
	long long n;

	assert_non_null(reply);
	if (reply->type != REDIS_REPLY_INTEGER)
		fail_msg("%s", reply->type == REDIS_REPLY_ERROR ? reply->str : "not a number");
	n = reply->integer;
	freeReplyObject(reply);
	return n;
}

static long long
put(const char *home, const char *state)
{
	return number(redisCommand(redis,
		"EVAL %s 4 job:J jobs:%s changes list J %s 60000 1000 7 2 tenant T state %s live %s-json "
		"take %s-take host H sandbox S uid U",
		job_put_script, home, home, state, state, state));
}

static void
run(const char *command)
{
	redisReply *reply = redisCommand(redis, command);

	assert_non_null(reply);
	if (reply->type == REDIS_REPLY_ERROR)
		fail_msg("%s", reply->str);
	freeReplyObject(reply);
}

static long long
end(const char *home, const char *result)
{
	return number(redisCommand(redis, "EVAL %s 4 job:J jobs:%s changes list J T 50000 1000 7 2 %s brief",
		job_end_script, home, result));
}

/* The state and the JSON; false: there is no such job. */
static bool
get(char state[16], char json[32])
{
	redisReply *reply = redisCommand(redis, "EVAL %s 1 job:J", job_get_script);
	bool there;

	assert_non_null(reply);
	if (reply->type == REDIS_REPLY_ERROR)
		fail_msg("%s", reply->str);
	there = reply->type == REDIS_REPLY_ARRAY;
	if (there) {
		assert_int_equal(reply->elements, 6);
		assert_string_equal(reply->element[0]->str, "T");
		snprintf(state, 16, "%s", reply->element[1]->str);
		snprintf(json, 32, "%s", reply->element[2]->str);
	}
	freeReplyObject(reply);
	return there;
}

static void
assert_stands(const char *state, const char *json)
{
	char is_state[16], is_json[32];

	assert_true(get(is_state, is_json));
	assert_string_equal(is_state, state);
	assert_string_equal(is_json, json);
}

static long long
told(void)
{
	return number(redisCommand(redis, "XLEN changes"));
}

static long long
of_home(const char *home)
{
	return number(redisCommand(redis, "SCARD jobs:%s", home));
}

static int
forget_all(void **state)
{
	(void)state;
	freeReplyObject(redisCommand(redis, "FLUSHALL"));
	return 0;
}

static void
test_life(void **state)
{
	char word[16], json[32];

	(void)state;
	assert_false(get(word, json));
	assert_int_equal(put("A", "queued"), 1);
	assert_stands("queued", "queued-json");
	assert_int_equal(put("A", "running"), 1);
	assert_stands("running", "running-json");
	assert_int_equal(of_home("A"), 1);
	assert_int_equal(end("A", "the-end"), 1);
	assert_stands("ended", "the-end");
	assert_int_equal(of_home("A"), 0);
	assert_true(number(redisCommand(redis, "PTTL job:J")) > 30000);
}

static void
test_first_end_stands(void **state)
{
	(void)state;
	assert_int_equal(put("A", "running"), 1);
	assert_int_equal(end("A", "first"), 1);
	assert_int_equal(end("B", "second"), 0);
	assert_int_equal(put("A", "running"), 0);
	assert_stands("ended", "first");
	assert_int_equal(of_home("A"), 0);
	/* An end is told although nobody has said that it began. */
	forget_all(NULL);
	assert_int_equal(end("A", "only"), 1);
	assert_stands("ended", "only");
}

static void
test_one_home(void **state)
{
	(void)state;
	assert_int_equal(put("A", "queued"), 1);
	assert_int_equal(put("B", "running"), 0);
	assert_stands("queued", "queued-json");
	assert_int_equal(of_home("B"), 0);
}

/* Only what somebody has asked for is told to all. */
static void
test_told_when_watched(void **state)
{
	(void)state;
	assert_int_equal(put("A", "queued"), 1);
	assert_int_equal(put("A", "running"), 1);
	assert_int_equal(told(), 0);
	assert_stands("running", "running-json");
	assert_int_equal(put("A", "running"), 1);
	assert_int_equal(told(), 1);
	assert_int_equal(end("A", "the-end"), 1);
	assert_int_equal(told(), 2);
	/* What has ended does not change, so nobody waits for it. */
	assert_stands("ended", "the-end");
	assert_int_equal(number(redisCommand(redis, "HEXISTS job:J watched")), 0);
}

static long long
cancel(const char *tenant)
{
	return number(redisCommand(redis, "EVAL %s 2 job:J changes J %s 1000", job_cancel_script, tenant));
}

static void
test_cancel(void **state)
{
	redisReply *reply;

	(void)state;
	assert_int_equal(cancel("T"), 0);
	assert_int_equal(put("A", "queued"), 1);
	assert_int_equal(cancel("other"), 0);
	assert_int_equal(told(), 0);
	assert_int_equal(cancel("T"), 1);
	reply = redisCommand(redis, "XREVRANGE changes + - COUNT 1");
	assert_int_equal(reply->elements, 1);
	assert_string_equal(reply->element[0]->element[1]->element[5]->str, "A");
	freeReplyObject(reply);
	assert_int_equal(number(redisCommand(redis, "HEXISTS job:J cancel")), 1);
	assert_int_equal(end("A", "the-end"), 1);
	assert_int_equal(cancel("T"), 0);
}

/* A cancel that nobody heard is told with the home's next word, and on request. */
static void
test_cancel_stands(void **state)
{
	redisReply *reply;

	(void)state;
	assert_int_equal(put("A", "queued"), 1);
	assert_int_equal(cancel("T"), 1);
	assert_int_equal(put("A", "running"), 2);
	reply = redisCommand(redis, "EVAL %s 0 job: none J", job_marks_script);
	assert_int_equal(reply->elements, 4);
	assert_string_equal(reply->element[0]->str, "");
	assert_string_equal(reply->element[1]->str, "lost");
	assert_string_equal(reply->element[2]->str, "A");
	assert_string_equal(reply->element[3]->str, "1");
	freeReplyObject(reply);
	/* Also of what has ended there: who drives it still is to know that it is another's. */
	assert_int_equal(end("A", "the-end"), 1);
	reply = redisCommand(redis, "EVAL %s 0 job: J", job_marks_script);
	assert_string_equal(reply->element[0]->str, "A");
	assert_string_equal(reply->element[1]->str, "");
	freeReplyObject(reply);
}

/* The words of a list, parted by spaces. */
static void
assert_listed(const char *tenant, const char *words)
{
	redisReply *reply = redisCommand(redis, "EVAL %s 1 list job: %s 10", job_list_script, tenant);
	char is[128] = "";

	assert_int_equal(reply->type, REDIS_REPLY_ARRAY);
	for (size_t i = 0; i < reply->elements; i++) {
		strncat(is, i > 0 ? " " : "", sizeof is - strlen(is) - 1);
		strncat(is, reply->element[i]->str, sizeof is - strlen(is) - 1);
	}
	assert_string_equal(is, words);
	freeReplyObject(reply);
}

static void
test_list(void **state)
{
	(void)state;
	assert_listed("T", "");
	assert_int_equal(put("A", "running"), 1);
	assert_listed("T", "J running-json");
	assert_listed("other", "");
	assert_int_equal(end("A", "the-end"), 1);
	assert_listed("T", "J brief");
	/* One that is not kept any more, and the newest that are. */
	run("ZADD list 8 K 9 L");
	run("HSET job:K tenant T state running live K-json");
	assert_listed("T", "K K-json J brief");
	assert_int_equal(number(redisCommand(redis, "ZCARD list")), 2);
	run("ZADD list 9 L");
	run("HSET job:L tenant T state running live L-json");
	assert_int_equal(put("A", "running"), 0);
	run("DEL job:J");
	assert_int_equal(put("A", "running"), 1);
	assert_listed("T", "L L-json K K-json");
	assert_true(number(redisCommand(redis, "PTTL list")) > 30000);
}

static void
test_page(void **state)
{
	redisReply *reply;

	(void)state;
	assert_int_equal(put("A", "running"), 1);
	run("SADD jobs:A ended gone other");
	run("HSET job:ended home A state ended");
	run("HSET job:other home B state running");
	reply = redisCommand(redis, "EVAL %s 1 jobs:A job: A 0", job_page_script);
	assert_int_equal(reply->elements, 6);
	assert_string_equal(reply->element[0]->str, "0");
	assert_string_equal(reply->element[1]->str, "J");
	assert_string_equal(reply->element[2]->str, "T");
	assert_string_equal(reply->element[3]->str, "S");
	assert_string_equal(reply->element[4]->str, "U");
	assert_string_equal(reply->element[5]->str, "H");
	freeReplyObject(reply);
	/* What is no live job of it is not looked at again. */
	assert_int_equal(of_home("A"), 1);
}

/* B claims it from A. */
static bool
claim(int gone_ms, int host_ms)
{
	redisReply *reply = redisCommand(redis,
		"EVAL %s 6 job:J jobs:A changes jobs:B replicas hosts J A B 1000 %d %d", job_claim_script, gone_ms,
		host_ms);
	bool got;

	assert_non_null(reply);
	if (reply->type == REDIS_REPLY_ERROR)
		fail_msg("%s", reply->str);
	got = reply->type == REDIS_REPLY_ARRAY;
	if (got) {
		assert_int_equal(reply->elements, 3);
		assert_string_equal(reply->element[1]->str, "running-take");
		assert_string_equal(reply->element[2]->str, "running-json");
	}
	freeReplyObject(reply);
	return got;
}

/* Whoever of those has beaten so long ago. */
static void
beat_of(const char *those, const char *id, int ago_s)
{
	redisReply *reply = redisCommand(redis, "TIME");
	long long now_s = atoll(reply->element[0]->str);

	freeReplyObject(reply);
	freeReplyObject(redisCommand(redis, "ZADD %s %lld %s", those, (now_s - ago_s) * 1000, id));
}

static void
beat(const char *id, int ago_s)
{
	beat_of("replicas", id, ago_s);
}

static void
test_claim_of_a_silent_home(void **state)
{
	redisReply *reply;

	(void)state;
	assert_false(claim(15000, 0));
	assert_int_equal(put("A", "running"), 1);
	beat("A", 0);
	assert_false(claim(15000, 0));
	beat("A", 60);
	assert_true(claim(15000, 0));
	/* The old one is told; it has no say any more. */
	reply = redisCommand(redis, "XREVRANGE changes + - COUNT 1");
	assert_string_equal(reply->element[0]->element[1]->element[1]->str, "claim");
	assert_string_equal(reply->element[0]->element[1]->element[5]->str, "A");
	freeReplyObject(reply);
	assert_int_equal(put("A", "running"), 0);
	assert_int_equal(of_home("A"), 0);
	assert_int_equal(of_home("B"), 1);
	assert_false(claim(15000, 0));
	assert_int_equal(end("B", "the-end"), 1);
	assert_int_equal(of_home("B"), 0);
}

static void
test_claim_of_a_lost_host(void **state)
{
	(void)state;
	assert_int_equal(put("A", "running"), 1);
	beat("A", 7200);
	/* Another server there could have asked; it may be gone itself since, and forgotten. */
	beat_of("hosts", "H", 600);
	assert_false(claim(15000, 3600000));
	beat_of("hosts", "H", 7200);
	assert_true(claim(15000, 3600000));
}

/* It was claimed already, by a process that died with it. */
static void
test_claim_of_ones_own(void **state)
{
	redisReply *reply;

	(void)state;
	assert_int_equal(put("A", "running"), 1);
	beat("A", 0);
	reply = redisCommand(
		redis, "EVAL %s 6 job:J jobs:A changes jobs:A replicas hosts J A A 1000 15000 0", job_claim_script);
	assert_int_equal(reply->type, REDIS_REPLY_ARRAY);
	assert_int_equal(reply->elements, 3);
	freeReplyObject(reply);
	assert_int_equal(of_home("A"), 1);
}

/* An end that was first stands against whoever claims it. */
static void
test_no_claim_of_what_has_ended(void **state)
{
	(void)state;
	assert_int_equal(put("A", "running"), 1);
	assert_int_equal(end("A", "the-end"), 1);
	assert_false(claim(15000, 0));
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
	redisFree(redis);
	rig_server_stop(&server);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_life, forget_all),
		cmocka_unit_test_setup(test_first_end_stands, forget_all),
		cmocka_unit_test_setup(test_one_home, forget_all),
		cmocka_unit_test_setup(test_told_when_watched, forget_all),
		cmocka_unit_test_setup(test_cancel, forget_all),
		cmocka_unit_test_setup(test_cancel_stands, forget_all),
		cmocka_unit_test_setup(test_list, forget_all),
		cmocka_unit_test_setup(test_page, forget_all),
		cmocka_unit_test_setup(test_claim_of_a_silent_home, forget_all),
		cmocka_unit_test_setup(test_claim_of_a_lost_host, forget_all),
		cmocka_unit_test_setup(test_claim_of_ones_own, forget_all),
		cmocka_unit_test_setup(test_no_claim_of_what_has_ended, forget_all),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
