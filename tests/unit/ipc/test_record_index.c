/* test_record_index.c - the first entry of a key stands; full, expired and torn ones make room. */
/* SPDX-License-Identifier: MIT */
#include "ipc/record_index.h"
#include "base/clock.h"
#include "base/err.h"
#include "crash.h"
#include "ipc/section.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { RECORDS = 1024 };

static struct shm_index *table;
static double now;

static int
make_index(void **state)
{
	(void)state;
	now = clock_wall();
	table = crash_map(record_index_section_size(RECORDS));
	record_index_section_init(table, RECORDS);
	return 0;
}

static int
unmap_index(void **state)
{
	(void)state;
	crash_unmap(table, record_index_section_size(RECORDS));
	return 0;
}

static struct record_key
key_of(uint32_t n)
{
	struct record_key key = { { 0 } };

	memcpy(key.bytes, &n, sizeof n);
	return key;
}

static int
put(uint32_t n, uint32_t segment, double expires_at, struct err *err)
{
	struct record_location place = { .segment = segment, .length = n, .offset = n * UINT64_C(3) };
	struct record_key key = key_of(n);

	return record_index_put(table, &key, expires_at, &place, err);
}

static bool
get(uint32_t n, struct record_location *ret_place)
{
	struct record_key key = key_of(n);

	return record_index_get(table, &key, now, ret_place);
}

static void
test_first_one_wins(void **state)
{
	struct record_location place = { .segment = 9, .length = 1, .offset = 1 };
	struct record_key key = key_of(5);
	struct err err;

	(void)state;
	assert_false(get(5, &place));
	assert_int_equal(put(5, 2, now + 100, &err), 0);
	assert_int_equal(record_index_put(table, &key, now + 100, &place, &err), -1);
	assert_int_equal(err.code, ERR_EXISTS);
	assert_int_equal(place.segment, 2);
	assert_int_equal(place.length, 5);
	assert_int_equal(place.offset, 15);
	assert_true(get(5, &place));
	assert_int_equal(record_index_count(table), 1);
}

static void
test_expired_entry_is_gone_and_can_be_replaced(void **state)
{
	struct record_location place;
	struct err err;

	(void)state;
	assert_int_equal(put(5, 2, now - 1, &err), 0);
	assert_false(get(5, &place));
	assert_int_equal(put(5, 3, now + 100, &err), 0);
	assert_true(get(5, &place));
	assert_int_equal(place.segment, 3);
	assert_int_equal(record_index_count(table), 1);
}

static void
test_drop_and_purge(void **state)
{
	struct record_location place;
	struct record_key key = key_of(50);
	struct err err;

	(void)state;
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(put(i, 1 + i / 10, now + i, &err), 0);
	record_index_drop(table, &key);
	record_index_drop(table, &key);
	assert_false(get(50, &place));
	assert_int_equal(record_index_count(table), 99);
	assert_int_equal(record_index_purge(table, now + 24.5, 0), 74);
	assert_int_equal(record_index_purge(table, now, 9), 20);
	for (uint32_t i = 80; i < 100; i++)
		assert_true(get(i, &place));
	assert_false(get(79, &place));
}

static void
test_full_index_is_busy_until_room_is_made(void **state)
{
	struct record_location place;
	struct err err;

	(void)state;
	for (uint32_t i = 0; i < RECORDS; i++)
		assert_int_equal(put(i, 1, now + 1000 + i, &err), 0);
	assert_int_equal(put(RECORDS, 1, now + 5000, &err), -1);
	assert_int_equal(err.code, ERR_BUSY);
	record_index_make_room(table, now);
	assert_true(record_index_count(table) < RECORDS - RECORDS / 32);
	assert_true(record_index_count(table) > RECORDS / 2);
	assert_int_equal(put(RECORDS, 1, now + 5000, &err), 0);
	assert_false(get(0, &place));
	assert_true(get(RECORDS - 1, &place));
	for (uint32_t i = 0; i < RECORDS; i++)
		if (get(i, &place))
			assert_int_equal(place.length, i);
}

