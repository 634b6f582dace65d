/* test_sandbox_heard.c - sandboxes of another server: waited for, worked in, and ended by its word, but never judged or removed here. */
/* SPDX-License-Identifier: MIT */
#include "fixture.h"
#include "base/err.h"
#include "ipc/shm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* What other servers' words make of a record. */
static int
set_foreign(struct sandbox_record *record, void *arg, struct err *err)
{
	(void)err;
	snprintf(record->home, sizeof record->home, "other");
	record->status = *(enum sandbox_status *)arg;
	snprintf(record->message, sizeof record->message, "as the other says");
	return 0;
}

static struct mirror_place
place_of(struct fixture *f, const char *id)
{
	struct mirror_place place;

	assert_true(sandbox_table_find(shm_sandboxes(f->shm), id, &place.record, &place.slot));
	return place;
}

static struct mirror_place
turn_foreign(struct fixture *f, const char *id, enum sandbox_status status)
{
	struct mirror_place place = place_of(f, id);
	struct err err;

	assert_int_equal(sandbox_table_change(
				 shm_sandboxes(f->shm), place.slot, place.record.uid, set_foreign, &status, &err),
		0);
	return place_of(f, id);
}

static void
test_waiters_of_every_process_are_told(void **state)
{
	struct fixture *f = *state;
	struct outcome here = { 0 }, there = { 0 };
	struct sandbox_record record;
	struct sandbox_wait *wait;
	struct mirror_place place;
	struct err err;

	make_sandbox(f, "a", &record);
	turn_foreign(f, "a", SANDBOX_PENDING);
	assert_int_equal(sandbox_wait_start(f->services[0], "t", "a", 60000, on_sandbox, &here, &wait, &err), 0);
	assert_int_equal(sandbox_wait_start(f->services[1], "t", "a", 60000, on_sandbox, &there, &wait, &err), 0);
	run_due(f);
	assert_false(here.done);
	place = turn_foreign(f, "a", SANDBOX_READY);
	sandbox_heard(f->services[0], MIRROR_CHANGED, &place);
	run_until(f, &here.done);
	run_until(f, &there.done);
	assert_string_equal(there.status, "ready");
}

static void
test_its_commands_end_with_it_and_the_driver_is_left_alone(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct mirror_place place;
	struct outcome job;
	struct err err;

	make_sandbox(f, "a", &record);
	turn_foreign(f, "a", SANDBOX_READY);
	f->next = FAKE_HOLD;
	submit(f, 1, "a", "{\"command\":\"x\"}", &job, NULL);
	run_due(f);
	place = turn_foreign(f, "a", SANDBOX_DELETING);
	sandbox_heard(f->services[0], MIRROR_ENDS, &place);
	wait_job(f, 1, job.job_id, &job);
	assert_string_equal(job.status, "failed");
	assert_string_equal(job.verdict, "sandbox_deleted");
	assert_int_equal(sandbox_get(f->services[1], "t", "a", &record, &err), -1);
	assert_true(sandbox_table_remove(shm_sandboxes(f->shm), place.slot, place.record.uid));
	sandbox_heard(f->services[0], MIRROR_GONE, &place);
	/* As one that was deleted here. */
	assert_int_equal(delete_sandbox(f, 1, "t", "a", &err), 0);
	assert_int_equal(delete_sandbox(f, 1, "t", "b", &err), -1);
	assert_int_equal(f->destroys, 0);
}

static void
test_one_that_is_gone_at_once_is_remembered_too(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct mirror_place place;
	struct err err;

	make_sandbox(f, "a", &record);
	place = turn_foreign(f, "a", SANDBOX_READY);
	assert_true(sandbox_table_remove(shm_sandboxes(f->shm), place.slot, place.record.uid));
	sandbox_heard(f->services[0], MIRROR_GONE, &place);
	assert_int_equal(delete_sandbox(f, 1, "t", "a", &err), 0);
}

static void
test_commands_of_one_that_failed_are_lost(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct mirror_place place;
	struct outcome job;

	make_sandbox(f, "a", &record);
	turn_foreign(f, "a", SANDBOX_READY);
	f->next = FAKE_HOLD;
	submit(f, 1, "a", "{\"command\":\"x\"}", &job, NULL);
	run_due(f);
	place = turn_foreign(f, "a", SANDBOX_FAILED);
	sandbox_heard(f->services[1], MIRROR_FAILED, &place);
	wait_job(f, 1, job.job_id, &job);
	assert_string_equal(job.verdict, "agent_lost");
	assert_string_equal(job.error, "as the other says");
}

static bool
no_records(struct fixture *f)
{
	return sandbox_table_count(shm_sandboxes(f->shm)) == 0;
}

static void
test_ours_goes_when_another_server_was_asked_to_delete_it(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct mirror_place place;
	struct err err;

	make_sandbox(f, "a", &record);
	place = place_of(f, "a");
	sandbox_heard(f->services[0], MIRROR_UNWANTED, &place);
	assert_int_equal(sandbox_get(f->services[1], "t", "a", &record, &err), -1);
	sandbox_heard(f->services[1], MIRROR_UNWANTED, &place); /* heard twice */
	run_until_call(f, no_records);
	assert_int_equal(f->destroys, 1);
	assert_string_equal(f->destroyed_uid, place.record.uid);
	assert_int_equal(scoreboard_sum(shm_scoreboard(f->shm), METRIC_SANDBOXES_DELETED), 1);
}

static void
test_nobody_here_calls_it_lost(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct mirror_place place;

	make_sandbox(f, "a", &record);
	place = turn_foreign(f, "a", SANDBOX_READY);
	sandbox_lost(f->services[0], place.slot, place.record.uid, "it does not answer");
	assert_int_equal(place_of(f, "a").record.status, SANDBOX_READY);
	assert_int_equal(f->destroys, 0);
}

int
main(void)
{
#define HEARD(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		HEARD(test_waiters_of_every_process_are_told),
		HEARD(test_its_commands_end_with_it_and_the_driver_is_left_alone),
		HEARD(test_one_that_is_gone_at_once_is_remembered_too),
		HEARD(test_commands_of_one_that_failed_are_lost),
		HEARD(test_ours_goes_when_another_server_was_asked_to_delete_it),
		HEARD(test_nobody_here_calls_it_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
