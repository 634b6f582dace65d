/* test_duties.c - what is over goes, what is not there is known, what was left is taken over. */
/* SPDX-License-Identifier: MIT */
#include "fixture.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "ipc/exec_lock.h"
#include "ipc/job_table.h"
#include "ipc/shm.h"
#include "reaper/reaper_priv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define ORPHAN_UID "11111111-1111-4111-8111-111111111111"

enum { LONG_KNOWN_MS = 60000 };

static uint32_t
record_count(struct fixture *f)
{
	return sandbox_table_count(shm_sandboxes(f->shm));
}

static bool
no_records(struct fixture *f)
{
	return record_count(f) == 0;
}

static bool
listed_again(struct fixture *f)
{
	return f->lists >= 2;
}

static bool
destroyed(struct fixture *f)
{
	return f->destroys > 0;
}

static enum sandbox_status
status_of(struct fixture *f, const char *id)
{
	struct sandbox_record record;
	struct err err;

	assert_int_equal(sandbox_get(f->services[0], "t", id, &record, &err), 0);
	return (enum sandbox_status)record.status;
}

static void
list_item(struct fixture *f, const char *id, const char *uid, bool alive)
{
	struct fake_item *item = &f->items[f->item_count++];

	snprintf(item->id, sizeof item->id, "%s", id);
	snprintf(item->uid, sizeof item->uid, "%s", uid);
	item->alive = alive;
	item->known_ms = LONG_KNOWN_MS;
}

/* --- sweep --- */

static bool
sweep(struct fixture *f, int service)
{
	uint32_t cursor = 0;

	return sweep_sandboxes(f->services[service], &cursor);
}

static int
make_doubtful(struct sandbox_record *record, void *arg, struct err *err)
{
	(void)arg;
	(void)err;
	record->status = SANDBOX_DOUBTFUL;
	return 0;
}

static int
make_old(struct sandbox_record *record, void *arg, struct err *err)
{
	(void)arg;
	(void)err;
	record->ttl_ms = 1;
	record->ttl_from_ms = 1;
	return 0;
}

static void
change(struct fixture *f, const char *id, sandbox_change_f *how)
{
	struct sandbox_record record;
	uint32_t slot;
	struct err err;

	assert_true(sandbox_table_find(shm_sandboxes(f->shm), id, &record, &slot));
	assert_int_equal(sandbox_table_change(shm_sandboxes(f->shm), slot, record.uid, how, NULL, &err), 0);
}

static void
test_sweep_takes_what_is_over_and_nothing_else(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct err err;

	make_sandbox(f, "a", &record);
	make_sandbox(f, "b", &record);
	sweep(f, 1);
	assert_int_equal(record_count(f), 2);
	change(f, "a", make_old);
	sweep(f, 1);
	assert_int_equal(sandbox_get(f->services[0], "t", "a", &record, &err), -1);
	assert_int_equal(status_of(f, "b"), SANDBOX_READY);
}

static void
test_b103_a_torn_record_goes_and_stops_nothing(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;

	make_sandbox(f, "a", &record);
	make_sandbox(f, "b", &record);
	change(f, "a", make_doubtful);
	change(f, "b", make_old);
	sweep(f, 1);
	run_until_call(f, no_records);
	assert_int_equal(f->destroys, 2);
}

/* --- reconciliation --- */

static void
test_an_orphan_goes_when_it_was_seen_twice(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct reconcile *reconcile;

	make_sandbox(f, "a", &record);
	list_item(f, "a", record.uid, true);
	list_item(f, "orphan", ORPHAN_UID, true);
	f->config.cleanup_interval_seconds = 1;
	reconcile = reconcile_create(f->base, f->services[0], NULL);
	run_due(f);
	assert_int_equal(f->lists, 1);
	assert_int_equal(f->destroys, 0);
	run_until_call(f, destroyed);
	assert_int_equal(f->lists, 2);
	assert_string_equal(f->destroyed_uid, ORPHAN_UID);
	assert_int_equal(status_of(f, "a"), SANDBOX_READY);
	service_free(f->services[0]);
	f->services[0] = NULL;
	reconcile_free(reconcile);
}

static void
test_a_young_orphan_is_let_be(void **state)
{
	struct fixture *f = *state;
	struct reconcile *reconcile;

	list_item(f, "orphan", ORPHAN_UID, true);
	f->items[0].known_ms = 0;
	f->config.cleanup_interval_seconds = 1;
	reconcile = reconcile_create(f->base, f->services[0], NULL);
	run_until_call(f, listed_again);
	run_due(f);
	assert_int_equal(f->destroys, 0);
	f->items[0].known_ms = LONG_KNOWN_MS;
	run_until_call(f, destroyed);
	service_free(f->services[0]);
	f->services[0] = NULL;
	reconcile_free(reconcile);
}

