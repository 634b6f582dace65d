/* test_exec_key.c - one Idempotency-Key is one job: at once, later, elsewhere, and after a death. */
/* SPDX-License-Identifier: MIT */
#include "fixture.h"
#include "backend/key_store.h"
#include "backend/record_log.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "domain/idempotency.h"
#include "ipc/exec_lock.h"
#include "ipc/job_table.h"
#include "ipc/record_index.h"
#include "ipc/shm.h"

#include <json-c/json.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static int64_t
metric(struct fixture *f, enum metric which)
{
	return scoreboard_sum(shm_scoreboard(f->shm), which);
}

static void
digest_of(const char *json, char ret_digest[TEXT_SHA256_HEX_SIZE])
{
	static const char *const skipped[] = { "wait", NULL };
	struct err err;
	AUTO_JSON struct json_object *body = json_parse(json, strlen(json), &err);

	assert_non_null(body);
	idempotency_digest("exec", "a", body, skipped, ret_digest);
}

static void
on_claimed(const struct key_claim *claim, const struct err *why, void *arg)
{
	(void)arg;
	assert_null(why);
	assert_non_null(claim);
}

/* As a process leaves it that dies right after it has claimed the key. */
static void
claim_for_nobody(struct fixture *f, const char *key, const struct sandbox_record *sandbox, double age_s,
	struct key_claim *ret_claim)
{
	struct record_key name = record_key_named(RECORD_KEY, "t", key);
	struct record_log *log = service_key_log(f->services[0]);
	struct key_claim claim = { .claimed_at = clock_wall() - age_s };
	struct key_store *store = key_store_create(log);

	digest_of(COMMAND, claim.digest);
	id_uuid4(claim.id);
	snprintf(claim.sandbox_uid, sizeof claim.sandbox_uid, "%s", sandbox->uid);
	key_store_put(store, &name, &claim, clock_wall() + 1000, on_claimed, NULL);
	key_store_free(store);
	*ret_claim = claim;
}

static void
test_digest_is_of_what_is_asked(void **state)
{
	static const char *const same[] = { "{\"command\":\"x\",\"env\":{\"A\":\"1\",\"B\":\"2\"}}",
		"{ \"env\" : {\"B\":\"2\",\"A\":\"1\"}, \"command\":\"\\u0078\", \"cwd\":null }",
		"{\"wait\":false,\"command\":\"x\",\"env\":{\"A\":\"1\",\"B\":\"2\"}}" };
	static const char *const other[] = { "{\"command\":\"x\"}", "{\"command\":[\"x\"]}",
		"{\"command\":\"x\",\"env\":{\"A\":\"2\",\"B\":\"1\"}}", "{\"command\":\"x\",\"env\":\"AB\"}",
		"{\"command\":\"x\",\"login_shell\":true}", "{\"command\":\"x\",\"login_shell\":\"true\"}",
		"{\"command\":[\"ab\",\"c\"]}", "{\"command\":[\"a\",\"bc\"]}" };
	char digests[8][TEXT_SHA256_HEX_SIZE], first[TEXT_SHA256_HEX_SIZE], next[TEXT_SHA256_HEX_SIZE];

	(void)state;
	digest_of(same[0], first);
	for (size_t i = 1; i < 3; i++) {
		digest_of(same[i], next);
		assert_string_equal(next, first);
	}
	for (size_t i = 0; i < 8; i++) {
		digest_of(other[i], digests[i]);
		assert_string_not_equal(digests[i], first);
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(digests[i], digests[j]);
	}
}

