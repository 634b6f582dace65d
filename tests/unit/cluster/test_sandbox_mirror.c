/* test_sandbox_mirror.c - newer replaces older, in whatever order it comes; nobody else's word moves what is judged here. */
/* SPDX-License-Identifier: MIT */
#include "cluster/sandbox_mirror.h"
#include "base/alloc.h"
#include "base/err.h"
#include "cluster/sandbox_fields.h"
#include "ipc/section.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SLOTS = 4 };

static struct sandbox_mirror mirror = { .replica = "me", .host = "here" };
static struct mirror_place place;

static int
make_table(void **state)
{
	(void)state;
	mirror.table = aligned_alloc(4096, (sandbox_table_section_size(SLOTS) + 4095) / 4096 * 4096);
	assert_non_null(mirror.table);
	memset((void *)mirror.table, 0, sandbox_table_section_size(SLOTS));
	sandbox_table_section_init(mirror.table, SLOTS);
	return 0;
}

static int
free_table(void **state)
{
	(void)state;
	free(mirror.table);
	return 0;
}

static struct shared_sandbox
theirs(const char *id, const char *uid, const char *home, uint64_t version)
{
	struct shared_sandbox sandbox = {
		.record = { .tenant = "t", .status = SANDBOX_READY, .version = version, .labels = "{}" },
		.host = "here",
	};

	snprintf(sandbox.record.id, sizeof sandbox.record.id, "%s", id);
	snprintf(sandbox.record.uid, sizeof sandbox.record.uid, "%s", uid);
	snprintf(sandbox.record.home, sizeof sandbox.record.home, "%s", home);
	return sandbox;
}

static enum mirror_outcome
apply(const struct shared_sandbox *sandbox)
{
	return sandbox_mirror_apply(&mirror, sandbox, &place);
}

static struct sandbox_record
in_table(const char *id)
{
	struct sandbox_record record;

	assert_true(sandbox_table_find(mirror.table, id, &record, NULL));
	return record;
}

static void
insert_own(const char *id, const char *uid)
{
	struct shared_sandbox own = theirs(id, uid, "", 5);
	uint32_t slot;
	struct err err;

	own.record.activity_ms = 100;
	assert_int_equal(sandbox_table_insert(mirror.table, &own.record, &slot, &err), 0);
}

static void
test_an_older_version_never_replaces_a_newer_one(void **state)
{
	struct shared_sandbox first = theirs("a", "u1", "other", 7), second = theirs("a", "u1", "other", 8);

	(void)state;
	first.record.status = SANDBOX_PENDING;
	assert_int_equal(apply(&second), MIRROR_MADE);
	assert_int_equal(apply(&first), MIRROR_SAME);
	assert_int_equal(apply(&second), MIRROR_SAME);
	assert_int_equal(in_table("a").status, SANDBOX_READY);
	second.record.version = 9;
	second.record.status = SANDBOX_FAILED;
	assert_int_equal(apply(&second), MIRROR_FAILED);
	second.record.version = 10;
	second.record.status = SANDBOX_DELETING;
	assert_int_equal(apply(&second), MIRROR_ENDS);
	second.record.version = 11;
	assert_int_equal(apply(&second), MIRROR_CHANGED);
}

static void
test_what_only_this_server_knows_of_a_foreign_one_stays(void **state)
{
	struct shared_sandbox sandbox = theirs("a", "u1", "other", 7);

	(void)state;
	sandbox.record.activity_ms = 500;
	snprintf(sandbox.record.last_job, sizeof sandbox.record.last_job, "j");
	assert_int_equal(apply(&sandbox), MIRROR_MADE);
	sandbox = theirs("a", "u1", "other", 8);
	sandbox.record.activity_ms = 400;
	snprintf(sandbox.host, sizeof sandbox.host, "far");
	assert_int_equal(apply(&sandbox), MIRROR_CHANGED);
	assert_int_equal(in_table("a").activity_ms, 500);
	assert_string_equal(in_table("a").last_job, "j");
	assert_true(in_table("a").elsewhere);
}

static void
test_of_ours_only_a_patch_is_taken_over(void **state)
{
	struct shared_sandbox sandbox = theirs("a", "u1", "me", 6);

	(void)state;
	insert_own("a", "u1");
	sandbox.record.status = SANDBOX_FAILED;
	sandbox.record.ttl_ms = 70;
	sandbox.record.activity_ms = 90;
	assert_int_equal(apply(&sandbox), MIRROR_CHANGED);
	assert_int_equal(in_table("a").status, SANDBOX_READY);
	assert_int_equal(in_table("a").ttl_ms, 70);
	assert_int_equal(in_table("a").activity_ms, 100);
	assert_string_equal(in_table("a").home, "");
	assert_int_equal(apply(&sandbox), MIRROR_SAME);
}

static void
test_a_deletion_of_ours_is_told_until_it_is_done(void **state)
{
	struct shared_sandbox sandbox = theirs("a", "u1", "me", 6);

	(void)state;
	insert_own("a", "u1");
	sandbox.record.status = SANDBOX_DELETING;
	assert_int_equal(apply(&sandbox), MIRROR_UNWANTED);
	assert_int_equal(in_table("a").status, SANDBOX_READY);
	assert_int_equal(apply(&sandbox), MIRROR_UNWANTED);
	assert_false(sandbox_mirror_forget(&mirror, "a", "u1", &place));
}

