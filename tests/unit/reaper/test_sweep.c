/* test_sweep.c - what is over goes at its time, in any number, whatever becomes of the clocks. */
/* SPDX-License-Identifier: MIT */
#include "fakes.h"
#include "fixture.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "ipc/server_life.h"
#include "ipc/shm.h"
#include "reaper/reaper_priv.h"

#include <json-c/json.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { MANY = 10000, STUCK = 100, SECOND = 1000, DAY = 24 * 3600 * SECOND };

static int
setup_many(void **state)
{
	return fixture_setup_sized(state, MANY);
}

static struct shm_sandboxes *
table_of(struct fixture *f)
{
	return shm_sandboxes(f->shm);
}

static void
insert_old(struct fixture *f, int number)
{
	struct sandbox_record record = {
		.status = SANDBOX_READY,
		.ready = true,
		.ttl_ms = 1,
		.ttl_from_ms = 1,
		.tenant = "t",
		.owner = f->refs[0],
	};
	uint32_t slot;
	struct err err;

	snprintf(record.id, sizeof record.id, "s%d", number);
	id_uuid4(record.uid);
	assert_int_equal(sandbox_table_insert(table_of(f), &record, &slot, &err), 0);
}

/* One pass of the sweeper, and what came of the one before. */
static bool
pass(struct fixture *f, int service, uint32_t *cursor)
{
	bool more = sweep_sandboxes(f->services[service], cursor);

	event_base_loop(f->base, EVLOOP_NONBLOCK);
	return more;
}

/* As the reaper's tick while workers serve. */
static void
tick(struct fixture *f)
{
	uint32_t cursor = 0;

	server_life_begin(shm_life(f->shm), clock_boot_ms());
	(void)pass(f, 1, &cursor);
	server_life_end(shm_life(f->shm), clock_boot_ms());
	run_due(f);
}

static void
pass_time(struct fixture *f, int seconds)
{
	for (int i = 0; i < seconds; i++) {
		fake_clock_pass(SECOND);
		tick(f);
	}
}

static bool
is_there(struct fixture *f, const char *id)
{
	struct sandbox_record record;

	return sandbox_table_find(table_of(f), id, &record, NULL) && record.status == SANDBOX_READY;
}

/* --- many at once --- */

static void
test_ten_thousand_at_once_are_taken_in_small_portions(void **state)
{
	struct fixture *f = *state;
	uint32_t cursor = 0, left;

	for (int i = 0; i < MANY; i++)
		insert_old(f, i);
	for (int passes = 0; (left = sandbox_table_count(table_of(f))) > 0; passes++) {
		assert_true(passes <= MANY);
		(void)pass(f, 1, &cursor);
	}
	assert_int_equal(f->destroys, MANY);
	assert_true(f->most_destroying <= 64);
	assert_int_equal(scoreboard_sum(shm_scoreboard(f->shm), METRIC_REAPED_TTL), MANY);
}

static void
test_b103_those_that_cannot_go_hold_nobody_up(void **state)
{
	struct fixture *f = *state;
	uint32_t cursor = 0;

	f->destroy_failures = STUCK;
	for (int i = 0; i < 3 * STUCK; i++)
		insert_old(f, i);
	/* Nothing is tried again within these turns: the pauses are of the real time. */
	for (int passes = 0; f->destroys < 2 * STUCK; passes++) {
		assert_true(passes < MANY);
		(void)pass(f, 1, &cursor);
	}
	assert_true(sandbox_table_count(table_of(f)) <= STUCK);
}

static void
test_b099_two_reapers_take_each_sandbox_once(void **state)
{
	struct fixture *f = *state;
	uint32_t cursors[2] = { 0 };

	for (int i = 0; i < 500; i++)
		insert_old(f, i);
	for (int passes = 0; sandbox_table_count(table_of(f)) > 0; passes++) {
		assert_true(passes < MANY);
		(void)pass(f, passes % 2, &cursors[passes % 2]);
	}
	assert_int_equal(f->destroys, 500);
	assert_int_equal(scoreboard_sum(shm_scoreboard(f->shm), METRIC_REAPED_TTL), 500);
}

/* --- times --- */

static void
test_each_rule_takes_at_its_time_and_is_named(void **state)
{
	static const char idle[] = "{\"image\":\"default\",\"sandbox_id\":\"i\",\"idle_timeout_seconds\":300}";
	struct fixture *f = *state;
	struct sandbox_record record;
	struct err err;
	bool existing;

	make_sandbox(f, "h", &record);
	make_sandbox(f, "plain", &record);
	assert_int_equal(create_sandbox(f, 0, idle, &record, &existing, &err), 0);
	run_due(f);
	assert_int_equal(sandbox_heartbeat(f->services[0], "t", "h", &err), 0);
	pass_time(f, 170);
	assert_true(is_there(f, "h"));
	pass_time(f, 20);
	assert_false(is_there(f, "h"));
	assert_int_equal(sandbox_get(f->services[0], "t", "h", &record, &err), -1);
	assert_non_null(strstr(err.msg, "\"heartbeat\""));
	assert_true(is_there(f, "i"));
	pass_time(f, 120);
	assert_false(is_there(f, "i"));
	assert_true(is_there(f, "plain"));
	assert_int_equal(scoreboard_sum(shm_scoreboard(f->shm), METRIC_REAPED_HEARTBEAT), 1);
	assert_int_equal(scoreboard_sum(shm_scoreboard(f->shm), METRIC_REAPED_IDLE), 1);
	fake_clock_pass(3600 * SECOND);
	tick(f);
	assert_false(is_there(f, "plain"));
}