static void
test_a_second_request_is_the_same_job(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct outcome first, second, third, job;

	make_sandbox(f, "a", &record);
	f->next = FAKE_HOLD;
	submit_keyed(f, 0, "a", COMMAND, "k", &first);
	submit_keyed(f, 1, "a", COMMAND, "k", &second);
	assert_string_equal(second.job_id, first.job_id);
	run_until_call(f, agent_has_a_job);
	fake_end(f, first.job_id, 7);
	wait_job(f, 1, second.job_id, &job);
	assert_int_equal(job.exit_code, 7);
	submit_keyed(f, 1, "a", "{\"command\":\"x\",\"wait\":false}", "k", &third);
	assert_string_equal(third.job_id, first.job_id);
	assert_int_equal(f->job_count, 1);
	assert_int_equal(metric(f, METRIC_KEY_REPLAYS), 2);
	run_until_call(f, nothing_is_left);
}

static void
test_another_request_or_tenant_does_not_get_it(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record a, b;
	struct outcome first, other, elsewhere;

	make_sandbox(f, "a", &a);
	make_sandbox(f, "b", &b);
	submit_keyed(f, 0, "a", COMMAND, "k", &first);
	submit_keyed(f, 1, "a", "{\"command\":\"y\"}", "k", &other);
	assert_int_equal(other.code, ERR_KEY_CONFLICT);
	submit_keyed(f, 1, "b", COMMAND, "k", &elsewhere);
	assert_int_equal(elsewhere.code, ERR_KEY_CONFLICT);
	assert_int_equal(metric(f, METRIC_KEY_CONFLICTS), 2);
	submit_keyed(f, 1, "b", COMMAND, "k2", &elsewhere);
	assert_int_equal(elsewhere.code, ERR_NONE);
	assert_string_not_equal(elsewhere.job_id, first.job_id);
	run_until_call(f, nothing_is_left);
}

static void
test_both_wait_for_readiness_and_one_runs(void **state)
{
	struct fixture *f = *state;
	struct outcome first, second, job;
	struct sandbox_record record;
	struct err err;
	bool existing;

	f->hold_creates = true;
	assert_int_equal(
		create_sandbox(f, 0, "{\"image\":\"default\",\"sandbox_id\":\"a\"}", &record, &existing, &err), 0);
	submit_keyed(f, 0, "a", COMMAND, "k", &first);
	submit_keyed(f, 1, "a", COMMAND, "k", &second);
	assert_false(first.done || second.done);
	fixture_release_creates(f);
	run_until(f, &first.done);
	run_until(f, &second.done);
	assert_string_equal(first.job_id, second.job_id);
	wait_job(f, 0, first.job_id, &job);
	assert_string_equal(job.status, "succeeded");
	assert_int_equal(f->job_count, 1);
	run_until_call(f, nothing_is_left);
}

static void
test_what_is_refused_leaves_the_key_free(void **state)
{
	struct fixture *f = *state;
	struct outcome jobs[4], refused, again;
	struct sandbox_record record;

	make_sandbox(f, "a", &record);
	f->next = FAKE_HOLD;
	for (int i = 0; i < 4; i++)
		submit(f, i % 2, "a", COMMAND, &jobs[i], NULL);
	submit_keyed(f, 1, "a", COMMAND, "k", &refused);
	assert_int_equal(refused.code, ERR_BUSY);
	submit_keyed(f, 1, "nosuch", COMMAND, "k", &refused);
	assert_int_equal(refused.code, ERR_NOT_FOUND);
	assert_int_equal(record_index_count(shm_keys(f->shm)), 0);
	run_until_call(f, agent_has_a_job);
	fake_end(f, jobs[0].job_id, 0);
	run_until_call(f, nothing_is_left);
	submit_keyed(f, 1, "a", "{\"command\":\"y\"}", "k", &again);
	assert_int_equal(again.code, ERR_NONE);
	run_until_call(f, nothing_is_left);
}

