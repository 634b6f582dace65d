/* test_sandbox.c - the life of a sandbox: made once, seen by its tenant, removed whole. */
/* SPDX-License-Identifier: MIT */
#include "fixture.h"
#include "base/err.h"
#include "base/json.h"
#include "ipc/shm.h"

#include <json-c/json.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define IMAGE "\"image\":\"default\""

static uint32_t
count_records(struct fixture *f)
{
	return sandbox_table_count(shm_sandboxes(f->shm));
}

static bool
no_records(struct fixture *f)
{
	return count_records(f) == 0;
}

static void
test_create_answers_before_it_is_ready(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record, again;
	bool existing;
	struct err err;

	f->hold_creates = true;
	assert_int_equal(create_sandbox(f, 0, "{" IMAGE ",\"sandbox_id\":\"a\",\"env\":{\"A\":\"b\"}}", &record,
				 &existing, &err),
		0);
	assert_false(existing);
	assert_int_equal(record.status, SANDBOX_PENDING);
	assert_string_equal(f->created_env, "{\"A\":\"b\"}");
	assert_int_equal(sandbox_get(f->services[1], "t", "a", &again, &err), 0);
	assert_string_equal(again.message, "unpacking the image");
	assert_int_equal(service_busy(f->services[0]), 1);
	fixture_release_creates(f);
}

static void
test_unschedulable_is_still_being_made(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record, again;
	struct outcome end = { 0 };
	struct sandbox_wait *wait;
	bool existing;
	struct err err;

	f->hold_creates = true;
	f->unschedulable = true;
	assert_int_equal(create_sandbox(f, 0, "{" IMAGE ",\"sandbox_id\":\"a\"}", &record, &existing, &err), 0);
	assert_int_equal(sandbox_get(f->services[1], "t", "a", &again, &err), 0);
	assert_int_equal(again.status, SANDBOX_UNSCHEDULABLE);
	assert_string_equal(again.message, "unpacking the image");
	assert_int_equal(sandbox_wait_start(f->services[1], "t", "a", 60000, on_sandbox, &end, &wait, &err), 0);
	fixture_release_creates(f);
	run_until(f, &end.done);
	assert_int_equal(sandbox_get(f->services[1], "t", "a", &again, &err), 0);
	assert_int_equal(again.status, SANDBOX_READY);
	assert_string_equal(again.message, "");
}

static void
test_ready_is_told_to_waiters_of_every_process(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct outcome here = { 0 }, there = { 0 };
	struct sandbox_wait *wait;
	bool existing;
	struct err err;

	assert_int_equal(create_sandbox(f, 0, "{" IMAGE ",\"sandbox_id\":\"a\"}", &record, &existing, &err), 0);
	assert_int_equal(sandbox_wait_start(f->services[0], "t", "a", 4000, on_sandbox, &here, &wait, &err), 0);
	assert_int_equal(sandbox_wait_start(f->services[1], "t", "a", 4000, on_sandbox, &there, &wait, &err), 0);
	run_until(f, &here.done);
	run_until(f, &there.done);
	assert_string_equal(here.status, "ready");
	assert_string_equal(there.status, "ready");
	assert_int_equal(service_busy(f->services[0]), 0);
	/* And of one that is ready already, at once. */
	there = (struct outcome){ 0 };
	assert_int_equal(sandbox_wait_start(f->services[1], "t", "a", 0, on_sandbox, &there, &wait, &err), 0);
	run_until(f, &there.done);
	assert_string_equal(there.status, "ready");
}

