/* test_sandbox_share.c - two servers and their sandboxes at a real Redis: what one does, the other has, whatever gets lost on the way. */
/* SPDX-License-Identifier: MIT */
#include "redis_server.h"
#include "replicas.h"

#include "base/clock.h"
#include "base/err.h"

#include <hiredis/hiredis.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <event2/event.h>

static void
on_said(void *arg, const struct redis_answer *answer)
{
	(void)answer;
	*(bool *)arg = true;
}

/* Words that are separated by blanks, by a's connection. */
static void
say(struct replicas *all, const char *line)
{
	char words[256], *rest = words, *word;
	struct redis_args args;
	bool done = false;
	struct err err;

	snprintf(words, sizeof words, "%s", line);
	redis_args_init(&args);
	while ((word = strtok_r(rest, " ", &rest)) != NULL)
		redis_args_text(&args, word);
	assert_int_equal(
		redis_send(all->a.redis, &args, (struct redis_reply_to){ .fn = on_said, .ctx = &done }, &err), 0);
	rig_until(all->base, &done);
}

static void
test_what_one_makes_the_other_has(void **state)
{
	struct replicas *all = *state;
	struct sandbox_record record = replica_make(&all->a, "s"), there;

	replica_until_status(&all->b, "s", SANDBOX_PENDING);
	replica_set_status(&all->a, "s", SANDBOX_READY);
	replica_until_status(&all->b, "s", SANDBOX_READY);
	assert_true(replica_find(&all->b, "s", &there));
	assert_string_equal(there.home, all->a.id);
	assert_string_equal(there.uid, record.uid);
	assert_false(there.elsewhere);
	assert_true(llabs(there.created_ms - record.created_ms) < 5000);
	assert_int_equal(all->a.news[MIRROR_MADE], 0);
}

static void
test_an_id_is_one_sandbox(void **state)
{
	struct replicas *all = *state;
	struct sandbox_record record = replica_make(&all->a, "s"), other = record, there;
	struct outcome outcome = { 0 };
	struct err err;

	memset(other.uid, '5', ID_UUID_SIZE - 1);
	assert_int_equal(sandbox_share_create(all->b.share, &other, NULL,
				 (struct share_to){ .fn = outcome_set, .arg = &outcome }, &err),
		0);
	outcome_await(all, &outcome);
	assert_int_equal(outcome.result, SHARE_THERE);
	assert_true(replica_find(&all->b, "s", &there));
	assert_string_equal(there.uid, record.uid);
}

static void
test_a_patch_is_heard_by_the_home_and_keeps_what_it_told(void **state)
{
	struct replicas *all = *state;
	struct sandbox_patch_fields patch = { .labels = "{\"a\":\"1\"}", .ttl_ms = -1, .idle_timeout_ms = 777 };
	struct sandbox_record record = replica_make(&all->a, "s"), there;
	struct outcome outcome = { 0 };
	struct err err;

	replica_set_status(&all->a, "s", SANDBOX_READY);
	replica_until_status(&all->b, "s", SANDBOX_READY);
	assert_int_equal(sandbox_share_patch(all->b.share, &record, &patch,
				 (struct share_to){ .fn = outcome_set, .arg = &outcome }, &err),
		0);
	outcome_await(all, &outcome);
	assert_int_equal(outcome.result, SHARE_DONE);
	assert_true(replica_find(&all->b, "s", &there));
	assert_string_equal(there.labels, patch.labels);
	rig_until_count(all->base, &all->a.news[MIRROR_CHANGED], 1);
	assert_true(replica_find(&all->a, "s", &there));
	assert_string_equal(there.labels, patch.labels);
	assert_int_equal(there.idle_timeout_ms, 777);
	assert_int_equal(there.status, SANDBOX_READY);
}