/* The key is claimed before the job table refuses. */
static void
test_a_full_job_table_gives_the_key_back(void **state)
{
	struct fixture *f = *state;
	struct job_record filler = { .sandbox_uid = "none" };
	struct outcome refused, again;
	struct sandbox_record record;
	uint32_t slots[64], n = 0;
	char ids[64][ID_UUID_SIZE];
	struct err err;

	make_sandbox(f, "a", &record);
	filler.owner = f->refs[0];
	for (;; n++) {
		id_uuid4(filler.id);
		memcpy(ids[n], filler.id, sizeof filler.id);
		if (job_table_insert(shm_jobs(f->shm), &filler, &slots[n], &err) != 0)
			break;
	}
	submit_keyed(f, 0, "a", COMMAND, "k", &refused);
	assert_int_equal(refused.code, ERR_BUSY);
	assert_int_equal(record_index_count(shm_keys(f->shm)), 0);
	while (n-- > 0)
		assert_true(job_table_remove(shm_jobs(f->shm), slots[n], ids[n]));
	submit_keyed(f, 1, "a", "{\"command\":\"y\"}", "k", &again);
	assert_int_equal(again.code, ERR_NONE);
	run_until_call(f, nothing_is_left);
}

static void
test_a_claim_without_a_job_is_recorded_under_its_id(void **state)
{
	struct fixture *f = *state;
	struct outcome first, second, job;
	struct sandbox_record record;
	struct key_claim claim;

	make_sandbox(f, "a", &record);
	claim_for_nobody(f, "k", &record, 1, &claim);
	submit_keyed(f, 0, "a", COMMAND, "k", &first);
	assert_string_equal(first.job_id, claim.id);
	submit_keyed(f, 1, "a", COMMAND, "k", &second);
	assert_string_equal(second.job_id, claim.id);
	wait_job(f, 1, claim.id, &job);
	assert_string_equal(job.status, "succeeded");
	assert_int_equal(fake_started(f, claim.id), 1);
	assert_int_equal(f->job_count, 1);
	run_until_call(f, nothing_is_left);
}

static void
test_an_old_claim_without_an_outcome_is_not_run_again(void **state)
{
	struct fixture *f = *state;
	struct outcome lost;
	struct sandbox_record record;
	struct key_claim claim;

	make_sandbox(f, "a", &record);
	claim_for_nobody(f, "k", &record, 100, &claim);
	submit_keyed(f, 0, "a", COMMAND, "k", &lost);
	assert_int_equal(lost.code, ERR_OUTCOME_LOST);
	assert_non_null(strstr(lost.message, claim.id));
	assert_int_equal(f->execs, 0);
}

static void
test_a_job_whose_end_was_lost_is_not_run_again(void **state)
{
	struct fixture *f = *state;
	struct outcome first, again;
	struct sandbox_record record;
	struct record_key key;

	make_sandbox(f, "a", &record);
	submit_keyed(f, 0, "a", COMMAND, "k", &first);
	run_until_call(f, nothing_is_left);
	/* As if there had been no room for it; only the key knows. */
	key = record_key_job(first.job_id);
	record_index_drop(shm_index(f->shm), &key);
	submit_keyed(f, 1, "a", COMMAND, "k", &again);
	assert_int_equal(again.code, ERR_OUTCOME_LOST);
	assert_int_equal(f->execs, 1);
	assert_true(nothing_is_left(f));
}

static void
test_a_claim_for_another_life_of_the_sandbox_is_lost(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record, other = { .uid = "0b0e7a52-6f3c-4c5b-9d0a-0123456789ab" };
	struct outcome lost;
	struct key_claim claim;

	make_sandbox(f, "a", &record);
	claim_for_nobody(f, "k", &other, 1, &claim);
	submit_keyed(f, 0, "a", COMMAND, "k", &lost);
	assert_int_equal(lost.code, ERR_OUTCOME_LOST);
	claim_for_nobody(f, "k2", &record, 1, &claim);
	submit_keyed(f, 0, "gone", COMMAND, "k2", &lost);
	assert_int_equal(lost.code, ERR_KEY_CONFLICT);
	assert_int_equal(f->execs, 0);
}

