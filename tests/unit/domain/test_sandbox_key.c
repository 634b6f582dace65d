/* test_sandbox_key.c - one Idempotency-Key is one sandbox: at once, later, elsewhere, and after a death. */
/* SPDX-License-Identifier: MIT */
#include "fixture.h"
#include "backend/key_store.h"
#include "backend/record_log.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "domain/idempotency.h"
#include "ipc/record_index.h"
#include "ipc/sandbox_table.h"
#include "ipc/shm.h"

#include <json-c/json.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define BODY "{\"image\":\"default\"}"

struct created {
	int calls;
	enum err_code code;
	char id[SANDBOX_ID_SIZE];
	double created_at;
};

static void
on_created(struct json_object *answer, const struct err *why, void *arg)
{
	struct created *created = arg;

	created->calls++;
	created->code = why != NULL ? why->code : ERR_NONE;
	if (answer == NULL)
		return;
	snprintf(created->id, sizeof created->id, "%s",
		json_object_get_string(json_object_object_get(answer, "sandbox_id")));
	created->created_at = json_object_get_double(json_object_object_get(answer, "created_at"));
}

static void
key_of(const char *json, const char *name, struct idempotency_key *ret_key)
{
	struct err err;
	AUTO_JSON struct json_object *body = json_parse(json, strlen(json), &err);

	assert_non_null(body);
	ret_key->name = name;
	idempotency_digest("create", "", body, NULL, ret_key->digest);
}

