/* test_sandbox_table.c - the table keeps whole records, whoever is killed while writing them. */
/* SPDX-License-Identifier: MIT */
#include "ipc/sandbox_table.h"
#include "base/err.h"
#include "crash.h"
#include "ipc/section.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { SLOTS = 40 };

static struct shm_sandboxes *table;

static int
make_table(void **state)
{
	(void)state;
	table = crash_map(sandbox_table_section_size(SLOTS));
	sandbox_table_section_init(table, SLOTS);
	return 0;
}

static int
unmap_table(void **state)
{
	(void)state;
	crash_unmap(table, sandbox_table_section_size(SLOTS));
	return 0;
}

/* Every byte of these says n; a mixture shows. */
static void
paint(struct sandbox_record *record, unsigned n)
{
	record->memory_bytes = record->ttl_ms = record->activity_ms = record->heartbeat_ms = n;
	record->status = n % 2 ? SANDBOX_READY : SANDBOX_PENDING;
	memset(record->labels, 'a' + (int)(n % 26), sizeof record->labels - 1);
	memset(record->image, 'a' + (int)(n % 26), sizeof record->image - 1);
	record->pid_start = n;
}

static bool
is_painted(const struct sandbox_record *record)
{
	struct sandbox_record whole = *record;

	paint(&whole, (unsigned)record->memory_bytes);
	return memcmp(&whole, record, sizeof whole) == 0;
}

static void
name(struct sandbox_record *record, const char *id, const char *uid)
{
	memset(record, 0, sizeof *record);
	snprintf(record->id, sizeof record->id, "%s", id);
	snprintf(record->uid, sizeof record->uid, "%s", uid);
}

static uint32_t
insert(const char *id, const char *uid)
{
	struct sandbox_record record;
	uint32_t slot = UINT32_MAX;
	struct err err;

	name(&record, id, uid);
	paint(&record, 1);
	if (sandbox_table_insert(table, &record, &slot, &err) < 0)
		fail_msg("%s", err.msg);
	return slot;
}

static int
set_next(struct sandbox_record *record, void *arg, struct err *err)
{
	(void)arg;
	(void)err;
	paint(record, (unsigned)record->memory_bytes + 1);
	return 0;
}

/* Every list agrees with a plain scan, and all slots can still be used. */
static void
check_invariants(void)
{
	struct sandbox_record record, other;
	uint32_t used = 0, slot, extra[SLOTS];
	char id[32];

	for (uint32_t i = 0; i < SLOTS; i++) {
		if (!sandbox_table_read(table, i, &record))
			continue;
		used++;
		assert_true(i < sandbox_table_bound(table));
		assert_true(is_painted(&record));
		assert_true(sandbox_table_find(table, record.id, &other, &slot));
		assert_int_equal(slot, i);
	}
	assert_false(sandbox_table_remove(table, 0, "nobody")); /* takes the lock, so it repairs */
	assert_int_equal(sandbox_table_count(table), used);
	for (uint32_t i = used; i < SLOTS; i++) {
		snprintf(id, sizeof id, "extra-%u", i);
		extra[i] = insert(id, "extra");
	}
	assert_int_equal(sandbox_table_count(table), SLOTS);
	for (uint32_t i = used; i < SLOTS; i++)
		assert_true(sandbox_table_remove(table, extra[i], "extra"));
}

static void
test_insert_find_read_remove(void **state)
{
	struct sandbox_record record;
	uint32_t a = insert("a", "u1"), b = insert("b", "u2"), slot;

	(void)state;
	assert_true(sandbox_table_find(table, "a", &record, &slot));
	assert_int_equal(slot, a);
	assert_string_equal(record.uid, "u1");
	assert_true(sandbox_table_find(table, "b", &record, NULL));
	assert_false(sandbox_table_find(table, "c", &record, NULL));
	assert_true(sandbox_table_read(table, b, &record));
	assert_false(sandbox_table_read(table, b + 1, &record));
	assert_false(sandbox_table_read(table, SLOTS, &record));
	assert_int_equal(sandbox_table_bound(table), 2);
	assert_true(sandbox_table_remove(table, a, "u1"));
	assert_false(sandbox_table_remove(table, a, "u1"));
	assert_false(sandbox_table_find(table, "a", &record, NULL));
	assert_int_equal(sandbox_table_count(table), 1);
	check_invariants();
}