static void
test_the_answer_outlives_the_sandbox_and_the_usual_time(void **state)
{
	struct fixture *f = *state;
	struct outcome first, again, job;
	struct sandbox_record record;
	struct err err;

	f->config.orphan_job_ttl_hours = 1e-9;
	make_sandbox(f, "a", &record);
	submit_keyed(f, 0, "a", COMMAND, "k", &first);
	wait_job(f, 0, first.job_id, &job);
	run_until_call(f, nothing_is_left);
	assert_int_equal(delete_sandbox(f, 0, "t", "a", &err), 0);
	submit_keyed(f, 1, "a", COMMAND, "k", &again);
	assert_string_equal(again.job_id, first.job_id);
	wait_job(f, 1, again.job_id, &job);
	assert_string_equal(job.status, "succeeded");
}

/* Its time begins at the end of the job. */
static void
test_a_key_is_forgotten_after_its_time(void **state)
{
	struct fixture *f = *state;
	struct outcome first, again;
	struct sandbox_record record;

	make_sandbox(f, "a", &record);
	f->config.idempotency_ttl_seconds = 0;
	f->next = FAKE_HOLD;
	submit_keyed(f, 0, "a", COMMAND, "k", &first);
	run_until_call(f, agent_has_a_job);
	submit_keyed(f, 1, "a", COMMAND, "k", &again);
	assert_string_equal(again.job_id, first.job_id);
	fake_end(f, first.job_id, 0);
	run_until_call(f, nothing_is_left);
	submit_keyed(f, 1, "a", "{\"command\":\"y\"}", "k", &again);
	assert_int_equal(again.code, ERR_NONE);
	assert_string_not_equal(again.job_id, first.job_id);
	run_until_call(f, nothing_is_left);
}

static void
test_a_queued_job_with_a_key_survives_its_process(void **state)
{
	struct fixture *f = *state;
	struct outcome first, second, job, again;
	struct sandbox_record record;
	uint32_t slot;
	struct job_record live;

	make_sandbox(f, "a", &record);
	f->next = FAKE_HOLD;
	submit(f, 1, "a", COMMAND, &first, NULL);
	run_until_call(f, agent_has_a_job);
	submit_keyed(f, 0, "a", COMMAND, "k", &second);
	fixture_kill(f, 0);
	assert_true(job_table_find(shm_jobs(f->shm), second.job_id, &live, &slot));
	exec_resume(f->services[1], slot);
	submit_keyed(f, 1, "a", COMMAND, "k", &again);
	assert_string_equal(again.job_id, second.job_id);
	fake_end(f, first.job_id, 0);
	wait_job(f, 1, second.job_id, &job);
	assert_string_equal(job.status, "succeeded");
	assert_int_equal(fake_started(f, second.job_id), 1);
	run_until_call(f, nothing_is_left);
}

static void
test_the_bound_refuses_a_new_key_and_forgets_none(void **state)
{
	struct fixture *f = *state;
	struct outcome first, again, refused = { 0 };
	struct sandbox_record record;
	char key[16];

	make_sandbox(f, "a", &record);
	submit_keyed(f, 0, "a", COMMAND, "k", &first);
	run_until_call(f, nothing_is_left);
	for (int i = 0; i < 100 && refused.code == ERR_NONE; i++) {
		snprintf(key, sizeof key, "k%d", i);
		submit_keyed(f, 0, "a", "{\"command\":\"x\",\"wait\":false}", key, &refused);
		if (refused.code == ERR_NONE)
			run_until_call(f, nothing_is_left);
		f->job_count = 0;
	}
	assert_int_equal(refused.code, ERR_BUSY);
	assert_non_null(strstr(refused.message, "idempotency_max_records"));
	submit_keyed(f, 1, "a", COMMAND, "k", &again);
	assert_string_equal(again.job_id, first.job_id);
	run_until_call(f, nothing_is_left);
}