static bool passed;

static void
on_passed(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	passed = true;
}

static bool
has_passed(struct fixture *f)
{
	(void)f;
	return passed;
}

/* Timers run in the order in which they are due: one of half the usual pause says which comes first. */
static void
test_an_old_orphan_is_looked_at_again_soon(void **state)
{
	struct fixture *f = *state;
	struct timeval half = { .tv_usec = 500000 };
	struct reconcile *reconcile;

	list_item(f, "orphan", ORPHAN_UID, true);
	f->config.cleanup_interval_seconds = 1;
	reconcile = reconcile_create(f->base, f->services[0], NULL);
	run_due(f);
	assert_int_equal(f->lists, 1);
	passed = false;
	assert_int_equal(event_base_once(f->base, -1, EV_TIMEOUT, on_passed, NULL, &half), 0);
	run_until_call(f, has_passed);
	run_due(f);
	assert_int_equal(f->destroys, 1);
	service_free(f->services[0]);
	f->services[0] = NULL;
	reconcile_free(reconcile);
}

static int
make_failed(struct sandbox_record *record, void *arg, struct err *err)
{
	(void)arg;
	(void)err;
	record->status = SANDBOX_FAILED;
	return 0;
}

static void
test_remains_of_a_failed_one_are_called_so(void **state)
{
	struct fixture *f = *state;
	AUTO_FD log = memfd_create("log", MFD_CLOEXEC);
	struct sandbox_record record;
	struct reconcile *reconcile;
	char text[4096] = "";

	make_sandbox(f, "a", &record);
	change(f, "a", make_failed);
	list_item(f, "a", record.uid, false);
	f->config.cleanup_interval_seconds = 1;
	log_set_fd(log);
	log_set_level(LOG_LEVEL_WARN);
	reconcile = reconcile_create(f->base, f->services[0], NULL);
	run_until_call(f, destroyed);
	log_set_level(LOG_LEVEL_ERROR);
	log_set_fd(STDERR_FILENO);
	assert_true(pread(log, text, sizeof text - 1, 0) > 0);
	assert_non_null(strstr(text, "failed sandbox"));
	assert_null(strstr(text, "no record"));
	service_free(f->services[0]);
	f->services[0] = NULL;
	reconcile_free(reconcile);
}

enum { ORPHANS = 200 };

static bool
all_destroyed(struct fixture *f)
{
	return f->destroys >= ORPHANS;
}

static void
test_many_orphans_go_in_small_portions(void **state)
{
	struct fixture *f = *state;
	struct reconcile *reconcile;
	char id[16], uid[ID_UUID_SIZE];

	for (int i = 0; i < ORPHANS; i++) {
		snprintf(id, sizeof id, "o%d", i);
		id_uuid4(uid);
		list_item(f, id, uid, true);
	}
	f->destroy_failures = 3;
	f->config.cleanup_interval_seconds = 1;
	reconcile = reconcile_create(f->base, f->services[0], NULL);
	run_until_call(f, all_destroyed); /* those that failed: when they are listed again */
	assert_true(f->most_destroying <= 64);
	service_free(f->services[0]);
	f->services[0] = NULL;
	reconcile_free(reconcile);
}

static void
test_b117_a_failed_list_proves_nothing(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct reconcile *reconcile;

	make_sandbox(f, "a", &record);
	list_item(f, "orphan", ORPHAN_UID, true);
	f->list_fails = true;
	f->config.cleanup_interval_seconds = 1;
	reconcile = reconcile_create(f->base, f->services[0], NULL);
	run_until_call(f, listed_again);
	run_due(f);
	assert_int_equal(f->destroys, 0);
	assert_int_equal(status_of(f, "a"), SANDBOX_READY);
	service_free(f->services[0]);
	f->services[0] = NULL;
	reconcile_free(reconcile);
}

static bool
a_has_failed(struct fixture *f)
{
	struct sandbox_record record;
	struct err err;

	return sandbox_get(f->services[1], "t", "a", &record, &err) == 0 && record.status == SANDBOX_FAILED;
}

/* Another server's, in whatever state. */
static void
insert_foreign(struct fixture *f, const char *id, enum sandbox_status status)
{
	struct sandbox_record record = { .status = status, .ready = true, .tenant = "t", .home = "other" };
	uint32_t slot;
	struct err err;

	snprintf(record.id, sizeof record.id, "%s", id);
	id_uuid4(record.uid);
	assert_int_equal(sandbox_table_insert(shm_sandboxes(f->shm), &record, &slot, &err), 0);
}