/* An older copy on a machine whose clock is behind: the other has versions from before. */
static void
test_the_clock_of_another_redis_holds_no_news_back(void **state)
{
	struct replicas *all = *state;

	replica_make(&all->a, "s");
	replica_until_status(&all->b, "s", SANDBOX_PENDING);
	say(all, "HSET t:sandbox:s version 4102444800000000");
	replica_set_status(&all->a, "s", SANDBOX_READY);
	replica_until_status(&all->b, "s", SANDBOX_READY);
	say(all, "HSET t:sandbox:s version 5 told 0");
	replica_set_status(&all->a, "s", SANDBOX_FAILED);
	replica_until_status(&all->b, "s", SANDBOX_FAILED);
}

static void
test_a_deletion_goes_by_way_of_the_home(void **state)
{
	struct replicas *all = *state;
	struct sandbox_record record = replica_make(&all->a, "s");
	struct outcome outcome;

	replica_until_status(&all->b, "s", SANDBOX_PENDING);
	assert_int_equal(replica_delete(&all->b, &record).result, SHARE_DONE);
	rig_until_count(all->base, &all->a.news[MIRROR_UNWANTED], 1);
	replica_until_status(&all->b, "s", SANDBOX_DELETING);
	assert_int_equal(all->b.news[MIRROR_ENDS], 1);
	assert_int_equal(replica_delete(&all->a, &record).result, SHARE_DONE);
	replica_finish(&all->a, &record);
	replica_until_gone(&all->b, "s");
	assert_int_equal(all->b.news[MIRROR_GONE], 1);
	outcome = replica_look(&all->b, "s");
	assert_int_equal(outcome.result, SHARE_GONE);
	assert_int_equal(replica_look(&all->b, "never").result, SHARE_NONE);
	assert_int_equal(replica_delete(&all->b, &record).result, SHARE_NONE);
}

static void
test_a_home_that_did_not_hear_of_a_deletion_is_told_when_it_tells(void **state)
{
	struct replicas *all = *state;
	struct sandbox_record record = replica_make(&all->a, "s");

	changes_free(all->a.changes);
	all->a.changes = NULL;
	assert_int_equal(replica_delete(&all->b, &record).result, SHARE_DONE);
	replica_set_status(&all->a, "s", SANDBOX_READY);
	rig_until_count(all->base, &all->a.unwanted, 1);
}

static void
test_an_unknown_id_is_looked_up_and_does_not_stay_when_it_goes_meanwhile(void **state)
{
	struct replicas *all = *state;
	struct sandbox_record there;

	changes_free(all->b.changes);
	all->b.changes = NULL; /* a process that hears of nothing */
	replica_make(&all->a, "s");
	assert_int_equal(replica_look(&all->b, "s").result, SHARE_THERE);
	assert_true(replica_find(&all->b, "s", &there));
	replica_make(&all->a, "flash");
	all->b.finish_on_made = true;
	assert_int_equal(replica_look(&all->b, "flash").result, SHARE_GONE);
	assert_false(replica_find(&all->b, "flash", &there));
}

/* Others may be at work in it by then: it neither goes nor ends, until Redis says so. */
static void
test_what_was_looked_up_stays_when_redis_goes_meanwhile(void **state)
{
	struct replicas *all = *state;
	struct sandbox_record record, there;
	redisContext *own;

	changes_free(all->b.changes);
	all->b.changes = NULL; /* a process that hears of nothing */
	record = replica_make(&all->a, "s");
	all->b.lose_on_made = true;
	assert_true(replica_look(&all->b, "s").failed);
	assert_true(replica_find(&all->b, "s", &there));
	assert_int_equal(all->b.news[MIRROR_GONE], 0);
	rig_server_restart(&all->server);
	own = redis_server_connect(&all->server);
	freeReplyObject(redisCommand(own, "MSET t:gone:t:s ttl t:ended:%s ttl", record.uid));
	redisFree(own);
	replica_until_gone(&all->b, "s");
	assert_int_equal(all->b.news[MIRROR_GONE], 1);
}