static void
test_segment_numbers_grow(void **state)
{
	uint32_t a = record_index_next_segment(table), b = record_index_next_segment(table);

	(void)state;
	assert_true(a != 0 && b > a);
	record_index_raise_segment(table, 100);
	record_index_raise_segment(table, 50);
	assert_int_equal(record_index_next_segment(table), 101);
}

static void
test_adoption_keeps_entries(void **state)
{
	struct record_location place;
	struct err err;

	(void)state;
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(put(i, 1, now + 1000, &err), 0);
	record_index_next_segment(table);
	record_index_section_adopt(table, RECORDS);
	assert_int_equal(record_index_count(table), 100);
	for (uint32_t i = 0; i < 100; i++)
		assert_true(get(i, &place));
	assert_int_equal(record_index_next_segment(table), 2);
}

static void
put_one(void *arg)
{
	struct err err;

	if (put(*(uint32_t *)arg, 77, now + 1000, &err) < 0)
		abort();
}

static void
drop_one(void *arg)
{
	struct record_key key = key_of(*(uint32_t *)arg);

	record_index_drop(table, &key);
}

/* Fills it up to the last entry, so a leaked one shows. */
static void
assert_whole(uint32_t from)
{
	struct record_location place;
	uint32_t count = record_index_count(table), added = 0;
	struct err err;

	while (put(from + added, 1, now + 1000, &err) == 0)
		added++;
	assert_int_equal(count + added, RECORDS);
	for (uint32_t i = 0; i < added; i++)
		assert_true(get(from + i, &place));
}

static void
test_kill_at_any_point_leaves_it_or_not(void **state)
{
	struct record_location place;
	uint32_t n = 21;
	crash_f *const operations[] = { put_one, drop_one };

	(void)state;
	for (int op = 0; op < 2; op++) {
		unsigned nth = 1;
		bool killed;

		do {
			struct err err;

			memset((void *)table, 0, record_index_section_size(RECORDS));
			record_index_section_init(table, RECORDS);
			for (uint32_t i = 0; i < 20; i++)
				assert_int_equal(put(i, 1, now + 1000, &err), 0);
			if (op == 1)
				assert_int_equal(put(n, 77, now + 1000, &err), 0);
			killed = crash_at(nth++, operations[op], &n);
			for (uint32_t i = 0; i < 20; i++)
				assert_true(get(i, &place));
			if (get(n, &place)) {
				assert_int_equal(place.segment, 77);
				assert_int_equal(place.length, n);
			}
			assert_whole(1000);
		} while (killed);
		assert_true(nth > 4);
	}
}

static void
hammer(void *arg)
{
	unsigned seed = *(unsigned *)arg;

	for (;;) {
		uint32_t n = (uint32_t)rand_r(&seed) % 300;
		struct record_location place;
		struct err err;

		if (rand_r(&seed) % 3 == 0)
			drop_one(&n);
		else
			(void)!put(n, 1 + n % 5, now + 1000, &err);
		if (get(n, &place) && (place.length != n || place.segment != 1 + n % 5))
			_exit(1);
	}
}

static void
test_random_kills_tear_nothing(void **state)
{
	(void)state;
	for (int round = 0; round < 200; round++) {
		unsigned seeds[2] = { crash_random(1 << 20), crash_random(1 << 20) };
		pid_t pids[2];

		for (int i = 0; i < 2; i++)
			pids[i] = crash_start(hammer, &seeds[i]);
		for (int i = 0; i < 2; i++)
			crash_kill_after(pids[i], 300 + crash_random(1500));
		for (uint32_t n = 0; n < 300; n++) {
			struct record_location place;

			if (get(n, &place))
				assert_true(place.length == n && place.segment == 1 + n % 5);
		}
	}
	assert_whole(1000);
}

#define INDEX_TEST(f) cmocka_unit_test_setup_teardown(f, make_index, unmap_index)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		INDEX_TEST(test_first_one_wins),
		INDEX_TEST(test_expired_entry_is_gone_and_can_be_replaced),
		INDEX_TEST(test_drop_and_purge),
		INDEX_TEST(test_full_index_is_busy_until_room_is_made),
		INDEX_TEST(test_segment_numbers_grow),
		INDEX_TEST(test_adoption_keeps_entries),
		INDEX_TEST(test_kill_at_any_point_leaves_it_or_not),
		INDEX_TEST(test_random_kills_tear_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
