/* test_lane_script.c - one lane, several replicas, a real Redis: who has it, in which order, with which number. */
/* SPDX-License-Identifier: MIT */
#include "cluster/lane_script.h"
#include "redis_server.h"

#include <hiredis/hiredis.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LEASE = 60000, CLAIM = 30000, SHORT = 1 };

static struct rig_server server;
static redisContext *redis;

struct answer {
	bool has;
	long long number, turns;
	bool wanted;
	long long left;
	char holder[8];
};

struct ask {
	const char *verb, *me;
	long long seen, above;
	int lease, claim; /* 0: long */
};

static struct answer
run(const struct ask *ask)
{
	struct answer answer = { 0 };
	redisReply *reply = redisCommand(redis,
		"EVAL %s 3 lane queue changes %s %s %lld %d %d %lld name 3600000 1000", lane_script, ask->verb,
		ask->me, ask->seen, ask->lease ? ask->lease : LEASE, ask->claim ? ask->claim : CLAIM, ask->above);

	assert_non_null(reply);
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 6)
		fail_msg("%s: %s", ask->verb, reply->type == REDIS_REPLY_ERROR ? reply->str : "not an array of 6");
	answer.has = reply->element[0]->integer == 1;
	answer.number = reply->element[1]->integer;
	answer.turns = reply->element[2]->integer;
	answer.wanted = reply->element[3]->integer == 1;
	answer.left = reply->element[4]->integer;
	snprintf(answer.holder, sizeof answer.holder, "%s", reply->element[5]->str);
	freeReplyObject(reply);
	return answer;
}

static struct answer
say(const char *verb, const char *me, long long seen)
{
	return run(&(struct ask){ .verb = verb, .me = me, .seen = seen });
}

static void
forget_all(void)
{
	freeReplyObject(redisCommand(redis, "FLUSHALL"));
}

/* To whom the newest entry of the stream is; "": there is none. */
static void
last_told(char to[8])
{
	redisReply *reply = redisCommand(redis, "XREVRANGE changes + - COUNT 1");

	to[0] = '\0';
	if (reply->elements == 1)
		snprintf(to, 8, "%s", reply->element[0]->element[1]->element[5]->str);
	freeReplyObject(reply);
}

static long long
told_count(void)
{
	redisReply *reply = redisCommand(redis, "XLEN changes");
	long long n = reply->integer;

	freeReplyObject(reply);
	return n;
}

static void
test_first_has_it(void **state)
{
	struct answer a, again;

	(void)state;
	forget_all();
	a = say("add", "A", 0);
	assert_true(a.has && !a.wanted);
	assert_int_equal(a.turns, 1);
	assert_true(a.number > 1000000000);
	assert_true(a.left > LEASE / 2);
	again = say("renew", "A", a.number);
	assert_true(again.has);
	assert_int_equal(again.number, a.number);
	assert_int_equal(again.turns, 0);
	assert_int_equal(told_count(), 0);
}

/* Who no longer knows how many fences it has made of a number gets a new one. */
static void
test_lost_knowledge(void **state)
{
	struct answer a, b;

	(void)state;
	forget_all();
	a = say("ensure", "A", 0);
	b = say("ensure", "A", 0);
	assert_true(b.has);
	assert_true(b.number > a.number);
}

static void
test_hand_over(void **state)
{
	struct answer a, b;
	char to[8];

	(void)state;
	forget_all();
	a = say("ensure", "A", 0);
	b = say("add", "B", 0);
	assert_false(b.has);
	assert_string_equal(b.holder, "A");
	last_told(to);
	assert_string_equal(to, "A");
	assert_true(say("renew", "A", a.number).wanted);
	assert_false(say("release", "A", a.number).has);
	last_told(to);
	assert_string_equal(to, "B");
	b = say("ensure", "B", 0);
	assert_true(b.has && !b.wanted);
	assert_int_equal(b.turns, 1);
	assert_true(b.number > a.number);
	/* What A still believes to have does it no good. */
	assert_false(say("renew", "A", a.number).has);
}

/* Redis has failed over to a machine whose clock is behind, and with the one before its holder died. */
static void
test_a_lease_from_a_clock_that_was_ahead_ends(void **state)
{
	struct answer b;

	(void)state;
	forget_all();
	say("ensure", "A", 0);
	freeReplyObject(redisCommand(redis, "HSET lane until 4102444800000"));
	b = say("add", "B", 0);
	assert_false(b.has);
	assert_string_equal(b.holder, "A");
	assert_true(b.left > 0 && b.left <= LEASE);
}

static void
test_order_of_arrival(void **state)
{
	const char *arrivals = "BBCABCCA";
	char order[16] = "";
	size_t n = 0;
	char turn[8];

	(void)state;
	forget_all();
	assert_true(say("ensure", "A", 0).has);
	for (const char *p = arrivals; *p != '\0'; p++)
		say("add", (char[]){ *p, '\0' }, 0);
	say("yield", "A", 0);
	while (n < strlen(arrivals)) {
		struct answer got;

		last_told(turn);
		got = say("ensure", turn, 0);
		assert_true(got.has && got.turns > 0);
		for (long long i = 0; i < got.turns && n + 1 < sizeof order; i++)
			order[n++] = turn[0];
		say("yield", turn, got.number);
	}
	assert_string_equal(order, arrivals);
}

