/* test_exec_tidy.c - what a dead process stored and could not acknowledge does not fill the agent's journal. */
/* SPDX-License-Identifier: MIT */
#include "fixture.h"
#include "domain/sandbox/sandbox.h"
#include "ipc/job_table.h"
#include "ipc/sandbox_table.h"
#include "ipc/shm.h"

#include <event2/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Its process dies with the acknowledgement still to be sent: nobody knows of that any more. */
static void
run_without_ack(struct fixture *f, struct outcome *ret_job)
{
	struct sandbox_record record;

	make_sandbox(f, "a", &record);
	run_command(f, 0, "a", COMMAND, ret_job);
	fixture_kill(f, 0);
	assert_false(f->jobs[0].acked);
}

static void
test_a_journal_full_of_what_a_dead_process_stored_is_emptied(void **state)
{
	struct fixture *f = *state;
	struct outcome first, second, held;
	struct job_record record;

	run_without_ack(f, &first);
	/* One that has ended at the agent too, but whose result nobody has yet, must stay. */
	f->next = FAKE_HOLD;
	submit(f, 1, "a", "{\"command\":\"x\",\"lane\":\"b\",\"wait\":false}", &held, NULL);
	while (f->job_count < 2)
		event_base_loop(f->base, EVLOOP_ONCE);
	f->clogged = true;
	submit(f, 1, "a", COMMAND, &second, NULL);
	wait_job(f, 1, second.job_id, &second);
	assert_string_equal(second.status, "succeeded");
	assert_true(f->jobs[0].acked);
	assert_false(f->jobs[1].acked);
	assert_true(job_table_find(shm_jobs(f->shm), held.job_id, &record, NULL));
	fake_end(f, held.job_id, 0);
	wait_job(f, 1, held.job_id, &held);
	assert_int_equal(job_table_count(shm_jobs(f->shm)), 0);
}

static void
test_an_agent_that_keeps_much_is_told_what_it_may_forget(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct outcome first;
	uint32_t slot;

	run_without_ack(f, &first);
	assert_true(sandbox_table_find(shm_sandboxes(f->shm), "a", &record, &slot));
	f->kept = 1000;
	sandbox_check(f->services[1], slot, &record);
	while (!f->jobs[0].acked)
		event_base_loop(f->base, EVLOOP_ONCE);
	assert_int_equal(job_table_count(shm_jobs(f->shm)), 0);
}

int
main(void)
{
#define RULE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		RULE(test_a_journal_full_of_what_a_dead_process_stored_is_emptied),
		RULE(test_an_agent_that_keeps_much_is_told_what_it_may_forget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