static void
test_keys_of_long_waiting_jobs_are_prolonged(void **state)
{
	struct fixture *f = *state;
	struct job_record before, after;
	struct outcome job, again;
	struct sandbox_record record;
	uint32_t slot;

	make_sandbox(f, "a", &record);
	f->next = FAKE_HOLD;
	submit_keyed(f, 0, "a", COMMAND, "k", &job);
	run_until_call(f, agent_has_a_job);
	assert_true(job_table_find(shm_jobs(f->shm), job.job_id, &before, &slot));
	exec_prolong_keys(f->services[1]);
	assert_true(job_table_read(shm_jobs(f->shm), slot, &after));
	assert_true(after.keep_until == before.keep_until);
	/* As if it had waited for two hours: its key has less left than it may need. */
	f->config.idempotency_ttl_seconds += 7200;
	exec_prolong_keys(f->services[1]);
	assert_true(job_table_read(shm_jobs(f->shm), slot, &after));
	assert_true(after.keep_until >= before.keep_until + 7199);
	submit_keyed(f, 1, "a", COMMAND, "k", &again);
	assert_string_equal(again.job_id, job.job_id);
	fake_end(f, job.job_id, 0);
	run_until_call(f, nothing_is_left);
}

static int
make_old(struct job_record *record, void *arg, struct err *err)
{
	(void)arg;
	(void)err;
	record->created_ms -= 3600 * 1000;
	return 0;
}

static void
test_descriptions_of_long_lived_jobs_move(void **state)
{
	struct fixture *f = *state;
	struct job_record before, after;
	struct sandbox_record record;
	struct outcome job, end;
	struct err err;
	uint32_t slot;

	make_sandbox(f, "a", &record);
	f->next = FAKE_HOLD;
	submit_keyed(f, 0, "a", COMMAND, "k", &job);
	run_until_call(f, agent_has_a_job);
	record_index_raise_segment(shm_index(f->shm), 100);
	exec_move_specs(f->services[1]);
	run_due(f);
	assert_true(job_table_find(shm_jobs(f->shm), job.job_id, &before, &slot));
	assert_true(before.spec.segment < 100);
	assert_int_equal(job_table_change(shm_jobs(f->shm), slot, job.job_id, make_old, NULL, &err), 0);
	exec_move_specs(f->services[1]);
	run_due(f);
	assert_true(job_table_read(shm_jobs(f->shm), slot, &after));
	assert_int_equal(after.spec.segment, 101);
	exec_move_specs(f->services[1]);
	run_due(f);
	/* Another process needs it, and the one that drove the job until now has not put the old place back. */
	fixture_kill(f, 0);
	exec_resume(f->services[1], slot);
	run_due(f);
	assert_true(job_table_read(shm_jobs(f->shm), slot, &after));
	assert_int_equal(after.spec.segment, 101);
	fake_end(f, job.job_id, 0);
	run_until_call(f, nothing_is_left);
	wait_job(f, 1, job.job_id, &end);
	assert_string_equal(end.status, "succeeded");
	fixture_revive(f, 0);
}

int
main(void)
{
#define RULE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_digest_is_of_what_is_asked),
		RULE(test_a_second_request_is_the_same_job),
		RULE(test_another_request_or_tenant_does_not_get_it),
		RULE(test_descriptions_of_long_lived_jobs_move),
		RULE(test_both_wait_for_readiness_and_one_runs),
		RULE(test_what_is_refused_leaves_the_key_free),
		RULE(test_a_full_job_table_gives_the_key_back),
		RULE(test_a_claim_without_a_job_is_recorded_under_its_id),
		RULE(test_an_old_claim_without_an_outcome_is_not_run_again),
		RULE(test_a_job_whose_end_was_lost_is_not_run_again),
		RULE(test_a_claim_for_another_life_of_the_sandbox_is_lost),
		RULE(test_the_answer_outlives_the_sandbox_and_the_usual_time),
		RULE(test_a_key_is_forgotten_after_its_time),
		RULE(test_a_queued_job_with_a_key_survives_its_process),
		RULE(test_the_bound_refuses_a_new_key_and_forgets_none),
		RULE(test_keys_of_long_waiting_jobs_are_prolonged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