static struct created
create(struct fixture *f, int service, const char *json, const char *name)
{
	struct created created = { 0 };
	struct idempotency_key key;
	struct err err;
	AUTO_JSON struct json_object *body = json_parse(json, strlen(json), &err);
	struct json_reader reader;
	struct sandbox_spec spec;

	key_of(json, name, &key);
	json_reader_init(&reader, body);
	sandbox_spec_read(&f->config, &reader, &spec);
	assert_null(reader.faults);
	sandbox_create_keyed(f->services[service], "t", &spec, &key, on_created, &created);
	assert_int_equal(created.calls, 1);
	return created;
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
claim_for_nobody(struct fixture *f, const char *name, const char *id, double age_s)
{
	struct record_key place = record_key_named(RECORD_KEY, "t", name);
	struct key_store *store = key_store_create(service_key_log(f->services[0]));
	struct key_claim claim = { .claimed_at = clock_wall() - age_s };
	struct idempotency_key key;

	key_of(BODY, name, &key);
	memcpy(claim.digest, key.digest, sizeof claim.digest);
	snprintf(claim.id, sizeof claim.id, "%s", id);
	key_store_put(store, &place, &claim, clock_wall() + 1000, on_claimed, NULL);
	key_store_free(store);
}

static void
test_a_second_create_is_the_same_sandbox(void **state)
{
	struct fixture *f = *state;
	struct created first = create(f, 0, BODY, "k"), again = create(f, 1, BODY, "k");

	assert_int_equal(first.code, ERR_NONE);
	assert_string_equal(again.id, first.id);
	assert_true(again.created_at == first.created_at);
	assert_int_equal(sandbox_table_count(shm_sandboxes(f->shm)), 1);
	assert_int_equal(scoreboard_sum(shm_scoreboard(f->shm), METRIC_KEY_REPLAYS), 1);
	again = create(f, 1, "{\"image\":\"default\",\"cpu\":\"500m\"}", "k");
	assert_int_equal(again.code, ERR_KEY_CONFLICT);
	again = create(f, 1, BODY, "k2");
	assert_string_not_equal(again.id, first.id);
}

static bool
no_sandbox_is_left(struct fixture *f)
{
	return sandbox_table_count(shm_sandboxes(f->shm)) == 0;
}

static void
test_a_deleted_sandbox_is_not_made_again(void **state)
{
	struct fixture *f = *state;
	struct created first = create(f, 0, BODY, "k"), again;
	struct err err;

	assert_int_equal(delete_sandbox(f, 1, "t", first.id, &err), 0);
	run_until_call(f, no_sandbox_is_left);
	again = create(f, 0, BODY, "k");
	assert_int_equal(again.code, ERR_NONE);
	assert_string_equal(again.id, first.id);
	assert_true(no_sandbox_is_left(f));
}

static void
test_a_refused_create_leaves_the_key_free(void **state)
{
	struct fixture *f = *state;
	struct created made;

	assert_int_equal(create(f, 0, "{\"image\":\"dir:/not/allowed\"}", "k").code, ERR_DENIED);
	assert_int_equal(record_index_count(shm_keys(f->shm)), 0);
	for (int i = 0; i < 8; i++) {
		char name[8];

		snprintf(name, sizeof name, "k%d", i);
		assert_int_equal(create(f, 0, BODY, name).code, ERR_NONE);
	}
	assert_int_equal(create(f, 0, BODY, "k").code, ERR_NO_CAPACITY);
	made = create(f, 1, BODY, "k3");
	assert_int_equal(made.code, ERR_NONE);
	assert_int_equal(record_index_count(shm_keys(f->shm)), 8);
}

static void
test_a_claim_without_a_sandbox_is_entered_under_its_id(void **state)
{
	struct fixture *f = *state;
	struct created first, again;

	claim_for_nobody(f, "k", "sb-claimed", 1);
	first = create(f, 0, BODY, "k");
	again = create(f, 1, BODY, "k");
	assert_string_equal(first.id, "sb-claimed");
	assert_string_equal(again.id, "sb-claimed");
	assert_true(again.created_at == first.created_at);
	assert_int_equal(sandbox_table_count(shm_sandboxes(f->shm)), 1);
}

/* It died after it had recorded the sandbox, before it could keep the answer. */
static void
test_a_claim_whose_sandbox_is_there_is_answered_with_it(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct created again;
	struct err err;
	bool existing;

	assert_int_equal(create_sandbox(f, 0, "{\"image\":\"default\",\"sandbox_id\":\"sb-made\"}", &record,
				 &existing, &err),
		0);
	claim_for_nobody(f, "k", "sb-made", 1000);
	again = create(f, 1, BODY, "k");
	assert_string_equal(again.id, "sb-made");
	assert_true(again.created_at == record.created_at);
	assert_int_equal(sandbox_table_count(shm_sandboxes(f->shm)), 1);
}

static void
test_an_old_claim_without_a_sandbox_is_lost(void **state)
{
	struct fixture *f = *state;

	claim_for_nobody(f, "k", "sb-claimed", 100);
	assert_int_equal(create(f, 0, BODY, "k").code, ERR_OUTCOME_LOST);
	assert_true(no_sandbox_is_left(f));
}

static void
test_the_same_id_under_two_keys_is_one_sandbox(void **state)
{
	struct fixture *f = *state;
	const char *json = "{\"image\":\"default\",\"sandbox_id\":\"mine\"}";
	struct created first = create(f, 0, json, "k"), second = create(f, 1, json, "k2");

	assert_int_equal(second.code, ERR_NONE);
	assert_string_equal(first.id, "mine");
	assert_string_equal(second.id, "mine");
	assert_int_equal(sandbox_table_count(shm_sandboxes(f->shm)), 1);
}

int
main(void)
{
#define RULE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		RULE(test_a_second_create_is_the_same_sandbox),
		RULE(test_a_deleted_sandbox_is_not_made_again),
		RULE(test_a_refused_create_leaves_the_key_free),
		RULE(test_a_claim_without_a_sandbox_is_entered_under_its_id),
		RULE(test_a_claim_whose_sandbox_is_there_is_answered_with_it),
		RULE(test_an_old_claim_without_a_sandbox_is_lost),
		RULE(test_the_same_id_under_two_keys_is_one_sandbox),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
