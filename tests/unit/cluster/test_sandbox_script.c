/* test_sandbox_script.c - what replicas share of a sandbox, in a real Redis: one winner, no update lost, nothing back from the dead. */
/* SPDX-License-Identifier: MIT */
#include "cluster/sandbox_script.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"
#include "cluster/sandbox_fields.h"
#include "cluster/shared_clock.h"
#include "redis/answer.h"
#include "redis/answer_impl.h"
#include "redis_server.h"

#include <hiredis/hiredis.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct rig_server server;
static redisContext *redis;
static struct shared_clock shared;
static redisReply *reply; /* of the last call */
static struct redis_answer answer;

static const struct sandbox_scripts here = {
	.prefix = "t:",
	.replica = "11111111-1111-4111-8111-111111111111",
	.host = "99999999-9999-4999-8999-999999999999",
	.record_ttl_ms = 60000,
	.tombstone_ttl_ms = 50000,
	.changes = 1000,
};

static int
start(void **state)
{
	(void)state;
	redis_server_start(&server);
	redis = redis_server_connect(&server);
	shared.ahead_ms = (int64_t)(clock_wall() * 1000) - clock_boot_ms();
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

static void
drop_answer(void)
{
	redis_answer_clear(&answer);
	freeReplyObject(reply);
	reply = NULL;
}

static int
flush(void **state)
{
	(void)state;
	if (reply != NULL)
		drop_answer();
	freeReplyObject(redisCommand(redis, "FLUSHALL"));
	return 0;
}

/* The word it answers with. */
static const char *
run(const struct redis_script *script, const struct redis_args *args)
{
	const char *argv[REDIS_ARGS_MAX + 3];
	size_t lens[REDIS_ARGS_MAX + 3];
	char keys[4];

	if (reply != NULL)
		drop_answer();
	snprintf(keys, sizeof keys, "%u", script->keys);
	argv[0] = "EVAL", argv[1] = script->text, argv[2] = keys;
	for (int i = 0; i < 3; i++)
		lens[i] = strlen(argv[i]);
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

static int64_t
number_at(size_t index)
{
	int64_t number = -1;

	assert_true(redis_answer_number(redis_answer_item(&answer, index), &number));
	return number;
}

static struct ip_dest
dest_of(const char *text)
{
	struct ip_dest dest = { 0 };
	struct err err;

	assert_int_equal(ip_dest_parse(text, &dest, &err), 0);
	return dest;
}

static struct sandbox_record
new_record(const char *id)
{
	struct sandbox_record record = {
		.tenant = "t",
		.image = "debian:12",
		.labels = "{\"a\":\"1\"}",
		.status = SANDBOX_PENDING,
		.cpu_milli = 1500,
		.memory_bytes = 1LL << 40,
		.ttl_ms = SANDBOX_TIME_DEFAULT,
		.idle_timeout_ms = 0,
		.created_at = 1764477963.25,
		.created_ms = 5000,
		.egress = { .limited = true,
			.count = EGRESS_MAX,
			.allow = { dest_of("10.0.0.0/8"), dest_of("1.2.3.4:443"), dest_of("2001:db8::/32") } },
	};

	for (size_t i = 3; i < EGRESS_MAX; i++) /* the longest text */
		record.egress.allow[i] = dest_of("[ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe/127]:65535");
	snprintf(record.id, sizeof record.id, "%s", id);
	id_uuid4(record.uid);
	id_token(record.agent_token);
	record.ttl_from_ms = record.activity_ms = record.status_ms = record.created_ms;
	return record;
}

static const char *
create(const struct sandbox_record *record)
{
	struct redis_args args;

	sandbox_script_create_args(&args, &here, record, NULL, &shared);
	return run(&sandbox_script_create, &args);
}

static const char *
tell_after(const struct sandbox_record *record, uint64_t told)
{
	struct redis_args args;

	sandbox_script_tell_args(&args, &here, record, told, &shared);
	return run(&sandbox_script_tell, &args);
}

static const char *
tell(const struct sandbox_record *record)
{
	return tell_after(record, 0);
}

static const char *
patch(const struct sandbox_record *record, const char *labels, int64_t ttl_ms)
{
	struct sandbox_patch_fields fields = { .labels = labels, .ttl_ms = ttl_ms, .idle_timeout_ms = -1 };
	struct redis_args args;

	sandbox_script_patch_args(&args, &here, record, &fields, &shared);
	return run(&sandbox_script_patch, &args);
}

static const char *
delete_it(const struct sandbox_record *record, const struct shared_clock *judged)
{
	struct redis_args args;

	sandbox_script_delete_args(&args, &here, record, "delete", judged);
	return run(&sandbox_script_delete, &args);
}

static const char *
finish(const struct sandbox_record *record)
{
	struct redis_args args;

	sandbox_script_finish_args(&args, &here, record);
	return run(&sandbox_script_finish, &args);
}

static const char *
sign(const struct sandbox_record *record)
{
	struct redis_args args;

	sandbox_script_sign_args(&args, &here, record, &shared);
	return run(&sandbox_script_sign, &args);
}

static const char *
look(const char *id)
{
	struct redis_args args;

	sandbox_script_look_args(&args, &here, "t", id, here.replica);
	return run(&sandbox_script_look, &args);
}

/* What another replica reads. */
static struct shared_sandbox
read_back(const char *id)
{
	struct shared_sandbox sandbox;
	struct err err;

	assert_string_equal(look(id), "there");
	if (sandbox_fields_read(redis_answer_item(&answer, 2), &shared, &sandbox, &err) != 0)
		fail_msg("%s", err.msg);
	return sandbox;
}

static long long
integer(const char *command)
{
	redisReply *r = redisCommand(redis, command);
	long long n;

	assert_non_null(r);
	assert_int_equal(r->type, REDIS_REPLY_INTEGER);
	n = r->integer;
	freeReplyObject(r);
	return n;
}

static void
test_a_record_comes_back_as_it_went(void **state)
{
	struct sandbox_record record = new_record("a");
	struct shared_sandbox back;

	(void)state;
	assert_string_equal(create(&record), "made");
	record.version = (uint64_t)number_at(2);
	back = read_back("a");
	assert_string_equal(back.host, here.host);
	assert_string_equal(back.record.home, here.replica);
	snprintf(record.home, sizeof record.home, "%s", here.replica);
	assert_int_equal(back.record.egress.count, EGRESS_MAX);
	assert_memory_equal(&back.record, &record, sizeof record);
}

static void
test_a_digest_changes_with_what_the_home_says_and_not_with_signs_of_life(void **state)
{
	struct sandbox_record record = new_record("a");
	uint64_t digest = sandbox_fields_digest(&record);

	(void)state;
	record.activity_ms++;
	record.labels[2] = 'b';
	assert_true(sandbox_fields_digest(&record) == digest);
	record.ready = true;
	assert_true(sandbox_fields_digest(&record) != digest);
	record.ready = false;
	record.status = SANDBOX_FAILED;
	assert_true(sandbox_fields_digest(&record) != digest);
}

static void
test_one_create_of_an_id_wins(void **state)
{
	struct sandbox_record first = new_record("a"), second = new_record("a");
	long long changes;

	(void)state;
	assert_string_equal(create(&first), "made");
	changes = integer("XLEN t:changes");
	assert_string_equal(create(&second), "there");
	assert_string_equal(redis_answer_field(redis_answer_item(&answer, 2), "uid")->text, first.uid);
	assert_string_equal(create(&first), "made"); /* asked again, since the answer was lost */
	assert_int_equal(integer("XLEN t:changes"), changes);
	assert_int_equal(integer("SCARD t:sandboxes"), 1);
	assert_true(integer("PTTL t:sandbox:a") > 0);
}

static void
test_its_home_and_a_patch_do_not_undo_each_other(void **state)
{
	struct sandbox_record record = new_record("a");
	struct shared_sandbox back;
	int64_t version;

	(void)state;
	assert_string_equal(create(&record), "made");
	record.version = (uint64_t)number_at(2);
	assert_string_equal(patch(&record, "{\"b\":\"2\"}", 7000), "done");
	record.status = SANDBOX_READY; /* its home has not heard of the patch when it tells */
	record.ready = true;
	assert_string_equal(tell(&record), "told");
	version = number_at(2);
	back = read_back("a");
	assert_int_equal(back.record.status, SANDBOX_READY);
	assert_string_equal(back.record.labels, "{\"b\":\"2\"}");
	assert_int_equal(back.record.ttl_ms, 7000);
	assert_true(back.record.ttl_from_ms > record.ttl_from_ms);
	assert_int_equal(back.record.version, version);
	assert_true(version > (int64_t)record.version);
	assert_string_equal(tell(&record), "same");
}

static void
test_what_a_flush_took_is_told_again_whole(void **state)
{
	struct sandbox_record record = new_record("a");
	struct shared_sandbox back;

	(void)state;
	assert_string_equal(create(&record), "made");
	record.version = (uint64_t)number_at(2);
	freeReplyObject(redisCommand(redis, "FLUSHALL"));
	assert_string_equal(tell(&record), "told");
	assert_true(number_at(2) > (int64_t)record.version);
	back = read_back("a");
	assert_string_equal(back.record.labels, record.labels);
	assert_string_equal(back.record.agent_token, record.agent_token);
	assert_int_equal(integer("SISMEMBER t:sandboxes a"), 1);
}

static void
test_an_older_copy_of_redis_gets_what_the_home_knows(void **state)
{
	struct sandbox_record record = new_record("a");

	(void)state;
	assert_string_equal(create(&record), "made");
	assert_string_equal(patch(&record, "{\"b\":\"2\"}", -1), "done");
	record.version = (uint64_t)read_back("a").record.version;
	snprintf(record.labels, sizeof record.labels, "{\"b\":\"2\"}");
	freeReplyObject(redisCommand(redis, "HSET t:sandbox:a version 1 labels {}"));
	assert_string_equal(tell(&record), "told");
	assert_string_equal(read_back("a").record.labels, "{\"b\":\"2\"}");
}

static void
test_what_was_deleted_does_not_come_back(void **state)
{
	struct sandbox_record record = new_record("a"), next = new_record("a");

	(void)state;
	assert_string_equal(create(&record), "made");
	assert_string_equal(delete_it(&record, NULL), "done");
	assert_string_equal(delete_it(&record, NULL), "done");
	assert_int_equal(read_back("a").record.status, SANDBOX_DELETING);
	assert_string_equal(tell(&record), "gone");
	assert_string_equal(patch(&record, "{}", -1), "none");
	assert_string_equal(create(&next), "there"); /* not before its home has removed it */
	assert_string_equal(finish(&record), "done");
	assert_string_equal(look("a"), "gone");
	assert_string_equal(redis_answer_item(&answer, 2)->text, "delete");
	assert_string_equal(tell(&record), "gone");
	assert_string_equal(create(&record), "gone");
	assert_int_equal(integer("EXISTS t:sandbox:a"), 0);
	assert_int_equal(integer("SCARD t:sandboxes"), 0);
	assert_string_equal(create(&next), "made");
	assert_string_equal(finish(&record), "done"); /* late, of the life before */
	assert_string_equal(read_back("a").record.uid, next.uid);
}

/* Its home was away for longer than the marks stay. */
static void
test_what_is_being_deleted_does_not_come_back_when_its_marks_are_gone(void **state)
{
	struct sandbox_record record = new_record("a");

	(void)state;
	assert_string_equal(create(&record), "made");
	assert_string_equal(delete_it(&record, NULL), "done");
	assert_int_equal(integer("DEL t:gone:t:a"), 1);
	freeReplyObject(redisCommand(redis, "DEL t:ended:%s", record.uid));
	record.ready = true;
	assert_string_equal(tell(&record), "gone");
	assert_int_equal(read_back("a").record.status, SANDBOX_DELETING);
}

static void
test_a_creation_that_is_taken_back_has_never_been(void **state)
{
	struct sandbox_record record = new_record("a"), next = new_record("a");

	(void)state;
	assert_string_equal(create(&record), "made");
	assert_string_equal(finish(&record), "done");
	assert_string_equal(look("a"), "none");
	assert_string_equal(create(&record), "gone"); /* late */
	assert_string_equal(create(&next), "made");
}

static void
test_the_index_forgets_what_ran_out_of_time(void **state)
{
	struct sandbox_record record = new_record("a");

	(void)state;
	assert_string_equal(create(&record), "made");
	assert_int_equal(integer("SCARD t:sandboxes"), 1);
	assert_int_equal(integer("DEL t:sandbox:a"), 1);
	assert_string_equal(look("a"), "none");
	assert_int_equal(integer("SCARD t:sandboxes"), 0);
}

static void
test_a_deletion_that_redis_has_not_heard_of_is_finished_all_the_same(void **state)
{
	struct sandbox_record record = new_record("a");

	(void)state;
	snprintf(record.reap_rule, sizeof record.reap_rule, "ttl");
	assert_string_equal(finish(&record), "done");
	assert_int_equal(integer("XLEN t:changes"), 1); /* others may still have it */
	assert_string_equal(finish(&record), "done");
	assert_int_equal(integer("XLEN t:changes"), 1);
	assert_string_equal(tell(&record), "gone");
	assert_string_equal(look("a"), "gone");
	assert_string_equal(redis_answer_item(&answer, 2)->text, "ttl");
	assert_string_equal(look("b"), "none");
}

static void
test_what_is_nowhere_is_gone_if_its_home_has_told_everything(void **state)
{
	(void)state;
	assert_string_equal(look("a"), "none");
	assert_int_equal(number_at(2), 0);
	freeReplyObject(redisCommand(redis, "SET t:epoch e1"));
	freeReplyObject(redisCommand(redis, "SET t:told:%s e0", here.replica));
	assert_string_equal(look("a"), "none");
	assert_int_equal(number_at(2), 0);
	freeReplyObject(redisCommand(redis, "SET t:told:%s e1", here.replica));
	assert_string_equal(look("a"), "none");
	assert_int_equal(number_at(2), 1);
}

static void
test_a_rule_does_not_take_what_was_used_elsewhere(void **state)
{
	struct sandbox_record record = new_record("a"), used;

	(void)state;
	assert_string_equal(create(&record), "made");
	used = record;
	used.activity_ms += 5000;
	assert_string_equal(sign(&used), "done");
	assert_string_equal(delete_it(&record, &shared), "used");
	assert_int_equal(shared_clock_to_boot(&shared, number_at(3)), used.activity_ms);
	assert_string_equal(sign(&record), "done"); /* late: takes nothing back */
	assert_int_equal(read_back("a").record.activity_ms, used.activity_ms);
	assert_string_equal(delete_it(&used, &shared), "done");
}

static void
test_unknown_fields_stay_and_unknown_words_are_not_guessed(void **state)
{
	struct sandbox_record record = new_record("a");
	struct shared_sandbox back;
	struct err err;

	(void)state;
	assert_string_equal(create(&record), "made");
	freeReplyObject(redisCommand(redis, "HSET t:sandbox:a colour green"));
	record.ready = true;
	assert_string_equal(tell(&record), "told");
	assert_string_equal(patch(&record, "{}", -1), "done");
	assert_string_equal(redis_answer_field(redis_answer_item(&answer, 2), "colour")->text, "green");
	assert_string_equal(read_back("a").record.uid, record.uid);
	freeReplyObject(redisCommand(redis, "HSET t:sandbox:a status frozen"));
	assert_string_equal(look("a"), "there");
	assert_int_equal(sandbox_fields_read(redis_answer_item(&answer, 2), &shared, &back, &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
	freeReplyObject(redisCommand(redis, "HDEL t:sandbox:a version"));
	freeReplyObject(redisCommand(redis, "HSET t:sandbox:a status ready"));
	assert_string_equal(look("a"), "there");
	assert_int_equal(sandbox_fields_read(redis_answer_item(&answer, 2), &shared, &back, &err), -1);
}

static void
test_versions_grow_past_a_clock_that_was_set_back(void **state)
{
	struct sandbox_record record = new_record("a");
	const int64_t ahead = 4102444800000000; /* of Redis' clock */
	struct shared_sandbox back;

	(void)state;
	assert_string_equal(create(&record), "made");
	freeReplyObject(redisCommand(redis, "HSET t:sandbox:a version %lld", (long long)ahead));
	assert_string_equal(patch(&record, "{}", -1), "done");
	back = read_back("a");
	assert_int_equal(back.record.version, ahead + 1);
}

/* Redis is an older copy, on a machine whose clock is behind, and its home has not told it anew yet. */
static void
test_a_patch_of_an_older_copy_undoes_nothing_and_is_newer_than_what_is_known(void **state)
{
	struct sandbox_record record = new_record("a");
	struct shared_sandbox back;

	(void)state;
	assert_string_equal(create(&record), "made");
	record.version = 4102444800000000; /* of a change that the copy lacks */
	record.idle_timeout_ms = 9000;
	assert_string_equal(patch(&record, "{\"b\":\"2\"}", -1), "done");
	back = read_back("a");
	assert_int_equal(back.record.version, record.version + 1);
	assert_int_equal(back.record.idle_timeout_ms, 9000);
	assert_string_equal(back.record.labels, "{\"b\":\"2\"}");
	assert_int_equal(back.record.ttl_from_ms, record.ttl_from_ms);
	/* To this one nothing is known that it lacks. */
	record.version = 1;
	record.idle_timeout_ms = 8000;
	assert_string_equal(patch(&record, "{}", 7000), "done");
	back = read_back("a");
	assert_int_equal(back.record.idle_timeout_ms, 9000);
	assert_int_equal(back.record.version, 4102444800000002);
	assert_true(back.record.ttl_from_ms > record.ttl_from_ms);
}

/* A patch that the home has not heard of stays. */
static void
test_a_home_goes_on_above_what_it_has_told(void **state)
{
	struct sandbox_record record = new_record("a");
	struct shared_sandbox back;

	(void)state;
	assert_string_equal(create(&record), "made");
	record.version = (uint64_t)number_at(2);
	assert_string_equal(patch(&record, "{\"b\":\"2\"}", -1), "done");
	record.ready = true;
	assert_string_equal(tell_after(&record, 4102444800000000), "told");
	back = read_back("a");
	assert_int_equal(back.record.version, 4102444800000001);
	assert_string_equal(back.record.labels, "{\"b\":\"2\"}");
}

#define OTHER "22222222-2222-4222-8222-222222222222"

static const char *
adopt(const struct sandbox_record *record, const char *replica, const char *home)
{
	struct sandbox_scripts scripts = here;
	struct sandbox_record copy = *record;
	struct redis_args args;

	scripts.replica = replica;
	snprintf(copy.home, sizeof copy.home, "%s", home);
	sandbox_script_adopt_args(&args, &scripts, &copy, 3000, &shared);
	return run(&sandbox_script_adopt, &args);
}

static void
beat(const char *replica, int64_t age_ms)
{
	freeReplyObject(redisCommand(
		redis, "ZADD t:replicas %lld %s", (long long)(clock_wall() * 1000) - (long long)age_ms, replica));
}

static void
test_the_first_adopts_what_a_silent_home_had(void **state)
{
	struct sandbox_record record = new_record("a");

	(void)state;
	assert_string_equal(create(&record), "made");
	beat(here.replica, 0);
	assert_string_equal(adopt(&record, OTHER, here.replica), "moved");
	beat(here.replica, 60000);
	record.version = 4102444800000000; /* of a change that this Redis lacks */
	assert_string_equal(adopt(&record, OTHER, here.replica), "done");
	assert_int_equal(read_back("a").record.version, 4102444800000001);
	assert_string_equal(adopt(&record, "33333333-3333-4333-8333-333333333333", here.replica), "moved");
	assert_string_equal(read_back("a").record.home, OTHER);
	assert_string_equal(read_back("a").record.uid, record.uid);
	assert_string_equal(tell(&record), "moved");
}

static void
test_what_a_flush_took_with_its_home_is_adopted_unless_it_was_deleted(void **state)
{
	struct sandbox_record record = new_record("a");

	(void)state;
	assert_string_equal(adopt(&record, OTHER, here.replica), "done");
	assert_string_equal(read_back("a").record.labels, record.labels);
	assert_string_equal(finish(&record), "done");
	assert_string_equal(adopt(&record, OTHER, here.replica), "gone");
}

static const char *
orphan(const struct sandbox_record *record)
{
	struct redis_args args;

	sandbox_script_orphan_args(&args, &here, record->id, record->uid, 3000);
	return run(&sandbox_script_orphan, &args);
}

static void
test_an_orphan_is_one_when_every_living_server_has_told_everything(void **state)
{
	struct sandbox_record record = new_record("a"), other = new_record("a");

	(void)state;
	assert_string_equal(orphan(&record), "kept");
	freeReplyObject(redisCommand(redis, "SET t:epoch e"));
	assert_string_equal(orphan(&record), "kept");
	beat(here.replica, 0);
	beat(OTHER, 0);
	freeReplyObject(redisCommand(redis, "SET t:told:%s e", here.replica));
	assert_string_equal(orphan(&record), "kept");
	freeReplyObject(redisCommand(redis, "SET t:told:" OTHER " e"));
	assert_string_equal(orphan(&record), "none");
	assert_string_equal(create(&record), "made");
	assert_string_equal(orphan(&record), "kept");
	assert_string_equal(orphan(&other), "none");
	beat(OTHER, 60000);
	freeReplyObject(redisCommand(redis, "SET t:told:" OTHER " before"));
	assert_string_equal(orphan(&other), "none");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_a_record_comes_back_as_it_went, flush),
		cmocka_unit_test_setup(
			test_a_digest_changes_with_what_the_home_says_and_not_with_signs_of_life, flush),
		cmocka_unit_test_setup(test_one_create_of_an_id_wins, flush),
		cmocka_unit_test_setup(test_its_home_and_a_patch_do_not_undo_each_other, flush),
		cmocka_unit_test_setup(test_what_a_flush_took_is_told_again_whole, flush),
		cmocka_unit_test_setup(test_an_older_copy_of_redis_gets_what_the_home_knows, flush),
		cmocka_unit_test_setup(test_what_was_deleted_does_not_come_back, flush),
		cmocka_unit_test_setup(
			test_what_is_being_deleted_does_not_come_back_when_its_marks_are_gone, flush),
		cmocka_unit_test_setup(test_a_creation_that_is_taken_back_has_never_been, flush),
		cmocka_unit_test_setup(test_the_index_forgets_what_ran_out_of_time, flush),
		cmocka_unit_test_setup(test_a_deletion_that_redis_has_not_heard_of_is_finished_all_the_same, flush),
		cmocka_unit_test_setup(test_what_is_nowhere_is_gone_if_its_home_has_told_everything, flush),
		cmocka_unit_test_setup(test_a_rule_does_not_take_what_was_used_elsewhere, flush),
		cmocka_unit_test_setup(test_unknown_fields_stay_and_unknown_words_are_not_guessed, flush),
		cmocka_unit_test_setup(test_the_first_adopts_what_a_silent_home_had, flush),
		cmocka_unit_test_setup(
			test_what_a_flush_took_with_its_home_is_adopted_unless_it_was_deleted, flush),
		cmocka_unit_test_setup(test_an_orphan_is_one_when_every_living_server_has_told_everything, flush),
		cmocka_unit_test_setup_teardown(test_a_home_goes_on_above_what_it_has_told, flush, flush),
		cmocka_unit_test_setup_teardown(test_versions_grow_past_a_clock_that_was_set_back, flush, flush),
		cmocka_unit_test_setup_teardown(
			test_a_patch_of_an_older_copy_undoes_nothing_and_is_newer_than_what_is_known, flush, flush),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
