/* test_sandbox_ready.c - whoever goes straight to a sandbox's agent waits until that can work, and no longer. */
/* SPDX-License-Identifier: MIT */
#include "fixture.h"
#include "base/err.h"
#include "domain/sandbox/sandbox_ready.h"
#include "ipc/shm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void
on_ready(uint32_t slot, const struct sandbox_record *record, const struct err *why, void *arg)
{
	struct outcome *outcome = arg;

	assert_true((record != NULL) != (why != NULL));
	assert_true((slot != UINT32_MAX) == (record != NULL));
	outcome->code = why != NULL ? (int)why->code : 0;
	snprintf(outcome->message, sizeof outcome->message, "%s", why != NULL ? why->msg : "");
	outcome->done = true;
}

static struct sandbox_ready *
start(struct fixture *f, struct outcome *outcome)
{
	struct sandbox_ready *ready;
	struct err err;

	*outcome = (struct outcome){ 0 };
	assert_int_equal(sandbox_ready_start(f->services[1], "t", "a", on_ready, outcome, &ready, &err), 0);
	return ready;
}

static void
create_pending(struct fixture *f)
{
	struct sandbox_record record;
	bool existing;
	struct err err;

	f->hold_creates = true;
	assert_int_equal(
		create_sandbox(f, 0, "{\"image\":\"default\",\"sandbox_id\":\"a\"}", &record, &existing, &err), 0);
}

static void
test_pending_becomes_ready(void **state)
{
	struct fixture *f = *state;
	struct outcome outcome;

	create_pending(f);
	start(f, &outcome);
	run_due(f);
	assert_false(outcome.done);
	fixture_release_creates(f);
	run_until(f, &outcome.done);
	assert_int_equal(outcome.code, 0);
	start(f, &outcome);
	run_until(f, &outcome.done);
	assert_int_equal(outcome.code, 0);
}

static void
test_pending_for_too_long(void **state)
{
	struct fixture *f = *state;
	struct outcome outcome;

	create_pending(f);
	f->config.readiness_wait_seconds = 0;
	start(f, &outcome);
	run_until(f, &outcome.done);
	assert_int_equal(outcome.code, ERR_NOT_READY);
	fixture_release_creates(f);
}

static void
test_failed_or_deleted_meanwhile(void **state)
{
	struct fixture *f = *state;
	struct outcome outcome;
	struct err err;

	create_pending(f);
	f->create_error = "no such image";
	start(f, &outcome);
	fixture_release_creates(f);
	run_until(f, &outcome.done);
	assert_int_equal(outcome.code, ERR_NOT_READY);
	start(f, &outcome);
	assert_int_equal(delete_sandbox(f, 0, "t", "a", &err), 0);
	run_until(f, &outcome.done);
	assert_int_equal(outcome.code, ERR_DELETED);
}

static int
change_silent(struct sandbox_record *record, void *arg, struct err *err)
{
	(void)arg;
	(void)err;
	record->ready = false;
	snprintf(record->message, sizeof record->message, "the pod's node does not answer: n1");
	return 0;
}

static void
test_an_agent_that_does_not_answer(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct outcome outcome;
	uint32_t slot;
	struct err err;

	make_sandbox(f, "a", &record);
	assert_true(sandbox_table_find(shm_sandboxes(f->shm), "a", &record, &slot));
	assert_int_equal(
		sandbox_table_change(shm_sandboxes(f->shm), slot, record.uid, change_silent, NULL, &err), 0);
	f->config.readiness_wait_seconds = 0;
	start(f, &outcome);
	run_until(f, &outcome.done);
	assert_int_equal(outcome.code, ERR_AGENT_UNREACHABLE);
	assert_non_null(strstr(outcome.message, "has not answered for "));
	assert_non_null(strstr(outcome.message, " s (the pod's node does not answer: n1);"));
}

static void
test_cancelled_and_foreign(void **state)
{
	struct fixture *f = *state;
	struct outcome outcome;
	struct sandbox_ready *ready;
	struct err err;

	create_pending(f);
	sandbox_ready_cancel(start(f, &outcome));
	fixture_release_creates(f);
	run_due(f);
	assert_false(outcome.done);
	assert_int_equal(sandbox_ready_start(f->services[1], "u", "a", on_ready, &outcome, &ready, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
}

int
main(void)
{
#define RULE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		RULE(test_pending_becomes_ready),
		RULE(test_pending_for_too_long),
		RULE(test_failed_or_deleted_meanwhile),
		RULE(test_an_agent_that_does_not_answer),
		RULE(test_cancelled_and_foreign),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