static void
test_same_id_is_refused_and_full_table_has_no_capacity(void **state)
{
	struct sandbox_record record;
	uint32_t slot;
	struct err err;
	char id[32];

	(void)state;
	insert("a", "u1");
	name(&record, "a", "u2");
	assert_int_equal(sandbox_table_insert(table, &record, &slot, &err), -1);
	assert_int_equal(err.code, ERR_EXISTS);
	for (int i = 1; i < SLOTS; i++) {
		snprintf(id, sizeof id, "id-%d", i);
		insert(id, "u");
	}
	name(&record, "z", "u2");
	assert_int_equal(sandbox_table_insert(table, &record, &slot, &err), -1);
	assert_int_equal(err.code, ERR_NO_CAPACITY);
	assert_non_null(strstr(err.msg, "max_sandboxes"));
}

static void
test_another_life_of_the_id_is_not_touched(void **state)
{
	uint32_t slot = insert("a", "u1");
	struct sandbox_record record;
	struct err err;

	(void)state;
	assert_true(sandbox_table_remove(table, slot, "u1"));
	assert_int_equal(insert("a", "u2"), slot);
	assert_int_equal(sandbox_table_change(table, slot, "u1", set_next, NULL, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_false(sandbox_table_remove(table, slot, "u1"));
	assert_true(sandbox_table_read(table, slot, &record));
	assert_int_equal(record.memory_bytes, 1);
	assert_int_equal(sandbox_table_change(table, SLOTS, "u1", set_next, NULL, &err), -1);
}

static int
refuse(struct sandbox_record *record, void *arg, struct err *err)
{
	(void)arg;
	paint(record, 77);
	return err_set(err, ERR_CONFLICT, "no");
}

static int
rename_it(struct sandbox_record *record, void *arg, struct err *err)
{
	(void)arg;
	(void)err;
	strcpy(record->id, "other");
	strcpy(record->uid, "other");
	return 0;
}

static void
test_refused_change_leaves_the_record_and_no_change_touches_its_name(void **state)
{
	uint32_t slot = insert("a", "u1");
	struct sandbox_record record;
	struct err err;

	(void)state;
	assert_int_equal(sandbox_table_change(table, slot, "u1", refuse, NULL, &err), -1);
	assert_int_equal(err.code, ERR_CONFLICT);
	assert_int_equal(sandbox_table_change(table, slot, "u1", rename_it, NULL, &err), 0);
	assert_true(sandbox_table_find(table, "a", &record, NULL));
	assert_string_equal(record.uid, "u1");
	assert_int_equal(record.memory_bytes, 1);
	check_invariants();
}

/* --- killed at every point of every operation --- */

static void
do_insert(void *arg)
{
	(void)arg;
	insert("new", "un");
}

static void
do_change(void *arg)
{
	struct err err;

	if (sandbox_table_change(table, *(uint32_t *)arg, "ub", set_next, NULL, &err) < 0)
		abort();
}

static void
do_remove(void *arg)
{
	if (!sandbox_table_remove(table, *(uint32_t *)arg, "ub"))
		abort();
}

static unsigned
kill_everywhere(crash_f *operation)
{
	struct sandbox_record record;
	unsigned nth = 1;
	uint32_t slot;
	bool killed;

	do {
		memset((void *)table, 0, sandbox_table_section_size(SLOTS));
		sandbox_table_section_init(table, SLOTS);
		insert("a", "ua");
		slot = insert("b", "ub");
		insert("c", "uc");
		assert_true(sandbox_table_remove(table, insert("d", "ud"), "ud"));
		killed = crash_at(nth++, operation, &slot);
		/* Readers are first: they must not wait for a writer to come. */
		assert_true(sandbox_table_find(table, "a", &record, NULL));
		sandbox_table_find(table, "b", &record, NULL);
		assert_false(sandbox_table_find(table, "d", &record, NULL));
		if (sandbox_table_read(table, slot, &record))
			assert_true(is_painted(&record));
		check_invariants();
	} while (killed);
	return nth - 2;
}

static void
test_kill_at_any_point_leaves_old_or_new(void **state)
{
	(void)state;
	assert_true(kill_everywhere(do_insert) >= 6);
	assert_true(kill_everywhere(do_change) >= 6);
	assert_true(kill_everywhere(do_remove) >= 4);
}

static void
repair_it(void *arg)
{
	(void)arg;
	if (sandbox_table_remove(table, 0, "nobody"))
		abort();
}

static void
test_kill_while_repairing_is_repaired(void **state)
{
	uint32_t slot = insert("b", "ub");
	unsigned nth = 1;

	(void)state;
	insert("a", "ua");
	insert("c", "uc");
	insert("d", "ud");
	insert("e", "ue");
	assert_true(crash_at(3, do_remove, &slot));
	while (crash_at(nth, repair_it, NULL))
		nth++;
	assert_true(nth >= 5);
	check_invariants();
}

/* --- killed at random, read meanwhile --- */

static void
hammer(void *arg)
{
	unsigned seed = *(unsigned *)arg;
	struct sandbox_record record;
	struct err err;
	uint32_t slot;
	char id[32];

	for (;;) {
		snprintf(id, sizeof id, "id-%d", rand_r(&seed) % (SLOTS / 2));
		if (!sandbox_table_find(table, id, &record, &slot)) {
			name(&record, id, "life");
			paint(&record, 1);
			(void)!sandbox_table_insert(table, &record, &slot, &err);
		} else if (!is_painted(&record)) {
			_exit(1);
		} else if (rand_r(&seed) % 4 == 0) {
			(void)!sandbox_table_remove(table, slot, record.uid);
		} else {
			(void)!sandbox_table_change(table, slot, record.uid, set_next, NULL, &err);
		}
	}
}

static void
test_random_kills_tear_nothing(void **state)
{
	(void)state;
	for (int round = 0; round < 150; round++) {
		unsigned seeds[3] = { crash_random(1 << 20), crash_random(1 << 20), crash_random(1 << 20) };
		pid_t pids[3];

		for (int i = 0; i < 3; i++)
			pids[i] = crash_start(hammer, &seeds[i]);
		for (int i = 0; i < 3; i++)
			crash_kill_after(pids[i], 500 + crash_random(2500));
		check_invariants();
	}
}

static void
change_forever(void *arg)
{
	for (;;)
		do_change(arg);
}

static void
test_reader_never_sees_a_mixture(void **state)
{
	uint32_t slot = insert("b", "ub");
	struct sandbox_record record;
	int64_t last = 0;
	pid_t pid = crash_start(change_forever, &slot);

	(void)state;
	for (int i = 0; i < 100000; i++) {
		assert_true(sandbox_table_find(table, "b", &record, NULL));
		assert_true(is_painted(&record));
		assert_true(record.memory_bytes >= last);
		last = record.memory_bytes;
	}
	crash_kill_after(pid, 0);
}

/* A stranger's id that stays is always found, however much its neighbours come and go. */
static void
churn(void *arg)
{
	char id[32];

	(void)arg;
	for (unsigned n = 0;; n++) {
		snprintf(id, sizeof id, "churn-%u", n % 60);
		if (!sandbox_table_remove(table, insert(id, "u"), "u"))
			_exit(1);
	}
}

static void
test_lookup_finds_what_stays_while_others_come_and_go(void **state)
{
	struct sandbox_record record;
	char id[32];
	pid_t pid;

	(void)state;
	for (int i = 0; i < SLOTS - 2; i++) {
		snprintf(id, sizeof id, "stays-%d", i);
		insert(id, "u");
	}
	pid = crash_start(churn, NULL);
	for (int i = 0; i < 200000; i++) {
		snprintf(id, sizeof id, "stays-%d", i % (SLOTS - 2));
		assert_true(sandbox_table_find(table, id, &record, NULL));
	}
	crash_kill_after(pid, 0);
	check_invariants();
}

/* --- adoption and size --- */

static void
test_adoption_keeps_whole_records_and_doubts_damaged_ones(void **state)
{
	uint32_t a = insert("a", "ua"), b = insert("damaged", "ub");
	struct sandbox_record record;
	char *at;

	(void)state;
	at = memmem(table, sandbox_table_section_size(SLOTS), "damaged", 8);
	assert_non_null(at);
	memset(at + offsetof(struct sandbox_record, labels), 'x', SANDBOX_LABELS_SIZE);
	sandbox_table_section_adopt(table, SLOTS);
	assert_true(sandbox_table_read(table, a, &record));
	assert_true(is_painted(&record));
	assert_true(sandbox_table_find(table, "damaged", &record, NULL));
	assert_int_equal(record.status, SANDBOX_DOUBTFUL);
	assert_string_equal(record.uid, "ub");
	assert_true(sandbox_table_remove(table, b, "ub"));
	check_invariants();
}

static void
test_a_change_armed_when_all_died_is_there_after_adoption(void **state)
{
	struct sandbox_record record;
	unsigned seen_old = 0, seen_new = 0;

	(void)state;
	for (unsigned nth = 1;; nth++) {
		uint32_t slot = insert("b", "ub");
		bool killed = crash_at(nth, do_change, &slot);

		sandbox_table_section_adopt(table, SLOTS);
		assert_true(sandbox_table_read(table, slot, &record));
		assert_true(is_painted(&record));
		seen_old += record.memory_bytes == 1;
		seen_new += record.memory_bytes == 2;
		assert_true(sandbox_table_remove(table, slot, "ub"));
		if (!killed)
			break;
	}
	assert_true(seen_old >= 1 && seen_new >= 3);
	check_invariants();
}

static void
test_a_million_records(void **state)
{
	enum { MILLION = 1000000 };
	size_t bytes = sandbox_table_section_size(MILLION);
	struct shm_sandboxes *small = table;
	struct sandbox_record record;
	uint32_t slot;
	struct err err;

	(void)state;
	table = crash_map(bytes);
	sandbox_table_section_init(table, MILLION);
	for (unsigned i = 0; i < 20000; i++) {
		name(&record, "", "u");
		snprintf(record.id, sizeof record.id, "id-%u", i);
		assert_int_equal(sandbox_table_insert(table, &record, &slot, &err), 0);
	}
	assert_int_equal(sandbox_table_capacity(table), MILLION);
	assert_int_equal(sandbox_table_bound(table), 20000);
	assert_true(sandbox_table_find(table, "id-19999", &record, &slot));
	assert_false(sandbox_table_find(table, "id-20000", &record, &slot));
	assert_true(crash_at(2, do_insert, NULL));
	assert_true(sandbox_table_find(table, "id-7", &record, &slot));
	assert_true(sandbox_table_remove(table, slot, "u"));
	assert_int_equal(sandbox_table_count(table), 19999);
	crash_unmap(table, bytes);
	table = small;
}

#define TABLE_TEST(f) cmocka_unit_test_setup_teardown(f, make_table, unmap_table)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TABLE_TEST(test_insert_find_read_remove),
		TABLE_TEST(test_same_id_is_refused_and_full_table_has_no_capacity),
		TABLE_TEST(test_another_life_of_the_id_is_not_touched),
		TABLE_TEST(test_refused_change_leaves_the_record_and_no_change_touches_its_name),
		TABLE_TEST(test_kill_at_any_point_leaves_old_or_new),
		TABLE_TEST(test_kill_while_repairing_is_repaired),
		TABLE_TEST(test_random_kills_tear_nothing),
		TABLE_TEST(test_reader_never_sees_a_mixture),
		TABLE_TEST(test_lookup_finds_what_stays_while_others_come_and_go),
		TABLE_TEST(test_adoption_keeps_whole_records_and_doubts_damaged_ones),
		TABLE_TEST(test_a_change_armed_when_all_died_is_there_after_adoption),
		TABLE_TEST(test_a_million_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