static void
test_b117_a_missing_sandbox_is_lost_when_missed_twice(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct reconcile *reconcile;

	make_sandbox(f, "a", &record);
	insert_foreign(f, "b", SANDBOX_READY);
	f->config.cleanup_interval_seconds = 1;
	reconcile = reconcile_create(f->base, f->services[0], NULL);
	run_due(f);
	assert_int_equal(f->lists, 1);
	assert_int_equal(status_of(f, "a"), SANDBOX_READY);
	run_until_call(f, a_has_failed);
	assert_int_equal(f->lists, 2);
	assert_int_equal(status_of(f, "b"), SANDBOX_READY);
	service_free(f->services[0]);
	f->services[0] = NULL;
	reconcile_free(reconcile);
}

static void
test_b113_an_ended_agent_is_lost_at_once_with_its_reason(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record first, second;
	struct reconcile *reconcile;
	struct err err;

	make_sandbox(f, "a", &first);
	make_sandbox(f, "b", &second);
	list_item(f, "a", first.uid, false);
	list_item(f, "b", second.uid, true);
	reconcile = reconcile_create(f->base, f->services[0], NULL);
	run_due(f);
	assert_int_equal(status_of(f, "a"), SANDBOX_FAILED);
	fake_gone(f, "b", ORPHAN_UID, 9); /* another life of that id */
	assert_int_equal(status_of(f, "b"), SANDBOX_READY);
	fake_gone(f, "b", second.uid, 9);
	assert_int_equal(sandbox_get(f->services[1], "t", "b", &second, &err), 0);
	assert_int_equal(second.status, SANDBOX_FAILED);
	assert_string_equal(second.message, "its agent was killed by signal 9");
	service_free(f->services[0]);
	f->services[0] = NULL;
	reconcile_free(reconcile);
}

/* --- recovery --- */

static void
test_recovery_takes_over_from_the_dead_only(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct outcome job;

	make_sandbox(f, "a", &record);
	f->next = FAKE_HOLD;
	submit(f, 0, "a", "{\"command\":\"x\"}", &job, NULL);
	run_due(f);
	insert_foreign(f, "b", SANDBOX_DELETING);
	recovery_scan(f->services[1]);
	assert_int_equal(service_execs(f->services[1]), 0);
	assert_int_equal(f->destroys, 0);
	fixture_kill(f, 0);
	recovery_scan(f->services[1]);
	recovery_scan(f->services[1]);
	assert_int_equal(service_execs(f->services[1]), 1);
	run_due(f);
	fake_end(f, job.job_id, 0);
	wait_job(f, 1, job.job_id, &job);
	assert_string_equal(job.status, "succeeded");
	assert_int_equal(scoreboard_sum(shm_scoreboard(f->shm), METRIC_EXECS_RECOVERED), 1);
}

/* Its owner died when the job was gone from the table and the place not yet given back. */
static void
test_recovery_drops_places_that_no_job_has(void **state)
{
	struct fixture *f = *state;
	const struct exec_lock_limits limits = { .running = 100, .per_sandbox = 4 };
	struct sandbox_record record;
	struct exec_ticket ticket;
	struct outcome job;
	uint32_t slot;
	bool granted;
	struct err err;

	make_sandbox(f, "a", &record);
	assert_true(sandbox_table_find(shm_sandboxes(f->shm), "a", &record, &slot));
	assert_int_equal(exec_lock_acquire(shm_exec_lock(f->shm), f->notify, &limits, f->refs[0], slot,
				 UINT64_C(14695981039346656037) /* lane "" */, 7, &ticket, &granted, &err),
		0);
	exec_lock_keep(shm_exec_lock(f->shm), ticket);
	fixture_kill(f, 0);
	submit(f, 1, "a", "{\"command\":\"x\",\"wait\":false}", &job, NULL);
	run_due(f);
	assert_int_equal(f->execs, 0);
	recovery_scan(f->services[1]);
	wait_job(f, 1, job.job_id, &job);
	assert_string_equal(job.status, "succeeded");
}

int
main(void)
{
#define RULE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		RULE(test_sweep_takes_what_is_over_and_nothing_else),
		RULE(test_b103_a_torn_record_goes_and_stops_nothing),
		RULE(test_an_orphan_goes_when_it_was_seen_twice),
		RULE(test_a_young_orphan_is_let_be),
		RULE(test_an_old_orphan_is_looked_at_again_soon),
		RULE(test_remains_of_a_failed_one_are_called_so),
		RULE(test_many_orphans_go_in_small_portions),
		RULE(test_b117_a_failed_list_proves_nothing),
		RULE(test_b117_a_missing_sandbox_is_lost_when_missed_twice),
		RULE(test_b113_an_ended_agent_is_lost_at_once_with_its_reason),
		RULE(test_recovery_takes_over_from_the_dead_only),
		RULE(test_recovery_drops_places_that_no_job_has),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