static void
test_each_turn_once(void **state)
{
	struct answer got;

	(void)state;
	forget_all();
	assert_true(say("ensure", "A", 0).has);
	for (const char *p = "BBCB"; *p != '\0'; p++)
		assert_false(say("add", (char[]){ *p, '\0' }, 0).has);
	say("yield", "A", 0);
	got = say("ensure", "B", 0);
	assert_true(got.has && got.wanted);
	assert_int_equal(got.turns, 2);
	assert_int_equal(say("renew", "B", got.number).turns, 0);
	assert_false(say("yield", "B", got.number).has);
	got = say("ensure", "C", 0);
	assert_int_equal(got.turns, 1);
	say("release", "C", got.number);
	got = say("ensure", "B", 0);
	assert_int_equal(got.turns, 1);
	assert_true(got.wanted);
	say("release", "B", got.number);
	/* A stood behind all of them when it let them go first. */
	got = say("ensure", "A", 0);
	assert_true(got.has && !got.wanted);
	assert_int_equal(got.turns, 1);
}

static void
test_ensure_queues_once(void **state)
{
	struct answer got;

	(void)state;
	forget_all();
	got = say("ensure", "A", 0);
	for (int i = 0; i < 5; i++)
		assert_false(say("ensure", "B", 0).has);
	say("release", "A", got.number);
	got = say("ensure", "B", 0);
	assert_int_equal(got.turns, 1);
	assert_false(got.wanted);
}

/* A lease that is over goes to who waits, and stays where nobody does. */
static void
test_lease_ends(void **state)
{
	struct answer a, b;

	(void)state;
	forget_all();
	a = run(&(struct ask){ .verb = "ensure", .me = "A", .lease = SHORT });
	poll(NULL, 0, 20);
	b = run(&(struct ask){ .verb = "renew", .me = "A", .seen = a.number, .lease = SHORT });
	assert_true(b.has);
	assert_int_equal(b.number, a.number);
	poll(NULL, 0, 20);
	b = say("add", "B", 0);
	assert_true(b.has);
	assert_true(b.number > a.number);
	a = say("ensure", "A", a.number);
	assert_false(a.has);
	assert_string_equal(a.holder, "B");
}

/* A dead replica's turn holds nobody up for longer than it takes to claim one. */
static void
test_unclaimed_turns(void **state)
{
	struct answer a, c;

	(void)state;
	forget_all();
	a = say("ensure", "A", 0);
	for (const char *p = "BBCB"; *p != '\0'; p++)
		say("add", (char[]){ *p, '\0' }, 0);
	run(&(struct ask){ .verb = "release", .me = "A", .seen = a.number, .claim = SHORT });
	poll(NULL, 0, 20);
	c = say("ensure", "C", 0);
	assert_true(c.has && !c.wanted);
	assert_string_equal(c.holder, "C");
}

/* It was slow, and is not dead: nobody had asked meanwhile. */
static void
test_claimed_late(void **state)
{
	struct answer a, b;

	(void)state;
	forget_all();
	a = say("ensure", "A", 0);
	say("add", "B", 0);
	say("add", "A", 0);
	run(&(struct ask){ .verb = "release", .me = "A", .seen = a.number, .claim = SHORT });
	poll(NULL, 0, 20);
	b = say("ensure", "B", 0);
	assert_true(b.has);
	assert_int_equal(b.turns, 1);
}

static void
test_above(void **state)
{
	struct answer a, b;
	long long newest;

	(void)state;
	forget_all();
	a = say("ensure", "A", 0);
	newest = a.number + 1000;
	b = run(&(struct ask){ .verb = "ensure", .me = "A", .seen = a.number, .above = newest });
	assert_true(b.has);
	assert_true(b.number > newest);
	forget_all();
	a = run(&(struct ask){ .verb = "ensure", .me = "B", .above = newest });
	assert_true(a.number > newest);
	/* Nobody else gets an older one. */
	say("add", "C", 0);
	say("release", "B", a.number);
	assert_true(say("ensure", "C", 0).number > a.number);
}

/* After a flush a replica's own number is not given again. */
static void
test_flush(void **state)
{
	struct answer a, b;

	(void)state;
	forget_all();
	a = run(&(struct ask){ .verb = "ensure", .me = "A", .above = 1LL << 40 });
	forget_all();
	assert_false(say("renew", "A", a.number).has);
	b = say("ensure", "A", a.number);
	assert_true(b.has);
	assert_int_equal(b.number, a.number + 1);
	assert_true(b.number > 1LL << 40);
}

static void
test_release_of_others(void **state)
{
	struct answer a;

	(void)state;
	forget_all();
	a = say("ensure", "A", 0);
	say("add", "B", 0);
	say("release", "C", a.number);
	assert_true(say("renew", "A", a.number).has);
	/* B has changed its mind. */
	say("release", "B", 0);
	assert_false(say("renew", "A", a.number).wanted);
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
		cmocka_unit_test(test_first_has_it),
		cmocka_unit_test(test_lost_knowledge),
		cmocka_unit_test(test_hand_over),
		cmocka_unit_test(test_a_lease_from_a_clock_that_was_ahead_ends),
		cmocka_unit_test(test_order_of_arrival),
		cmocka_unit_test(test_each_turn_once),
		cmocka_unit_test(test_ensure_queues_once),
		cmocka_unit_test(test_lease_ends),
		cmocka_unit_test(test_unclaimed_turns),
		cmocka_unit_test(test_claimed_late),
		cmocka_unit_test(test_above),
		cmocka_unit_test(test_flush),
		cmocka_unit_test(test_release_of_others),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