static void
test_ours_that_is_not_here_is_not_made(void **state)
{
	struct shared_sandbox sandbox = theirs("a", "u1", "me", 6);

	(void)state;
	assert_int_equal(apply(&sandbox), MIRROR_UNKNOWN);
	assert_false(sandbox_table_find(mirror.table, "a", &place.record, NULL));
}

static void
test_lives_of_an_id_are_kept_apart(void **state)
{
	struct shared_sandbox old = theirs("a", "u1", "other", 6), next = theirs("a", "u2", "third", 9);

	(void)state;
	assert_int_equal(apply(&old), MIRROR_MADE);
	assert_int_equal(apply(&next), MIRROR_IN_PLACE);
	assert_string_equal(place.record.uid, "u1");
	assert_true(sandbox_mirror_forget(&mirror, "a", "u1", &place));
	assert_int_equal(apply(&next), MIRROR_MADE);
	assert_int_equal(apply(&old), MIRROR_SAME);
	assert_false(sandbox_mirror_forget(&mirror, "a", "u1", &place));
	assert_string_equal(in_table("a").uid, "u2");
}

static void
test_ours_makes_no_room_for_a_foreign_one(void **state)
{
	struct shared_sandbox next = theirs("a", "u2", "third", 9);

	(void)state;
	insert_own("a", "u1");
	assert_int_equal(apply(&next), MIRROR_SAME);
	assert_string_equal(in_table("a").uid, "u1");
}

static void
test_a_deleted_one_is_not_taken_in(void **state)
{
	struct shared_sandbox sandbox = theirs("a", "u1", "other", 6);

	(void)state;
	sandbox.record.status = SANDBOX_DELETING;
	assert_int_equal(apply(&sandbox), MIRROR_SAME);
	assert_false(sandbox_table_find(mirror.table, "a", &place.record, NULL));
}

static void
test_a_full_table_is_an_answer(void **state)
{
	char id[8];

	(void)state;
	for (int i = 0; i <= SLOTS; i++) {
		struct shared_sandbox sandbox;

		snprintf(id, sizeof id, "s%d", i);
		sandbox = theirs(id, "u", "other", 6);
		assert_int_equal(apply(&sandbox), i < SLOTS ? MIRROR_MADE : MIRROR_NO_ROOM);
	}
}

static void
test_signs_of_life_only_grow(void **state)
{
	struct shared_sandbox sign = theirs("a", "u1", "", 0);

	(void)state;
	insert_own("a", "u1");
	sign.record.activity_ms = 99;
	sign.record.heartbeat_ms = 0;
	assert_false(sandbox_mirror_sign(&mirror, &sign.record, &place.slot));
	sign.record.heartbeat_ms = 120;
	assert_true(sandbox_mirror_sign(&mirror, &sign.record, &place.slot));
	assert_int_equal(in_table("a").activity_ms, 100);
	assert_int_equal(in_table("a").heartbeat_ms, 120);
	snprintf(sign.record.uid, sizeof sign.record.uid, "u2");
	sign.record.heartbeat_ms = 130;
	assert_false(sandbox_mirror_sign(&mirror, &sign.record, &place.slot));
}

static void
test_what_outlives_its_server_is_ours_only_when_it_is_adopted(void **state)
{
	struct shared_sandbox sandbox = theirs("a", "u1", "me", 6);

	(void)state;
	mirror.adopts = true;
	assert_int_equal(apply(&sandbox), MIRROR_MADE);
	assert_string_equal(in_table("a").home, "me");
	assert_true(sandbox_mirror_adopt(&mirror, &sandbox, &place));
	assert_string_equal(in_table("a").home, "");
	assert_false(sandbox_mirror_adopt(&mirror, &sandbox, &place));
	sandbox = theirs("a", "u1", "other", 7);
	assert_int_equal(apply(&sandbox), MIRROR_CHANGED);
	assert_string_equal(in_table("a").home, "other");
	sandbox.record.uid[1] = '2';
	assert_false(sandbox_mirror_adopt(&mirror, &sandbox, &place));
	mirror.adopts = false;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_an_older_version_never_replaces_a_newer_one, make_table, free_table),
		cmocka_unit_test_setup_teardown(
			test_what_only_this_server_knows_of_a_foreign_one_stays, make_table, free_table),
		cmocka_unit_test_setup_teardown(test_of_ours_only_a_patch_is_taken_over, make_table, free_table),
		cmocka_unit_test_setup_teardown(
			test_a_deletion_of_ours_is_told_until_it_is_done, make_table, free_table),
		cmocka_unit_test_setup_teardown(test_ours_that_is_not_here_is_not_made, make_table, free_table),
		cmocka_unit_test_setup_teardown(test_lives_of_an_id_are_kept_apart, make_table, free_table),
		cmocka_unit_test_setup_teardown(test_ours_makes_no_room_for_a_foreign_one, make_table, free_table),
		cmocka_unit_test_setup_teardown(test_a_deleted_one_is_not_taken_in, make_table, free_table),
		cmocka_unit_test_setup_teardown(test_a_full_table_is_an_answer, make_table, free_table),
		cmocka_unit_test_setup_teardown(test_signs_of_life_only_grow, make_table, free_table),
		cmocka_unit_test_setup_teardown(
			test_what_outlives_its_server_is_ours_only_when_it_is_adopted, make_table, free_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