static void
test_a_flush_loses_no_sandbox(void **state)
{
	struct replicas *all = *state;
	struct sandbox_record record = replica_make(&all->a, "s"), there;
	uint64_t compared;

	replica_set_status(&all->a, "s", SANDBOX_READY);
	replica_until_status(&all->b, "s", SANDBOX_READY);
	compared = sandbox_feed_compared(all->b.feed);
	say(all, "FLUSHALL");
	while (sandbox_feed_compared(all->b.feed) == compared || !sandbox_teller_is_done(all->a.teller))
		event_base_loop(all->base, EVLOOP_ONCE);
	assert_true(replica_find(&all->b, "s", &there));
	assert_int_equal(all->b.news[MIRROR_GONE], 0);
	/* And it is whole again in Redis. */
	changes_free(all->b.changes);
	all->b.changes = NULL;
	assert_true(sandbox_mirror_forget(
		sandbox_share_mirror(all->b.share), "s", record.uid, &(struct mirror_place){ 0 }));
	while (replica_look(&all->b, "s").result != SHARE_THERE)
		event_base_loop(all->base, EVLOOP_ONCE);
	assert_true(replica_find(&all->b, "s", &there));
	assert_int_equal(there.status, SANDBOX_READY);
	assert_string_equal(there.agent_token, record.agent_token);
}

static void
test_what_went_unheard_is_found_by_comparing(void **state)
{
	struct replicas *all = *state;
	struct sandbox_record record = replica_make(&all->a, "gone");
	char line[128];

	replica_until_status(&all->b, "gone", SANDBOX_PENDING);
	/* Finished as by a server whose words in the stream are lost. */
	say(all, "DEL t:sandbox:gone");
	snprintf(line, sizeof line, "SREM t:sandboxes %s", record.id);
	say(all, line);
	say(all, "XTRIM t:changes MAXLEN 0");
	sandbox_feed_compare(all->b.feed);
	replica_until_gone(&all->b, "gone");
	replica_make(&all->a, "new");
	replica_until_status(&all->b, "new", SANDBOX_PENDING);
}

static void
test_what_is_not_at_its_home_ends_for_the_others(void **state)
{
	struct replicas *all = *state;
	struct sandbox_record record = replica_make(&all->a, "s");
	uint64_t compared;
	uint32_t slot;

	replica_until_status(&all->b, "s", SANDBOX_PENDING);
	assert_true(sandbox_table_find(all->a.table, "s", &record, &slot));
	assert_true(sandbox_table_remove(all->a.table, slot, record.uid));
	compared = sandbox_feed_compared(all->a.feed);
	sandbox_feed_compare(all->a.feed);
	while (sandbox_feed_compared(all->a.feed) == compared)
		event_base_loop(all->base, EVLOOP_ONCE);
	replica_until_status(&all->b, "s", SANDBOX_PENDING); /* it may just be on its way into the table */
	say(all, "HSET t:sandbox:s created_ms 1000");
	sandbox_feed_compare(all->a.feed);
	replica_until_gone(&all->b, "s");
}

static int
set_activity(struct sandbox_record *record, void *arg, struct err *err)
{
	(void)err;
	record->activity_ms = record->heartbeat_ms = *(int64_t *)arg;
	return 0;
}