static void
test_b094_a_running_command_is_a_sign_of_life(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct outcome job;
	struct err err;

	make_sandbox(f, "a", &record);
	assert_int_equal(
		patch_sandbox(f, 0, "a", &(struct sandbox_change){ NULL, -1, 60 * SECOND }, &record, &err), 0);
	assert_int_equal(sandbox_heartbeat(f->services[0], "t", "a", &err), 0);
	f->next = FAKE_HOLD;
	submit(f, 0, "a", "{\"command\":\"x\",\"timeout_seconds\":3600}", &job, NULL);
	run_due(f);
	pass_time(f, 400);
	assert_true(is_there(f, "a"));
	fake_end(f, job.job_id, 0);
	wait_job(f, 0, job.job_id, &job);
	assert_string_equal(job.status, "succeeded");
	pass_time(f, 55); /* counts from its end */
	assert_true(is_there(f, "a"));
	pass_time(f, 10);
	assert_false(is_there(f, "a"));
}

static void
test_looking_is_no_use_and_acting_is(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct err err;

	make_sandbox(f, "a", &record);
	make_sandbox(f, "b", &record);
	assert_int_equal(
		patch_sandbox(f, 0, "a", &(struct sandbox_change){ NULL, -1, 60 * SECOND }, &record, &err), 0);
	assert_int_equal(
		patch_sandbox(f, 0, "b", &(struct sandbox_change){ NULL, -1, 60 * SECOND }, &record, &err), 0);
	for (int i = 0; i < 5; i++) {
		pass_time(f, 13);
		(void)!sandbox_get(f->services[0], "t", "a", &record, &err);
		(void)!sandbox_heartbeat(f->services[0], "t", "a", &err);
		assert_int_equal(patch_sandbox(f, 0, "b", &(struct sandbox_change){ NULL, 7200 * SECOND, -1 },
					 &record, &err),
			0);
	}
	assert_false(is_there(f, "a"));
	assert_true(is_there(f, "b"));
}

static void
test_the_pending_and_the_failed_go(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct err err;
	bool existing;

	f->create_error = "no such image";
	assert_int_equal(
		create_sandbox(f, 0, "{\"image\":\"default\",\"sandbox_id\":\"failed\"}", &record, &existing, &err),
		0);
	run_due(f);
	pass_time(f, 590);
	assert_int_equal(sandbox_get(f->services[0], "t", "failed", &record, &err), 0);
	assert_int_equal(record.status, SANDBOX_FAILED);
	pass_time(f, 20);
	assert_int_equal(sandbox_get(f->services[0], "t", "failed", &record, &err), -1);
	assert_int_equal(scoreboard_sum(shm_scoreboard(f->shm), METRIC_REAPED_FAILED), 1);
	f->create_error = NULL;
	f->hold_creates = true;
	assert_int_equal(create_sandbox(f, 0, "{\"image\":\"default\",\"sandbox_id\":\"pending\",\"timeout\":30}",
				 &record, &existing, &err),
		0);
	run_due(f);
	pass_time(f, 100);
	assert_int_equal(scoreboard_sum(shm_scoreboard(f->shm), METRIC_REAPED_PENDING), 1);
}

/* --- clocks and outages --- */

static double
expires_at(struct fixture *f, const char *id, double *ret_now)
{
	AUTO_JSON struct json_object *object = NULL;
	struct sandbox_record record;
	struct err err;

	assert_int_equal(sandbox_get(f->services[0], "t", id, &record, &err), 0);
	object = sandbox_json(f->services[0], &record);
	*ret_now = clock_wall();
	assert_string_equal(json_object_get_string(json_object_object_get(object, "expires_by")), "heartbeat");
	return json_object_get_double(json_object_object_get(object, "expires_at"));
}

static void
assert_all_kept(struct fixture *f, const char *job_id)
{
	struct sandbox_record record;
	struct outcome job;
	struct err err;
	double at, now;

	tick(f);
	sweep_record_log(f->services[1]);
	at = expires_at(f, "a", &now);
	assert_true(at - now > 100 && at - now < 181);
	wait_job(f, 1, job_id, &job);
	assert_string_equal(job.status, "succeeded");
	assert_int_equal(delete_sandbox(f, 1, "t", "gone", &err), 0);
	assert_int_equal(sandbox_get(f->services[1], "t", "a", &record, &err), 0);
}

