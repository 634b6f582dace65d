/* test_job_table.c - the table of live jobs: the machinery of the sandbox table with its own rules. */
/* SPDX-License-Identifier: MIT */
#include "ipc/job_table.h"
#include "base/err.h"
#include "crash.h"
#include "ipc/section.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { SLOTS = 8 };

static struct shm_jobs *table;

static int
make_table(void **state)
{
	(void)state;
	table = crash_map(job_table_section_size(SLOTS));
	job_table_section_init(table, SLOTS);
	return 0;
}

static int
unmap_table(void **state)
{
	(void)state;
	crash_unmap(table, job_table_section_size(SLOTS));
	return 0;
}

static struct job_record
make_job(char ret_id[ID_UUID_SIZE])
{
	struct job_record job = { .state = JOB_QUEUED, .sandbox_slot = 4, .attempt = 1 };

	id_uuid4(ret_id);
	memcpy(job.id, ret_id, ID_UUID_SIZE);
	strcpy(job.lane, "default");
	return job;
}

static uint32_t
insert(char ret_id[ID_UUID_SIZE])
{
	struct job_record job = make_job(ret_id);
	uint32_t slot = UINT32_MAX;
	struct err err;

	assert_int_equal(job_table_insert(table, &job, &slot, &err), 0);
	return slot;
}

static int
start(struct job_record *job, void *arg, struct err *err)
{
	if (job->state != JOB_QUEUED)
		return err_set(err, ERR_CONFLICT, "it runs already");
	job->state = JOB_RUNNING;
	job->fence = *(uint64_t *)arg;
	return 0;
}

static void
test_life_of_a_job(void **state)
{
	char id[ID_UUID_SIZE];
	uint32_t slot = insert(id), found;
	uint64_t fence = 99;
	struct job_record job;
	struct err err;

	(void)state;
	assert_true(job_table_find(table, id, &job, &found));
	assert_int_equal(found, slot);
	assert_int_equal(job.sandbox_slot, 4);
	assert_int_equal(job_table_change(table, slot, id, start, &fence, &err), 0);
	assert_int_equal(job_table_change(table, slot, id, start, &fence, &err), -1);
	assert_int_equal(err.code, ERR_CONFLICT);
	assert_true(job_table_read(table, slot, &job));
	assert_int_equal(job.state, JOB_RUNNING);
	assert_int_equal(job.fence, 99);
	assert_true(job_table_remove(table, slot, id));
	assert_false(job_table_find(table, id, &job, &found));
	assert_int_equal(job_table_change(table, slot, id, start, &fence, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_int_equal(job_table_count(table), 0);
}

static void
test_full_table_is_busy_and_same_job_exists(void **state)
{
	char id[ID_UUID_SIZE];
	struct job_record job;
	uint32_t slot;
	struct err err;

	(void)state;
	for (int i = 0; i < SLOTS; i++)
		insert(id);
	assert_int_equal(job_table_bound(table), SLOTS);
	job = make_job(id);
	assert_int_equal(job_table_insert(table, &job, &slot, &err), -1);
	assert_int_equal(err.code, ERR_BUSY);
	assert_true(job_table_read(table, 3, &job));
	assert_int_equal(job_table_insert(table, &job, &slot, &err), -1);
	assert_int_equal(err.code, ERR_EXISTS);
}

struct start_call {
	uint32_t slot;
	const char *id;
};

static void
start_it(void *arg)
{
	const struct start_call *call = arg;
	uint64_t fence = 7;
	struct err err;

	if (job_table_change(table, call->slot, call->id, start, &fence, &err) < 0)
		abort();
}

static void
test_job_whose_starter_was_killed_is_queued_or_running_with_its_fence(void **state)
{
	unsigned nth = 1, queued = 0, running = 0;
	bool killed;

	(void)state;
	do {
		char id[ID_UUID_SIZE];
		struct start_call call = { .slot = insert(id), .id = id };
		struct job_record job;

		killed = crash_at(nth++, start_it, &call);
		assert_true(job_table_read(table, call.slot, &job));
		if (job.state == JOB_QUEUED && job.fence == 0)
			queued++;
		else if (job.state == JOB_RUNNING && job.fence == 7)
			running++;
		else
			fail_msg("state %u with fence %u", job.state, (unsigned)job.fence);
		assert_true(job_table_remove(table, call.slot, id));
	} while (killed);
	assert_true(queued >= 1 && running >= 1);
}

static void
test_adoption_drops_damaged_jobs(void **state)
{
	char good[ID_UUID_SIZE], bad[ID_UUID_SIZE];
	struct job_record job;
	char *at;

	(void)state;
	insert(good);
	insert(bad);
	at = memmem(table, job_table_section_size(SLOTS), bad, strlen(bad));
	assert_non_null(at);
	memset(at + offsetof(struct job_record, lane), 'x', sizeof job.lane);
	job_table_section_adopt(table, SLOTS);
	assert_true(job_table_find(table, good, &job, NULL));
	assert_false(job_table_find(table, bad, &job, NULL));
	assert_int_equal(job_table_count(table), 1);
}

#define TABLE_TEST(f) cmocka_unit_test_setup_teardown(f, make_table, unmap_table)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TABLE_TEST(test_life_of_a_job),
		TABLE_TEST(test_full_table_is_busy_and_same_job_exists),
		TABLE_TEST(test_job_whose_starter_was_killed_is_queued_or_running_with_its_fence),
		TABLE_TEST(test_adoption_drops_damaged_jobs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
