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

	return record_index_put(table, &key, &(struct record_life){ .expires_at = expires_at }, &place, err);
}

static void
end(uint32_t n, double expires_at, double ended_at)
{
	struct record_life life = { .expires_at = expires_at, .ended_at = ended_at };
	struct record_key key = key_of(n);
	struct record_location place;

	assert_true(record_index_settle(table, &key, &life, &place));
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
	struct record_life life = { .expires_at = now + 100 };
	struct record_key key = key_of(5);
	struct err err;

	(void)state;
	assert_false(get(5, &place));
	assert_int_equal(put(5, 2, now + 100, &err), 0);
	assert_int_equal(record_index_put(table, &key, &life, &place, &err), -1);
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
		assert_int_equal(put(i, 1, now + 9000 - i, &err), 0);
	assert_int_equal(put(RECORDS, 1, now + 5000, &err), -1);
	assert_int_equal(err.code, ERR_BUSY);
	assert_false(record_index_make_room(table, now, now));
	for (uint32_t i = 0; i < RECORDS; i++)
		end(i, now + 9000 - i, now - RECORDS - 1 + i);
	assert_true(record_index_make_room(table, now, now));
	assert_int_equal(record_index_count(table), RECORDS - RECORDS / 16);
	assert_int_equal(record_index_forgotten(table), RECORDS / 16);
	assert_int_equal(put(RECORDS, 1, now + 5000, &err), 0);
	assert_false(get(0, &place));
	assert_true(get(RECORDS / 8, &place));
	assert_true(get(RECORDS - 1, &place));
	for (uint32_t i = 0; i < RECORDS; i++)
		if (get(i, &place))
			assert_int_equal(place.length, i);
}

static void
test_what_runs_or_has_just_ended_makes_no_room(void **state)
{
	struct record_location place;
	struct err err;

	(void)state;
	for (uint32_t i = 0; i < RECORDS; i++) {
		assert_int_equal(put(i, 1, now + 1000, &err), 0);
		if (i % 64 == 7)
			end(i, now + 1000, now - 100);
		else if (i % 2 == 0)
			end(i, now + 1000, now - 10);
	}
	assert_true(record_index_make_room(table, now, now - 50));
	for (uint32_t i = 0; i < RECORDS; i++)
		assert_int_equal(get(i, &place), i % 64 != 7);
	for (uint32_t i = 0; i < RECORDS / 64; i++)
		assert_int_equal(put(RECORDS + i, 1, now + 1000, &err), 0);
	assert_false(record_index_make_room(table, now, now - 50));
	/* Expired is expired, whether it has ended or not. */
	assert_true(record_index_make_room(table, now + 1001, 0));
	assert_int_equal(record_index_count(table), 0);
	assert_int_equal(record_index_forgotten(table), RECORDS / 64);
}

static void
test_used_segments_are_marked(void **state)
{
	uint32_t numbers[] = { 2, 3, 5, 9 };
	bool used[4] = { false };
	struct err err;

	(void)state;
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(put(i, 3 + i % 3, now + 1000, &err), 0);
	record_index_mark_used(table, numbers, 4, used);
	assert_false(used[0] || used[3]);
	assert_true(used[1] && used[2]);
}

static void
test_pages_name_what_ended_late_enough(void **state)
{
	struct record_key keys[7];
	bool seen[RECORDS] = { false };
	uint32_t from = 0, total = 0, n;
	size_t count;
	struct err err;

	(void)state;
	for (n = 0; n < 1000; n++) {
		assert_int_equal(put(n, 1, now + 100, &err), 0);
		if (n % 2 == 0)
			end(n, now + 100, n < 500 ? now - 60 : now);
	}
	do {
		from = record_index_page(table, from, now - 30, keys, 7, &count);
		assert_true(count <= 7);
		for (size_t i = 0; i < count; i++) {
			memcpy(&n, keys[i].bytes, sizeof n);
			assert_true(n >= 500 && n < 1000 && n % 2 == 0 && !seen[n]);
			seen[n] = true;
			total++;
		}
	} while (from != 0);
	assert_int_equal(total, 250);
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
move_one(void *arg)
{
	uint32_t n = *(uint32_t *)arg;
	struct record_location from = { .segment = 77, .length = n, .offset = n * UINT64_C(3) }, to = from;
	struct record_life life = { .expires_at = now + 2000 };
	struct record_key key = key_of(n);
	struct err err;

	to.segment = 78;
	(void)!record_index_move(table, &key, &life, &from, &to, &err);
}

static void
test_kill_at_any_point_of_a_move_never_loses_it(void **state)
{
	struct record_location place;
	unsigned nth = 1, moved = 0;
	uint32_t n = 21;
	bool killed;

	(void)state;
	do {
		struct err err;

		memset((void *)table, 0, record_index_section_size(RECORDS));
		record_index_section_init(table, RECORDS);
		assert_int_equal(put(n, 77, now + 1000, &err), 0);
		killed = crash_at(nth++, move_one, &n);
		assert_true(get(n, &place));
		assert_true(place.segment == 77 || place.segment == 78);
		moved += place.segment == 78;
		assert_int_equal(record_index_count(table), 1);
		assert_whole(1000);
	} while (killed);
	assert_true(nth > 4 && moved > 1);
}

static void
test_move_and_drop_name_the_place(void **state)
{
	struct record_location place = { .segment = 1, .length = 5, .offset = 15 }, to = place, found;
	struct record_life life = { .expires_at = now + 1000 };
	struct record_key key = key_of(5);
	struct err err;

	(void)state;
	assert_int_equal(put(5, 1, now + 1000, &err), 0);
	to.segment = 2;
	assert_int_equal(record_index_move(table, &key, &life, &to, &place, &err), -1);
	assert_int_equal(err.code, ERR_STALE);
	assert_int_equal(record_index_move(table, &key, &life, &place, &to, &err), 0);
	assert_false(record_index_drop_at(table, &key, &place));
	assert_true(get(5, &found));
	assert_int_equal(found.segment, 2);
	assert_true(record_index_drop_at(table, &key, &to));
	assert_false(get(5, &found));
	assert_int_equal(record_index_move(table, &key, &life, &to, &place, &err), -1);
	assert_int_equal(put(5, 1, now + 1000, &err), 0);
	end(5, now + 1000, now - 10);
	assert_true(record_index_find(table, &key, now, &found, &life));
	assert_true(life.ended_at >= now - 10 && life.ended_at <= now - 9);
	assert_int_equal(record_index_move(table, &key, &life, &place, &to, &err), -1);
	assert_int_equal(err.code, ERR_STALE);
	end(5, now - 1, now - 10);
	assert_false(get(5, &found));
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
		INDEX_TEST(test_what_runs_or_has_just_ended_makes_no_room),
		INDEX_TEST(test_used_segments_are_marked),
		INDEX_TEST(test_pages_name_what_ended_late_enough),
		INDEX_TEST(test_segment_numbers_grow),
		INDEX_TEST(test_adoption_keeps_entries),
		INDEX_TEST(test_kill_at_any_point_leaves_it_or_not),
		INDEX_TEST(test_kill_at_any_point_of_a_move_never_loses_it),
		INDEX_TEST(test_move_and_drop_name_the_place),
		INDEX_TEST(test_random_kills_tear_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