static void
test_wait_runs_out_of_time(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct outcome outcome = { 0 };
	struct sandbox_wait *wait;
	bool existing;
	struct err err;

	f->hold_creates = true;
	assert_int_equal(create_sandbox(f, 0, "{" IMAGE ",\"sandbox_id\":\"a\"}", &record, &existing, &err), 0);
	assert_int_equal(sandbox_wait_start(f->services[0], "t", "a", 10, on_sandbox, &outcome, &wait, &err), 0);
	run_until(f, &outcome.done);
	assert_int_equal(outcome.code, ERR_TIMEOUT);
	assert_int_equal(sandbox_wait_start(f->services[0], "t", "b", 10, on_sandbox, &outcome, &wait, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
}

static void
test_same_create_again_is_the_same_sandbox(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record first, again;
	bool existing;
	struct err err;

	assert_int_equal(
		create_sandbox(f, 0, "{" IMAGE ",\"sandbox_id\":\"a\",\"labels\":{\"x\":\"1\",\"y\":\"2\"}}",
			&first, &existing, &err),
		0);
	assert_int_equal(
		create_sandbox(f, 1,
			"{\"labels\":{\"y\":\"2\",\"x\":\"1\"},\"cpu\":\"1000m\",\"sandbox_id\":\"a\"," IMAGE "}",
			&again, &existing, &err),
		0);
	assert_true(existing);
	assert_string_equal(first.uid, again.uid);
	assert_int_equal(
		create_sandbox(f, 1, "{" IMAGE ",\"sandbox_id\":\"a\",\"cpu\":\"2\"}", &again, &existing, &err),
		-1);
	assert_int_equal(err.code, ERR_EXISTS);
	assert_int_equal(
		create_sandbox(f, 1,
			"{" IMAGE
			",\"sandbox_id\":\"a\",\"labels\":{\"x\":\"1\",\"y\":\"2\"},\"egress\":{\"allow\":[]}}",
			&again, &existing, &err),
		-1);
	assert_int_equal(err.code, ERR_EXISTS);
	assert_int_equal(count_records(f), 1);
}

static void
test_what_can_never_fit_is_told_at_once(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	bool existing;
	struct err err;

	run_due(f); /* the host is known */
	assert_int_equal(create_sandbox(f, 0, "{" IMAGE ",\"memory\":\"17Gi\"}", &record, &existing, &err), -1);
	assert_int_equal(err.code, ERR_NO_CAPACITY);
	assert_int_equal(create_sandbox(f, 0, "{" IMAGE ",\"cpu\":\"8001m\"}", &record, &existing, &err), -1);
	assert_int_equal(err.code, ERR_NO_CAPACITY);
	assert_int_equal(create_sandbox(f, 0, "{\"image\":\"dir:/etc\"}", &record, &existing, &err), -1);
	assert_int_equal(err.code, ERR_DENIED);
	assert_int_equal(count_records(f), 0);
	assert_int_equal(f->creates, 0);
}

static void
test_networks_are_counted(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	bool existing;
	struct err err;

	run_due(f); /* the host is known */
	for (int i = 0; i < 2; i++)
		assert_int_equal(
			create_sandbox(f, 0, "{" IMAGE ",\"block_network\":true}", &record, &existing, &err), 0);
	for (int i = 0; i < 5; i++)
		assert_int_equal(
			create_sandbox(f, 0, "{" IMAGE ",\"egress\":{\"allow\":[]}}", &record, &existing, &err), 0);
	assert_int_equal(create_sandbox(f, 0, "{" IMAGE ",\"block_network\":false}", &record, &existing, &err), -1);
	assert_int_equal(err.code, ERR_NO_CAPACITY);
	assert_int_equal(create_sandbox(f, 0, "{" IMAGE ",\"block_network\":true}", &record, &existing, &err), 0);
}

static void
test_failure_says_why_and_leaves_nothing(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct outcome outcome = { 0 }, exec;
	struct sandbox_wait *wait;
	bool existing;
	struct err err;

	f->create_error = "image cannot be read: no such directory";
	assert_int_equal(create_sandbox(f, 0, "{" IMAGE ",\"sandbox_id\":\"a\"}", &record, &existing, &err), 0);
	assert_int_equal(sandbox_wait_start(f->services[1], "t", "a", 4000, on_sandbox, &outcome, &wait, &err), 0);
	run_until(f, &outcome.done);
	assert_int_equal(outcome.code, ERR_NONE);
	assert_string_equal(outcome.status, "failed");
	run_due(f);
	assert_int_equal(f->destroys, 1);
	assert_string_equal(f->destroyed_uid, record.uid);
	assert_int_equal(sandbox_get(f->services[1], "t", "a", &record, &err), 0);
	assert_string_equal(record.message, f->create_error);
	submit(f, 1, "a", "{\"command\":\"true\"}", &exec, NULL);
	assert_int_equal(exec.code, ERR_NOT_READY);
	assert_non_null(strstr(exec.message, "no such directory"));
}

static void
test_silent_agent_fails_the_sandbox_in_time(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct outcome outcome = { 0 };
	struct sandbox_wait *wait;
	bool existing;
	struct err err;

	fake_agent_stop(f);
	assert_int_equal(
		create_sandbox(f, 0, "{" IMAGE ",\"sandbox_id\":\"a\",\"timeout\":1}", &record, &existing, &err),
		0);
	assert_int_equal(sandbox_wait_start(f->services[0], "t", "a", 4000, on_sandbox, &outcome, &wait, &err), 0);
	run_until(f, &outcome.done);
	assert_string_equal(outcome.status, "failed");
	assert_int_equal(sandbox_get(f->services[0], "t", "a", &record, &err), 0);
	assert_non_null(strstr(record.message, "within its timeout of 1 s"));
}

static void
test_deleted_is_hidden_at_once_and_gone_in_the_end(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct outcome exec;
	bool existing;
	struct err err;

	make_sandbox(f, "a", &record);
	f->destroy_failures = 1;
	assert_int_equal(delete_sandbox(f, 1, "other", "a", &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_int_equal(delete_sandbox(f, 1, "t", "a", &err), 0);
	assert_int_equal(sandbox_get(f->services[0], "t", "a", &record, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_int_equal(sandbox_heartbeat(f->services[0], "t", "a", &err), -1);
	submit(f, 0, "a", "{\"command\":\"true\"}", &exec, NULL);
	assert_int_equal(exec.code, ERR_NOT_FOUND);
	/* Still there, so the id can't be had yet. */
	assert_int_equal(create_sandbox(f, 0, "{" IMAGE ",\"sandbox_id\":\"a\"}", &record, &existing, &err), -1);
	assert_int_equal(err.code, ERR_CONFLICT);
	run_until_call(f, no_records);
	assert_int_equal(f->destroys, 1);
	/* Once more is no error; what never was is. */
	assert_int_equal(delete_sandbox(f, 0, "t", "a", &err), 0);
	assert_int_equal(delete_sandbox(f, 0, "other", "a", &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_int_equal(delete_sandbox(f, 0, "t", "never", &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	make_sandbox(f, "a", &record);
}

static void
test_waiters_hear_of_a_deletion(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct outcome outcome = { 0 };
	struct sandbox_wait *wait;
	bool existing;
	struct err err;

	f->hold_creates = true;
	assert_int_equal(create_sandbox(f, 0, "{" IMAGE ",\"sandbox_id\":\"a\"}", &record, &existing, &err), 0);
	assert_int_equal(sandbox_wait_start(f->services[1], "t", "a", 4000, on_sandbox, &outcome, &wait, &err), 0);
	assert_int_equal(delete_sandbox(f, 0, "t", "a", &err), 0);
	run_until(f, &outcome.done);
	assert_int_equal(outcome.code, ERR_DELETED);
	run_until_call(f, no_records);
	/* What was made too late is removed again. */
	fixture_release_creates(f);
	run_due(f);
	assert_int_equal(f->destroys, 2);
	assert_int_equal(service_busy(f->services[0]), 0);
}

static bool
second_destroyed(struct fixture *f)
{
	return f->destroys >= 1;
}

static void
test_a_dead_makers_sandbox_is_made_by_another(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct outcome outcome = { 0 };
	struct sandbox_wait *wait;
	bool existing;
	uint32_t slot;
	struct err err;

	f->hold_creates = true;
	assert_int_equal(create_sandbox(f, 0, "{" IMAGE ",\"sandbox_id\":\"a\",\"env\":{\"K\":\"v\"}}", &record,
				 &existing, &err),
		0);
	fixture_kill(f, 0);
	f->hold_creates = false;
	f->created_env[0] = '\0';
	assert_true(sandbox_table_find(shm_sandboxes(f->shm), "a", &record, &slot));
	sandbox_resume(f->services[1], slot);
	assert_int_equal(sandbox_wait_start(f->services[1], "t", "a", 4000, on_sandbox, &outcome, &wait, &err), 0);
	run_until(f, &outcome.done);
	assert_string_equal(outcome.status, "ready");
	assert_string_equal(f->created_env, "{\"K\":\"v\"}");
}

static void
test_an_earlier_life_that_is_still_there_is_removed(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct outcome outcome = { 0 };
	struct sandbox_wait *wait;
	char other[ID_UUID_SIZE];
	bool existing;
	struct err err;

	id_uuid4(other);
	memcpy(f->other_uid, other, sizeof other);
	f->destroy_failures = 1;
	assert_int_equal(create_sandbox(f, 0, "{" IMAGE ",\"sandbox_id\":\"a\"}", &record, &existing, &err), 0);
	assert_int_equal(sandbox_wait_start(f->services[1], "t", "a", 20000, on_sandbox, &outcome, &wait, &err), 0);
	run_until(f, &outcome.done);
	assert_string_equal(outcome.status, "ready");
	assert_string_equal(f->destroyed_uid, other);
	assert_int_equal(f->destroys, 1);
	assert_int_equal(sandbox_get(f->services[1], "t", "a", &record, &err), 0);
}

static bool
asked_again(struct fixture *f)
{
	return f->creates >= 2;
}

static void
test_a_late_create_does_not_remove_its_successor(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record first, second;
	bool existing;
	uint32_t slot;
	struct err err;

	f->hold_creates = true;
	assert_int_equal(create_sandbox(f, 0, "{" IMAGE ",\"sandbox_id\":\"a\"}", &first, &existing, &err), 0);
	assert_true(sandbox_table_find(shm_sandboxes(f->shm), "a", &first, &slot));
	/* another process removes it and enters the next one; the maker is not told yet */
	assert_true(sandbox_table_remove(shm_sandboxes(f->shm), slot, first.uid));
	second = first;
	id_uuid4(second.uid);
	assert_int_equal(sandbox_table_insert(shm_sandboxes(f->shm), &second, &slot, &err), 0);
	memcpy(f->other_uid, second.uid, sizeof f->other_uid);
	fixture_release_creates(f);
	run_until_call(f, asked_again);
	assert_int_equal(f->destroying, 0);
	assert_string_equal(f->destroyed_uid, "");
}

static void
test_a_dead_removers_sandbox_is_removed_by_another(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	uint32_t slot;
	struct err err;

	make_sandbox(f, "a", &record);
	f->destroy_failures = 1;
	assert_int_equal(delete_sandbox(f, 0, "t", "a", &err), 0);
	fixture_kill(f, 0);
	f->destroy_failures = 0;
	assert_int_equal(f->destroys, 0);
	assert_true(sandbox_table_find(shm_sandboxes(f->shm), "a", &record, &slot));
	sandbox_resume(f->services[1], slot);
	run_until_call(f, second_destroyed);
	run_until_call(f, no_records);
}

static void
test_a_reaped_sandbox_is_deleted_and_says_so(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record, older;
	struct outcome job;
	uint32_t slot;
	struct err err;

	make_sandbox(f, "a", &record);
	f->next = FAKE_HOLD;
	submit(f, 1, "a", "{\"command\":\"sleep 9\"}", &job, NULL);
	run_due(f);
	assert_true(sandbox_table_find(shm_sandboxes(f->shm), "a", &record, &slot));
	older = record;
	older.activity_ms--;
	assert_int_equal(sandbox_reap(f->services[0], slot, &older, EXPIRY_TTL, &err), -1);
	assert_int_equal(err.code, ERR_CONFLICT);
	memcpy(older.uid, "00000000-0000-4000-8000-000000000000", sizeof older.uid);
	assert_int_equal(sandbox_reap(f->services[0], slot, &older, EXPIRY_TTL, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_int_equal(sandbox_reap(f->services[0], slot, &record, EXPIRY_TTL, &err), 0);
	wait_job(f, 1, job.job_id, &job);
	assert_string_equal(job.verdict, "sandbox_deleted");
	assert_non_null(strstr(job.error, "\"ttl\""));
	run_until_call(f, no_records);
	assert_int_equal(delete_sandbox(f, 1, "t", "a", &err), 0);
	assert_int_equal(sandbox_get(f->services[1], "t", "a", &record, &err), -1);
	assert_non_null(strstr(err.msg, "\"ttl\""));
	assert_int_equal(sandbox_get(f->services[1], "other", "a", &record, &err), -1);
	assert_null(strstr(err.msg, "ttl"));
	assert_int_equal(scoreboard_sum(shm_scoreboard(f->shm), METRIC_REAPED_TTL), 1);
}

static int
change_idle(struct sandbox_record *record, void *arg, struct err *err)
{
	(void)arg;
	(void)err;
	record->status = SANDBOX_DELETING;
	snprintf(record->reap_rule, sizeof record->reap_rule, "idle");
	return 0;
}

/* Its reaper has not come to write a note of it. */
static void
test_one_that_goes_says_why_at_once(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	uint32_t slot;
	struct err err;

	make_sandbox(f, "a", &record);
	assert_true(sandbox_table_find(shm_sandboxes(f->shm), "a", &record, &slot));
	assert_int_equal(sandbox_table_change(shm_sandboxes(f->shm), slot, record.uid, change_idle, NULL, &err), 0);
	assert_int_equal(sandbox_get(f->services[1], "t", "a", &record, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_non_null(strstr(err.msg, "removed by the rule \"idle\""));
	assert_int_equal(sandbox_get(f->services[1], "other", "a", &record, &err), -1);
	assert_null(strstr(err.msg, "idle"));
}

static void
test_lists_show_the_newest_first_in_pages(void **state)
{
	struct fixture *f = *state;
	struct sandbox_filter filter = { .status = -1, .limit = 2 };
	struct sandbox_record record;
	struct json_object *list;
	char cursor[96], next[96];
	struct err err;

	make_sandbox(f, "a", &record);
	make_sandbox(f, "b", &record);
	make_sandbox(f, "c", &record);
	assert_int_equal(sandbox_list(f->services[1], "t", &filter, &list, cursor, &err), 2);
	assert_string_equal(
		json_object_get_string(json_object_object_get(json_object_array_get_idx(list, 0), "sandbox_id")),
		"c");
	json_object_put(list);
	assert_string_not_equal(cursor, "");
	filter.cursor = cursor;
	assert_int_equal(sandbox_list(f->services[1], "t", &filter, &list, next, &err), 1);
	assert_string_equal(
		json_object_get_string(json_object_object_get(json_object_array_get_idx(list, 0), "sandbox_id")),
		"a");
	assert_string_equal(next, "");
	json_object_put(list);
	filter.cursor = "rubbish";
	assert_int_equal(sandbox_list(f->services[1], "t", &filter, &list, next, &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
	filter.cursor = NULL;
	assert_int_equal(sandbox_list(f->services[1], "other", &filter, &list, next, &err), 0);
	json_object_put(list);
}

static void
test_patch_counts_ttl_from_now(void **state)
{
	struct fixture *f = *state;
	AUTO_JSON struct json_object *labels = json_object_new_object();
	struct sandbox_filter filter = { .status = SANDBOX_READY, .label = "team=x" };
	struct sandbox_record record, patched;
	struct json_object *list;
	char cursor[96];
	struct err err;

	make_sandbox(f, "a", &record);
	json_object_object_add(labels, "team", json_object_new_string("x"));
	assert_int_equal(patch_sandbox(f, 1, "a", &(struct sandbox_change){ labels, 5000, -1 }, &patched, &err), 0);
	assert_int_equal(patched.ttl_ms, 5000);
	assert_true(patched.ttl_from_ms >= record.ready_ms);
	assert_int_equal(patched.idle_timeout_ms, record.idle_timeout_ms);
	assert_string_equal(patched.labels, "{\"team\":\"x\"}");
	assert_int_equal(sandbox_list(f->services[0], "t", &filter, &list, cursor, &err), 1);
	json_object_put(list);
	filter.label = "team=y";
	assert_int_equal(sandbox_list(f->services[0], "t", &filter, &list, cursor, &err), 0);
	json_object_put(list);
	json_object_object_add(labels, "a=b", json_object_new_string("c=d"));
	assert_int_equal(patch_sandbox(f, 1, "a", &(struct sandbox_change){ labels, -1, -1 }, &patched, &err), 0);
	filter.label = "a=b=c=d";
	assert_int_equal(sandbox_list(f->services[0], "t", &filter, &list, cursor, &err), 1);
	json_object_put(list);
}

static void
on_ready(bool ready, const char *problems, void *arg)
{
	assert_true(ready);
	assert_string_equal(problems, "");
	*(bool *)arg = true;
}

static void
on_resources(struct json_object *body, const struct err *why, void *arg)
{
	struct json_object *available;

	assert_null(why);
	available = json_object_object_get(body, "available");
	assert_true(json_object_get_double(json_object_object_get(available, "cpu")) > 6.9);
	assert_int_equal(
		json_object_get_int64(json_object_object_get(available, "memory_bytes")), INT64_C(15) << 30);
	assert_int_equal(json_object_array_length(json_object_object_get(body, "sandbox_pods")), 1);
	json_object_put(body);
	*(bool *)arg = true;
}

static void
test_service_tells_of_its_host(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	bool ready = false, resources = false;

	make_sandbox(f, "a", &record);
	service_check_ready(f->services[0], on_ready, &ready);
	run_until(f, &ready);
	service_resources(f->services[0], on_resources, &resources);
	run_until(f, &resources);
}

int
main(void)
{
#define RULE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		RULE(test_create_answers_before_it_is_ready),
		RULE(test_unschedulable_is_still_being_made),
		RULE(test_ready_is_told_to_waiters_of_every_process),
		RULE(test_wait_runs_out_of_time),
		RULE(test_same_create_again_is_the_same_sandbox),
		RULE(test_what_can_never_fit_is_told_at_once),
		RULE(test_networks_are_counted),
		RULE(test_failure_says_why_and_leaves_nothing),
		RULE(test_silent_agent_fails_the_sandbox_in_time),
		RULE(test_deleted_is_hidden_at_once_and_gone_in_the_end),
		RULE(test_waiters_hear_of_a_deletion),
		RULE(test_a_dead_makers_sandbox_is_made_by_another),
		RULE(test_an_earlier_life_that_is_still_there_is_removed),
		RULE(test_a_late_create_does_not_remove_its_successor),
		RULE(test_a_dead_removers_sandbox_is_removed_by_another),
		RULE(test_a_reaped_sandbox_is_deleted_and_says_so),
		RULE(test_one_that_goes_says_why_at_once),
		RULE(test_lists_show_the_newest_first_in_pages),
		RULE(test_patch_counts_ttl_from_now),
		RULE(test_service_tells_of_its_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