static void
test_b096_a_set_clock_ends_nothing_and_keeps_nothing(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct outcome job;
	struct err err;

	make_sandbox(f, "a", &record);
	make_sandbox(f, "gone", &record);
	assert_int_equal(sandbox_heartbeat(f->services[0], "t", "a", &err), 0);
	run_command(f, 0, "a", "{\"command\":\"x\"}", &job);
	assert_int_equal(delete_sandbox(f, 0, "t", "gone", &err), 0);
	run_due(f);
	fake_clock_set_wall(DAY);
	assert_all_kept(f, job.job_id);
	fake_clock_set_wall(-2 * (int64_t)DAY);
	assert_all_kept(f, job.job_id);
	pass_time(f, 185);
	assert_false(is_there(f, "a"));
	fake_clock_pass(3700 * SECOND);
	sweep_record_log(f->services[1]);
	assert_int_equal(delete_sandbox(f, 1, "t", "gone", &err), -1);
	wait_job(f, 1, job.job_id, &job);
	assert_int_equal(job.code, ERR_NOT_FOUND);
}

static void
test_after_an_outage_heartbeats_get_a_full_timeout(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	uint32_t cursor = 0;
	struct err err;

	make_sandbox(f, "a", &record);
	assert_int_equal(sandbox_heartbeat(f->services[0], "t", "a", &err), 0);
	tick(f);
	fake_clock_pass(1800 * SECOND);
	/* The reaper is back, the workers are not yet. */
	(void)pass(f, 1, &cursor);
	assert_true(is_there(f, "a"));
	fake_clock_pass(SECOND);
	tick(f);
	assert_true(is_there(f, "a"));
	pass_time(f, 170);
	assert_true(is_there(f, "a"));
	pass_time(f, 20);
	assert_false(is_there(f, "a"));
}

/* --- agents --- */

static bool
a_has_failed(struct fixture *f)
{
	struct sandbox_record record;
	struct err err;

	return sandbox_get(f->services[1], "t", "a", &record, &err) == 0 && record.status == SANDBOX_FAILED;
}

static bool
a_is_not_ready(struct fixture *f)
{
	struct sandbox_record record;
	struct err err;

	return sandbox_get(f->services[1], "t", "a", &record, &err) == 0 && !record.ready;
}

static void
check_agents(struct fixture *f)
{
	for (uint32_t number = 0; number < 16; number++)
		sweep_agents(f->services[1], number);
}

static void
test_b113_an_agent_that_stays_silent_is_given_up(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;

	make_sandbox(f, "a", &record);
	f->not_healthy = true;
	check_agents(f);
	run_until_call(f, a_is_not_ready);
	pass_time(f, 590);
	assert_false(a_has_failed(f));
	pass_time(f, 20);
	assert_true(a_has_failed(f));
}

static void
test_b107_another_agent_in_its_place_is_never_used(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;

	make_sandbox(f, "a", &record);
	f->denies = true;
	check_agents(f);
	run_until_call(f, a_has_failed);
	assert_true(a_has_failed(f));
}

static int
set_home(struct sandbox_record *record, void *arg, struct err *err)
{
	(void)arg;
	(void)err;
	snprintf(record->home, sizeof record->home, "other");
	return 0;
}

static void
test_another_servers_sandbox_is_left_to_it(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	uint32_t cursor = 0, slot;
	struct err err;

	insert_old(f, 1);
	insert_old(f, 2);
	assert_true(sandbox_table_find(table_of(f), "s1", &record, &slot));
	assert_int_equal(sandbox_table_change(table_of(f), slot, record.uid, set_home, NULL, &err), 0);
	(void)pass(f, 1, &cursor);
	run_due(f);
	assert_true(is_there(f, "s1"));
	assert_false(is_there(f, "s2"));
	assert_int_equal(f->destroys, 1);
}

int
main(void)
{
#define SMALL(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
#define LARGE(name) cmocka_unit_test_setup_teardown(name, setup_many, fixture_teardown)
	const struct CMUnitTest tests[] = {
		LARGE(test_ten_thousand_at_once_are_taken_in_small_portions),
		LARGE(test_b103_those_that_cannot_go_hold_nobody_up),
		LARGE(test_b099_two_reapers_take_each_sandbox_once),
		SMALL(test_each_rule_takes_at_its_time_and_is_named),
		SMALL(test_b094_a_running_command_is_a_sign_of_life),
		SMALL(test_looking_is_no_use_and_acting_is),
		SMALL(test_the_pending_and_the_failed_go),
		SMALL(test_b096_a_set_clock_ends_nothing_and_keeps_nothing),
		SMALL(test_after_an_outage_heartbeats_get_a_full_timeout),
		SMALL(test_b113_an_agent_that_stays_silent_is_given_up),
		SMALL(test_another_servers_sandbox_is_left_to_it),
		SMALL(test_b107_another_agent_in_its_place_is_never_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