static void
test_uses_anywhere_keep_it_alive(void **state)
{
	struct replicas *all = *state;
	struct sandbox_record record = replica_make(&all->a, "s"), there;
	int64_t later_ms = record.created_ms + 60000;
	struct redis_stats before, after;
	struct outcome outcome = { 0 };
	uint32_t slot;
	struct err err;

	replica_set_status(&all->a, "s", SANDBOX_READY);
	replica_until_status(&all->b, "s", SANDBOX_READY);
	assert_true(sandbox_table_find(all->b.table, "s", &there, &slot));
	assert_int_equal(sandbox_table_change(all->b.table, slot, record.uid, set_activity, &later_ms, &err), 0);
	do {
		sandbox_teller_tick(all->b.teller);
		event_base_loop(all->base, EVLOOP_ONCE);
		assert_true(replica_find(&all->a, "s", &there));
	} while (llabs(there.heartbeat_ms - later_ms) > 2000);
	/* Who has only heard of it does not tell it again. */
	redis_stats(all->a.redis, &before);
	sandbox_teller_tick(all->a.teller);
	redis_stats(all->a.redis, &after);
	assert_int_equal(after.commands, before.commands);
	assert_int_equal(sandbox_share_delete(all->a.share, &record, "idle", true,
				 (struct share_to){ .fn = outcome_set, .arg = &outcome }, &err),
		0);
	outcome_await(all, &outcome);
	assert_int_equal(outcome.result, SHARE_USED);
	assert_int_equal(all->a.news[MIRROR_UNWANTED], 0);
}

static void
test_without_redis_nothing_hangs_and_afterwards_all_is_told(void **state)
{
	struct replicas *all = *state;
	struct sandbox_record record = replica_make(&all->a, "s"), there;
	struct outcome outcome = { 0 };
	struct err err;

	replica_until_status(&all->b, "s", SANDBOX_PENDING);
	rig_server_kill(&all->server);
	while (redis_is_up(all->a.redis) || redis_is_up(all->b.redis))
		event_base_loop(all->base, EVLOOP_ONCE);
	assert_int_equal(sandbox_share_look(all->b.share, "t", "x",
				 (struct share_to){ .fn = outcome_set, .arg = &outcome }, &err),
		-1);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
	assert_int_equal(outcome.ended, 0);
	replica_set_status(&all->a, "s", SANDBOX_READY);
	rig_server_restart(&all->server);
	replica_until_status(&all->b, "s", SANDBOX_READY);
	assert_true(replica_find(&all->b, "s", &there));
	assert_string_equal(there.uid, record.uid);
	assert_int_equal(all->b.news[MIRROR_GONE], 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_what_one_makes_the_other_has, replicas_start, replicas_stop),
		cmocka_unit_test_setup_teardown(test_an_id_is_one_sandbox, replicas_start, replicas_stop),
		cmocka_unit_test_setup_teardown(
			test_a_patch_is_heard_by_the_home_and_keeps_what_it_told, replicas_start, replicas_stop),
		cmocka_unit_test_setup_teardown(
			test_the_clock_of_another_redis_holds_no_news_back, replicas_start, replicas_stop),
		cmocka_unit_test_setup_teardown(
			test_a_deletion_goes_by_way_of_the_home, replicas_start, replicas_stop),
		cmocka_unit_test_setup_teardown(test_a_home_that_did_not_hear_of_a_deletion_is_told_when_it_tells,
			replicas_start, replicas_stop),
		cmocka_unit_test_setup_teardown(
			test_an_unknown_id_is_looked_up_and_does_not_stay_when_it_goes_meanwhile, replicas_start,
			replicas_stop),
		cmocka_unit_test_setup_teardown(
			test_what_was_looked_up_stays_when_redis_goes_meanwhile, replicas_start, replicas_stop),
		cmocka_unit_test_setup_teardown(test_a_flush_loses_no_sandbox, replicas_start, replicas_stop),
		cmocka_unit_test_setup_teardown(
			test_what_went_unheard_is_found_by_comparing, replicas_start, replicas_stop),
		cmocka_unit_test_setup_teardown(
			test_what_is_not_at_its_home_ends_for_the_others, replicas_start, replicas_stop),
		cmocka_unit_test_setup_teardown(test_uses_anywhere_keep_it_alive, replicas_start, replicas_stop),
		cmocka_unit_test_setup_teardown(
			test_without_redis_nothing_hangs_and_afterwards_all_is_told, replicas_start, replicas_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
