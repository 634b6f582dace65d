/* test_journal.c - what is kept, what gives way, what is never run again. */
/* SPDX-License-Identifier: MIT */
#include "agent/job.h"
#include "agent/journal.h"
#include "base/id.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct job *
add_job(struct journal *journal)
{
	char id[ID_UUID_SIZE];
	struct job *job;

	id_uuid4(id);
	job = job_create(id, "", 1, 1024);
	journal_add(journal, job);
	return job;
}

static void
end_job(struct journal *journal, struct job *job)
{
	job_end(job);
	journal_on_end(journal, job);
}

static void
test_a_job_is_found_by_its_id(void **state)
{
	struct journal *journal = journal_create(10, 1000, NULL);
	struct job *first = add_job(journal), *second = add_job(journal);
	uint8_t other[16] = { 0 };

	(void)state;
	assert_ptr_equal(journal_find(journal, first->id_bytes), first);
	assert_ptr_equal(journal_find(journal, second->id_bytes), second);
	assert_null(journal_find(journal, other));
	assert_ptr_equal(journal_first(journal), first);
	assert_ptr_equal(journal_next(first), second);
	journal_free(journal);
}

static void
test_an_acknowledged_job_is_forgotten_but_its_id_is_not(void **state)
{
	struct journal *journal = journal_create(10, 1000, NULL);
	struct job *job = add_job(journal);
	uint8_t id[16];

	(void)state;
	memcpy(id, job->id_bytes, sizeof id);
	output_add(&job->out, "12345", 5);
	end_job(journal, job);
	assert_int_equal(journal_bytes(journal), 5);
	assert_false(journal_is_forgotten(journal, id));
	journal_ack(journal, id);
	assert_null(journal_find(journal, id));
	assert_true(journal_is_forgotten(journal, id));
	assert_int_equal(journal_bytes(journal), 0);
	assert_int_equal(journal_jobs(journal), 0);
	journal_free(journal);
}

static void
test_a_running_job_is_not_acknowledged(void **state)
{
	struct journal *journal = journal_create(10, 1000, NULL);
	struct job *job = add_job(journal);

	(void)state;
	journal_ack(journal, job->id_bytes);
	assert_ptr_equal(journal_find(journal, job->id_bytes), job);
	journal_free(journal);
}

static void
test_a_full_journal_refuses_and_only_stale_jobs_give_way(void **state)
{
	struct journal *journal = journal_create(2, 1000, NULL);
	struct job *running = add_job(journal), *ended = add_job(journal);
	int64_t now;
	uint8_t id[16];

	(void)state;
	end_job(journal, ended);
	memcpy(id, ended->id_bytes, sizeof id);
	now = ended->ended_boot_ms;
	assert_false(journal_make_room(journal, now + JOURNAL_STALE_MS));
	assert_ptr_equal(journal_find(journal, id), ended);
	assert_true(journal_make_room(journal, now + JOURNAL_STALE_MS + 1));
	assert_null(journal_find(journal, id));
	assert_true(journal_is_forgotten(journal, id));
	assert_ptr_equal(journal_find(journal, running->id_bytes), running);
	journal_free(journal);
}

static void
test_bytes_are_a_bound_too(void **state)
{
	struct journal *journal = journal_create(10, 5, NULL);
	struct job *job = add_job(journal);

	(void)state;
	output_add(&job->out, "12345", 5);
	assert_true(journal_make_room(journal, 0));
	end_job(journal, job);
	assert_false(journal_make_room(journal, job->ended_boot_ms));
	journal_free(journal);
}

static void
test_the_ring_of_forgotten_ids_keeps_the_newest(void **state)
{
	struct journal *journal = journal_create(10, 1000, NULL);
	uint8_t first[16], second[16];

	(void)state;
	for (size_t i = 0; i <= JOURNAL_FORGOTTEN_IDS; i++) {
		struct job *job = add_job(journal);
		uint8_t id[16];

		memcpy(id, job->id_bytes, sizeof id);
		if (i < 2)
			memcpy(i == 0 ? first : second, id, sizeof id);
		end_job(journal, job);
		journal_ack(journal, id);
	}
	assert_false(journal_is_forgotten(journal, first));
	assert_true(journal_is_forgotten(journal, second));
	journal_free(journal);
}

static void
test_a_barred_id_is_not_run_when_it_comes(void **state)
{
	struct journal *journal = journal_create(10, 1000, NULL);
	const uint8_t id[16] = { 7 };

	(void)state;
	assert_false(journal_is_forgotten(journal, id));
	for (size_t i = 0; i < 2 * JOURNAL_FORGOTTEN_IDS; i++)
		journal_bar(journal, id);
	assert_true(journal_is_forgotten(journal, id));
	for (uint32_t i = 0; i < JOURNAL_FORGOTTEN_IDS; i++) {
		uint8_t other[16] = { 7, 1 };

		assert_true(journal_is_forgotten(journal, id));
		memcpy(other + 2, &i, sizeof i);
		journal_bar(journal, other);
		assert_true(journal_is_forgotten(journal, other));
	}
	assert_false(journal_is_forgotten(journal, id));
	journal_free(journal);
}

static void
count_end(struct job *job, void *arg)
{
	assert_true(job->ended);
	++*(int *)arg;
}

static void
test_every_waiter_is_told_once_and_who_left_is_not(void **state)
{
	struct journal *journal = journal_create(10, 1000, NULL);
	struct job *job = add_job(journal);
	int told[3] = { 0 };
	struct job_waiter waiters[3];

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		waiters[i] = (struct job_waiter){ .on_end = count_end, .arg = &told[i] };
		job_wait(job, &waiters[i]);
	}
	job_unwait(job, &waiters[1]);
	end_job(journal, job);
	assert_int_equal(told[0], 1);
	assert_int_equal(told[1], 0);
	assert_int_equal(told[2], 1);
	journal_free(journal);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_job_is_found_by_its_id),
		cmocka_unit_test(test_an_acknowledged_job_is_forgotten_but_its_id_is_not),
		cmocka_unit_test(test_a_running_job_is_not_acknowledged),
		cmocka_unit_test(test_a_full_journal_refuses_and_only_stale_jobs_give_way),
		cmocka_unit_test(test_bytes_are_a_bound_too),
		cmocka_unit_test(test_the_ring_of_forgotten_ids_keeps_the_newest),
		cmocka_unit_test(test_a_barred_id_is_not_run_when_it_comes),
		cmocka_unit_test(test_every_waiter_is_told_once_and_who_left_is_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
