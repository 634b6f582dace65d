/* test_record_log.c - what was kept is found, what is torn is not, and space comes back. */
/* SPDX-License-Identifier: MIT */
#include "backend/record_log.h"
#include "backend/record_segment.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/id.h"
#include "base/log.h"
#include "crash.h"
#include "ipc/section.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { RECORDS = 1024 };

static char dir[64];
static struct shm_index *table;
static uint32_t table_records;
static struct record_log *record_log;
static double now;
static int64_t keep_ended_s; /* of a log that keeps; negative: it does not */

static void
make_index(uint32_t records)
{
	table = crash_map(record_index_section_size(records));
	record_index_section_init(table, records);
	table_records = records;
}

static void
drop_index(void)
{
	crash_unmap(table, record_index_section_size(table_records));
}

static void
open_log(int64_t segment_bytes, int64_t max_bytes)
{
	struct record_log_options options = {
		.dir = dir,
		.segment_bytes = segment_bytes,
		.max_bytes = max_bytes,
		.keep = keep_ended_s >= 0,
		.keep_ended_s = keep_ended_s,
	};
	struct err err;

	if (record_log_open(&options, table, &record_log, &err) < 0)
		fail_msg("%s", err.msg);
}

static void
open_that_keeps(int64_t ended_s)
{
	record_log_close(record_log);
	keep_ended_s = ended_s;
	open_log(4096, 0);
}

static int
set_up(void **state)
{
	(void)state;
	now = clock_wall();
	strcpy(dir, "/tmp/ipc-log-XXXXXX");
	if (mkdtemp(dir) == NULL)
		return -1;
	make_index(RECORDS);
	keep_ended_s = -1;
	open_log(0, 0);
	return 0;
}

static int
tear_down(void **state)
{
	struct err err;

	(void)state;
	record_log_close(record_log);
	drop_index();
	return file_remove_tree_at(AT_FDCWD, dir, &err);
}

/* As after a boot: nothing but the files is left. */
static void
lose_memory(void)
{
	struct err err;

	record_log_close(record_log);
	drop_index();
	make_index(RECORDS);
	open_log(0, 0);
	if (record_log_rebuild(record_log, &err) < 0)
		fail_msg("%s", err.msg);
}

static struct record_key
key_of(uint32_t n)
{
	char name[16];

	snprintf(name, sizeof name, "%u", n);
	return record_key_named(RECORD_JOB_RESULT, "tenant", name);
}

static int
append(uint32_t n, double expires_at, const char *text, struct record_location *ret_place, struct err *err)
{
	struct record_key key = key_of(n);

	return record_log_append(
		record_log, RECORD_JOB_RESULT, &key, expires_at, text, strlen(text), true, ret_place, err);
}

static struct record_location
keep(uint32_t n, double expires_at, const char *text)
{
	struct record_location place;
	struct err err;

	if (append(n, expires_at, text, &place, &err) < 0)
		fail_msg("%s", err.msg);
	return place;
}

static void
assert_found(uint32_t n, const char *text)
{
	struct record_key key = key_of(n);
	char *data;
	size_t len;
	struct err err;

	if (record_log_find(record_log, RECORD_JOB_RESULT, &key, &data, &len, &err) < 0)
		fail_msg("%u: %s", n, err.msg);
	assert_int_equal(len, strlen(text));
	assert_string_equal(data, text);
	free(data);
}

static void
assert_gone(uint32_t n)
{
	struct record_key key = key_of(n);
	char *data;
	size_t len;
	struct err err;

	assert_int_equal(record_log_find(record_log, RECORD_JOB_RESULT, &key, &data, &len, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
}

static char *
path_of(uint32_t segment)
{
	static char path[128];
	char name[SEGMENT_NAME_SIZE];

	segment_name(segment, name);
	snprintf(path, sizeof path, "%s/%s", dir, name);
	return path;
}

static int
count_files(void)
{
	int n = 0;
	DIR *d = opendir(dir);
	struct dirent *entry;

	while ((entry = readdir(d)) != NULL)
		n += segment_number(entry->d_name) != 0;
	closedir(d);
	return n;
}

static off_t
size_of(uint32_t segment)
{
	struct stat st;

	return stat(path_of(segment), &st) == 0 ? st.st_size : -1;
}

static void
age(uint32_t segment)
{
	struct timespec times[2] = { { .tv_sec = (time_t)now - 3600 }, { .tv_sec = (time_t)now - 3600 } };

	assert_int_equal(utimensat(AT_FDCWD, path_of(segment), times, 0), 0);
}

static void
sweep(double when, uint32_t live_from)
{
	struct err err;

	if (record_log_sweep(record_log, when, live_from, &err) < 0)
		fail_msg("%s", err.msg);
}

static void
test_what_was_kept_is_read_back(void **state)
{
	struct record_location place = keep(1, now + 100, "hello");
	struct record_key key = key_of(1), other = key_of(2);
	char *data;
	size_t len;
	struct err err;

	(void)state;
	keep(2, now + 100, "");
	assert_found(1, "hello");
	assert_found(2, "");
	assert_gone(3);
	assert_int_equal(record_log_read(record_log, RECORD_JOB_RESULT, &key, &place, &data, &len, &err), 0);
	assert_string_equal(data, "hello");
	free(data);
	assert_int_equal(record_log_read(record_log, RECORD_JOB_RESULT, NULL, &place, &data, &len, &err), 0);
	free(data);
	assert_int_equal(record_log_read(record_log, RECORD_JOB_SPEC, &key, &place, &data, &len, &err), -1);
	assert_int_equal(record_log_read(record_log, RECORD_JOB_RESULT, &other, &place, &data, &len, &err), -1);
	place.offset++;
	assert_int_equal(record_log_read(record_log, RECORD_JOB_RESULT, &key, &place, &data, &len, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	place.segment = 0;
	assert_int_equal(record_log_read(record_log, RECORD_JOB_RESULT, &key, &place, &data, &len, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
}

static void
test_first_of_a_key_stands_and_the_second_takes_no_space(void **state)
{
	struct record_location first = keep(1, now + 100, "first"), second = { 0 };
	off_t size = size_of(first.segment);
	struct err err;

	(void)state;
	assert_int_equal(append(1, now + 100, "second", &second, &err), -1);
	assert_int_equal(err.code, ERR_EXISTS);
	assert_memory_equal(&first, &second, sizeof first);
	assert_int_equal(size_of(first.segment), size);
	assert_found(1, "first");
}

static void
test_expired_is_gone_and_can_be_kept_again(void **state)
{
	(void)state;
	keep(1, now - 1, "old");
	assert_gone(1);
	keep(1, now + 100, "new");
	assert_found(1, "new");
	lose_memory();
	assert_found(1, "new");
}

static void
test_rebuilt_index_knows_all_that_has_not_expired(void **state)
{
	struct record_location place;
	struct record_key key = key_of(9);
	struct err err;

	(void)state;
	keep(1, now + 100, "one");
	keep(2, now - 1, "two");
	assert_int_equal(
		record_log_append(record_log, RECORD_JOB_SPEC, &key, now + 100, "spec", 4, false, &place, &err), 0);
	keep(3, now + 100, "three");
	lose_memory();
	assert_found(1, "one");
	assert_gone(2);
	assert_found(3, "three");
	assert_gone(9);
	assert_int_equal(record_index_count(table), 2);
	keep(4, now + 100, "four");
	assert_int_equal(count_files(), 2); /* an old segment is never written again */
	lose_memory();
	assert_found(1, "one");
	assert_found(4, "four");
}

static void
test_torn_tail_is_skipped(void **state)
{
	struct record_location one = keep(1, now + 100, "one"), two = keep(2, now + 100, "two-two-two");

	(void)state;
	for (off_t size = size_of(one.segment) - 1; size > (off_t)two.offset; size--) {
		assert_int_equal(truncate(path_of(one.segment), size), 0);
		lose_memory();
		assert_found(1, "one");
		assert_gone(2);
	}
}

static void
flip(uint32_t segment, off_t at)
{
	int fd = open(path_of(segment), O_RDWR | O_CLOEXEC);
	char byte;

	assert_int_equal(pread(fd, &byte, 1, at), 1);
	byte ^= 1;
	assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	close(fd);
}

static void
test_damage_is_never_served(void **state)
{
	struct record_location one = keep(1, now + 100, "one"), two = keep(2, now + 100, "two");

	(void)state;
	for (off_t at = (off_t)two.offset; at < size_of(one.segment); at++) {
		struct record_key key = key_of(2);
		char *data;
		size_t len;
		struct err err;

		flip(one.segment, at);
		if (record_log_find(record_log, RECORD_JOB_RESULT, &key, &data, &len, &err) == 0) {
			/* only the commit mark is not covered */
			assert_true(at >= (off_t)(two.offset + offsetof(struct record_head, committed)));
			assert_true(at < (off_t)(two.offset + sizeof(struct record_head)));
			assert_string_equal(data, "two");
			free(data);
		}
		assert_found(1, "one");
		flip(one.segment, at);
	}
	assert_found(2, "two");
}

static void
forget_mark(struct record_location place)
{
	static const char zeros[4];
	int fd = open(path_of(place.segment), O_RDWR | O_CLOEXEC);

	assert_int_equal(pwrite(fd, zeros, 4, (off_t)(place.offset + offsetof(struct record_head, committed))), 4);
	close(fd);
}

/* Killed between writing and the index, A left "lost"; B came later and was first in the index. */
static void
test_rebuilt_index_says_what_the_lost_one_said(void **state)
{
	struct record_key key = key_of(1);
	struct record_location lost;

	(void)state;
	lost = keep(1, now + 100, "lost");
	forget_mark(lost);
	record_index_drop(table, &key);
	keep(1, now + 100, "was served");
	assert_found(1, "was served");
	lose_memory();
	assert_found(1, "was served");

	/* The same with the files the other way round: numbers do not tell who was first. */
	keep(2, now + 100, "was served too");
	key = key_of(2);
	record_index_drop(table, &key);
	lost = keep(2, now + 100, "lost");
	forget_mark(lost);
	lose_memory();
	assert_found(2, "was served too");

	/* A record without the mark and without a rival is as good as any. */
	forget_mark(keep(3, now + 100, "only"));
	lose_memory();
	assert_found(3, "only");
}

static void
test_segments_end_at_their_size(void **state)
{
	char text[1000];

	(void)state;
	record_log_close(record_log);
	open_log(4096, 0);
	memset(text, 'x', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	for (uint32_t i = 0; i < 30; i++)
		keep(i, now + 100, text);
	assert_int_equal(count_files(), 10);
	for (uint32_t i = 0; i < 30; i++)
		assert_found(i, text);
}

static void
test_sweep_removes_expired_segments_also_the_open_one(void **state)
{
	struct record_location place = keep(1, now + 100, "one");

	(void)state;
	sweep(now + 50, UINT32_MAX);
	assert_found(1, "one");
	sweep(now + 200, place.segment); /* a live job needs it */
	assert_true(size_of(place.segment) > 0);
	sweep(now + 200, UINT32_MAX);
	assert_int_equal(count_files(), 0);
	assert_gone(1);
	keep(2, now + 500, "two"); /* the writer notices and goes on in another */
	assert_int_equal(count_files(), 1);
	assert_found(2, "two");
	sweep(now + 300, UINT32_MAX);
	assert_found(2, "two");
}

static void
test_record_that_lives_longer_keeps_the_segment(void **state)
{
	(void)state;
	keep(1, now + 1000, "long");
	keep(2, now + 10, "short");
	sweep(now + 500, UINT32_MAX);
	assert_found(1, "long");
	assert_gone(2);
}

static void
test_over_budget_the_oldest_go(void **state)
{
	struct record_location places[6];
	char text[1000];

	(void)state;
	record_log_close(record_log);
	open_log(1000, 4000);
	memset(text, 'x', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	for (uint32_t i = 0; i < 6; i++)
		places[i] = keep(i, now + 1000, text);
	assert_int_equal(count_files(), 6);
	sweep(now, UINT32_MAX); /* too young: their jobs may not be known yet */
	assert_int_equal(count_files(), 6);
	for (int i = 0; i < 6; i++)
		age(places[i].segment);
	sweep(now, places[1].segment); /* a live job needs all but the first */
	assert_int_equal(count_files(), 5);
	sweep(now, UINT32_MAX);
	assert_int_equal(count_files(), 3);
	for (uint32_t i = 0; i < 3; i++)
		assert_gone(i);
	for (uint32_t i = 3; i < 6; i++)
		assert_found(i, text);
	assert_int_equal(record_index_count(table), 3);
}

static void
test_full_index_forgets_the_oldest_however_long_they_last(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < RECORDS + 100; i++) {
		/* The clock has full seconds there. */
		if (i == RECORDS / 2)
			usleep(1200 * 1000);
		keep(i, now + 9000 - i, "x");
	}
	assert_int_equal(record_index_forgotten(table) / (RECORDS / 16), 2);
	assert_found(RECORDS + 99, "x");
	for (uint32_t i = RECORDS / 2; i < RECORDS; i++)
		assert_found(i, "x");
	lose_memory();
	assert_found(RECORDS + 99, "x");
}

static void
test_released_and_replaced_records_stay_so(void **state)
{
	struct record_location first, second;
	struct record_key key = key_of(1);
	struct err err;

	(void)state;
	open_that_keeps(0);
	first = keep(1, now + 100, "first");
	second = first;
	assert_int_equal(
		record_log_replace(record_log, RECORD_JOB_RESULT, &key, now + 200, "second", 6, &second, &err), 0);
	assert_found(1, "second");
	record_log_release(record_log, &key, &first);
	lose_memory();
	assert_found(1, "second");
	record_log_release(record_log, &key, &second);
	assert_gone(1);
	lose_memory();
	assert_gone(1);
}

static void
test_a_log_that_keeps_refuses_when_its_index_is_full(void **state)
{
	struct record_location place;
	struct err err;
	uint32_t n = 0;

	(void)state;
	open_that_keeps(0);
	while (append(n, now + 1000 + n, "x", &place, &err) == 0)
		n++;
	assert_int_equal(err.code, ERR_BUSY);
	assert_int_equal(n, RECORDS);
	for (uint32_t i = 0; i < n; i++)
		assert_found(i, "x");
}

static void
settle(uint32_t n, double ended_at)
{
	struct record_life life = { .expires_at = now + 1000, .ended_at = ended_at };
	struct record_key key = key_of(n);

	record_log_settle(record_log, &key, &life);
}

static void
test_what_ended_long_ago_makes_room_also_for_a_new_index(void **state)
{
	struct record_location place;
	struct err err;

	(void)state;
	open_that_keeps(100);
	for (uint32_t i = 0; i < RECORDS; i++)
		keep(i, now + 1000, "x");
	for (uint32_t i = 0; i < RECORDS; i++)
		if (i % 3 != 0)
			settle(i, now - (i % 3 == 1 ? 200 : 50));
	lose_memory();
	for (uint32_t i = 0; append(RECORDS + i, now + 1000, "y", &place, &err) == 0; i++)
		assert_true(i < RECORDS);
	assert_int_equal(err.code, ERR_BUSY);
	for (uint32_t i = 0; i < RECORDS; i++) {
		if (i % 3 == 1)
			assert_gone(i);
		else
			assert_found(i, "x");
	}
}

static void
test_segments_that_the_index_does_not_know_go(void **state)
{
	uint32_t last;

	(void)state;
	open_that_keeps(0);
	for (uint32_t i = 0; i < RECORDS; i++)
		keep(i, now + 1000, "x");
	for (uint32_t i = 0; i < RECORDS; i++)
		if (i != RECORDS / 2)
			settle(i, now - 9000);
	for (uint32_t i = 0; i < 3 * RECORDS; i++) {
		last = keep(RECORDS + i, now + 1000, "y").segment;
		settle(RECORDS + i, now - 8000 + i);
	}
	assert_int_equal(count_files(), last);
	sweep(now, UINT32_MAX); /* all of them are too young */
	assert_int_equal(count_files(), last);
	for (uint32_t number = 1; number <= last; number++)
		age(number);
	sweep(now, UINT32_MAX);
	/* As many as the index has room for, and the one that did not give way. */
	assert_true(count_files() <= (int)last / 3 + 2);
	assert_found(RECORDS / 2, "x");
	assert_found(4 * RECORDS - 1, "y");
	keep(9 * RECORDS, now + 1000, "z");
	lose_memory();
	assert_found(RECORDS / 2, "x");
	assert_found(9 * RECORDS, "z");
}

static void
test_too_large_is_refused(void **state)
{
	struct record_location place;
	struct record_key key = key_of(1);
	struct err err;

	(void)state;
	assert_int_equal(record_log_append(record_log, RECORD_JOB_RESULT, &key, now + 100, "x",
				 (size_t)RECORD_MAX_BYTES + 1, true, &place, &err),
		-1);
	assert_int_equal(err.code, ERR_TOO_LARGE);
}

static void
test_full_disk_keeps_nothing_and_works_again_later(void **state)
{
	size_t len = 3 << 20;
	char *big = malloc(len + 1);
	struct record_location place;
	bool mounted;
	off_t size;
	struct err err;

	(void)state;
	memset(big, 'x', len);
	big[len] = '\0';
	record_log_close(record_log);
	mounted = mount("tmpfs", dir, "tmpfs", 0, "size=2m") == 0;
	open_log(0, 0);
	if (mounted) {
		place = keep(1, now + 100, "small");
		size = size_of(place.segment);
		assert_int_equal(append(2, now + 100, big, &place, &err), -1);
		assert_int_equal(err.code, ERR_NO_SPACE);
		assert_int_equal(size_of(place.segment), size);
		keep(3, now + 100, "small again");
		assert_found(1, "small");
		assert_gone(2);
		lose_memory();
		assert_found(3, "small again");
		record_log_close(record_log);
		assert_int_equal(umount2(dir, MNT_DETACH), 0);
		open_log(0, 0);
	}
	free(big);
	if (!mounted)
		skip();
}

/* No fault of the request: it may be tried again. */
static void
test_disk_that_cannot_be_written_is_unavailable(void **state)
{
	struct record_location place;
	bool mounted;
	struct err err;

	(void)state;
	record_log_close(record_log);
	mounted = mount("tmpfs", dir, "tmpfs", 0, "size=2m") == 0;
	open_log(0, 0);
	if (mounted) {
		assert_int_equal(mount("tmpfs", dir, "tmpfs", MS_REMOUNT | MS_RDONLY, ""), 0);
		assert_int_equal(append(1, now + 100, "lost", &place, &err), -1);
		assert_int_equal(err.code, ERR_UNAVAILABLE);
		assert_int_equal(mount("tmpfs", dir, "tmpfs", MS_REMOUNT, ""), 0);
		keep(1, now + 100, "kept");
		assert_found(1, "kept");
		record_log_close(record_log);
		assert_int_equal(umount2(dir, MNT_DETACH), 0);
		open_log(0, 0);
	}
	if (!mounted)
		skip();
}

/* As many as one writer may leave before it is killed, however late that is. */
enum { WRITER_RECORDS = 10000 };

static void
append_until_killed(void *arg)
{
	uint32_t base = *(uint32_t *)arg;
	char text[64];
	struct record_location place;
	struct err err;

	for (uint32_t i = 0; i < WRITER_RECORDS; i++) {
		snprintf(text, sizeof text, "record %u", base + i);
		if (append(base + i, now + 100, text, &place, &err) < 0)
			_exit(1);
	}
	pause();
}

/* Children that share this process's open log make segments of their own; whatever is killed, nothing is torn. */
static void
test_killed_writers_leave_whole_records(void **state)
{
	char text[64];
	uint32_t found = 0, slowness = 1;

	(void)state;
	drop_index();
	make_index(1 << 18);
	record_log_close(record_log);
	open_log(20000, 0);
	keep(4000000, now + 100, "mine");
	for (uint32_t round = 0; round < 60; round++) {
		uint32_t before = found;
		uint32_t bases[2] = { round * 2 * WRITER_RECORDS, (round * 2 + 1) * WRITER_RECORDS };
		pid_t pids[2];

		for (int i = 0; i < 2; i++)
			pids[i] = crash_start(append_until_killed, &bases[i]);
		for (int i = 0; i < 2; i++)
			crash_kill_after(pids[i], slowness * (500 + crash_random(3000)));
		for (int i = 0; i < 2; i++) {
			struct record_location place;
			struct record_key key;

			for (uint32_t n = bases[i]; n < bases[i] + WRITER_RECORDS; n++) {
				key = key_of(n);
				if (!record_index_get(table, &key, now, &place))
					break;
				snprintf(text, sizeof text, "record %u", n);
				assert_found(n, text);
				found++;
			}
		}
		/* A busy machine, or valgrind, needs longer to write anything. */
		if (found == before && slowness < 100)
			slowness *= 2;
	}
	keep(4000001, now + 100, "mine too");
	assert_true(found > 60);
	record_log_close(record_log);
	drop_index();
	make_index(1 << 18);
	open_log(0, 0);
	struct err err;
	assert_int_equal(record_log_rebuild(record_log, &err), 0);
	assert_true(record_index_count(table) >= found + 2);
	assert_found(4000000, "mine");
	assert_found(4000001, "mine too");
}

static void
sweep_forever(void *arg)
{
	(void)arg;
	for (;;)
		sweep(now + 50, UINT32_MAX);
}

/* Half of the records have expired for the sweeper, half have not: of those none may be lost. */
static void
test_no_kept_record_is_lost_to_a_sweeper(void **state)
{
	pid_t pid;
	char text[64];

	(void)state;
	record_log_close(record_log);
	open_log(300, 0);
	pid = crash_start(sweep_forever, NULL);
	for (uint32_t i = 0; i < 900; i++) {
		snprintf(text, sizeof text, "record %u", i);
		keep(i, i % 8 < 4 ? now + 10 : now + 1000, text);
	}
	crash_kill_after(pid, 1000);
	for (uint32_t i = 0; i < 900; i++) {
		snprintf(text, sizeof text, "record %u", i);
		if (i % 8 >= 4)
			assert_found(i, text);
	}
}

static void
test_hundred_thousand_records_are_rebuilt(void **state)
{
	enum { MANY = 100000 };
	struct err err;
	int64_t started;

	(void)state;
	record_log_close(record_log);
	drop_index();
	make_index(MANY);
	open_log(0, 0);
	for (uint32_t i = 0; i < MANY; i++)
		keep(i, now + 1000, "a result");
	record_log_close(record_log);
	drop_index();
	make_index(MANY);
	open_log(0, 0);
	started = clock_boot_ms();
	assert_int_equal(record_log_rebuild(record_log, &err), 0);
	print_message("rebuilt in %d ms\n", (int)(clock_boot_ms() - started));
	assert_int_equal(record_index_count(table), MANY);
	assert_found(MANY / 2, "a result");
}

static void
test_foreign_and_empty_files_do_no_harm(void **state)
{
	char path[128];
	int fd;

	(void)state;
	keep(1, now + 100, "one");
	snprintf(path, sizeof path, "%s/README", dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, "hello", 5), 5);
	close(fd);
	fd = open(path_of(77), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	close(fd);
	fd = open(path_of(78), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(
		write(fd, "garbage that is longer than a head of a segment and of a record, all in all", 75), 75);
	close(fd);
	lose_memory();
	assert_found(1, "one");
	assert_true(keep(2, now + 100, "two").segment > 78);
	sweep(now, UINT32_MAX);
	assert_int_equal(count_files(), 2);
	assert_int_equal(access(path, F_OK), 0);
}

/* Whoever reads a fifo waits for a writer. */
static void
test_what_is_no_plain_file_holds_up_nobody(void **state)
{
	struct record_location place = keep(1, now + 100, "one");
	char *path = path_of(place.segment);

	(void)state;
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	record_log_close(record_log);
	open_log(0, 0);
	assert_gone(1);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("/dev/zero", path), 0);
	assert_gone(1);
	lose_memory();
	assert_gone(1);
	keep(1, now + 100, "again");
	assert_found(1, "again");
	sweep(now, UINT32_MAX);
	assert_found(1, "again");
}

static void
test_keys_tell_kind_tenant_and_name_apart(void **state)
{
	struct record_key a = record_key_named(RECORD_TOMBSTONE, "ab", "c");
	struct record_key b = record_key_named(RECORD_TOMBSTONE, "a", "bc");
	struct record_key c = record_key_named(RECORD_KEY, "ab", "c");
	struct record_key d = record_key_named(RECORD_TOMBSTONE, "ab", "c");
	char id[ID_UUID_SIZE];
	uint8_t bytes[16];

	(void)state;
	assert_memory_not_equal(&a, &b, sizeof a);
	assert_memory_not_equal(&a, &c, sizeof a);
	assert_memory_equal(&a, &d, sizeof a);
	id_uuid4(id);
	assert_true(id_uuid_bytes(id, bytes));
	a = record_key_job(id);
	assert_memory_equal(&a, bytes, sizeof bytes);
	a = record_key_job("no uuid");
	b = record_key_job("no uuid either");
	assert_memory_not_equal(&a, &b, sizeof a);
}

#define LOG_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		LOG_TEST(test_what_was_kept_is_read_back),
		LOG_TEST(test_first_of_a_key_stands_and_the_second_takes_no_space),
		LOG_TEST(test_expired_is_gone_and_can_be_kept_again),
		LOG_TEST(test_rebuilt_index_knows_all_that_has_not_expired),
		LOG_TEST(test_torn_tail_is_skipped),
		LOG_TEST(test_damage_is_never_served),
		LOG_TEST(test_rebuilt_index_says_what_the_lost_one_said),
		LOG_TEST(test_segments_end_at_their_size),
		LOG_TEST(test_sweep_removes_expired_segments_also_the_open_one),
		LOG_TEST(test_record_that_lives_longer_keeps_the_segment),
		LOG_TEST(test_over_budget_the_oldest_go),
		LOG_TEST(test_full_index_forgets_the_oldest_however_long_they_last),
		LOG_TEST(test_released_and_replaced_records_stay_so),
		LOG_TEST(test_a_log_that_keeps_refuses_when_its_index_is_full),
		LOG_TEST(test_what_ended_long_ago_makes_room_also_for_a_new_index),
		LOG_TEST(test_segments_that_the_index_does_not_know_go),
		LOG_TEST(test_too_large_is_refused),
		LOG_TEST(test_full_disk_keeps_nothing_and_works_again_later),
		LOG_TEST(test_disk_that_cannot_be_written_is_unavailable),
		LOG_TEST(test_killed_writers_leave_whole_records),
		LOG_TEST(test_no_kept_record_is_lost_to_a_sweeper),
		LOG_TEST(test_hundred_thousand_records_are_rebuilt),
		LOG_TEST(test_foreign_and_empty_files_do_no_harm),
		LOG_TEST(test_what_is_no_plain_file_holds_up_nobody),
		cmocka_unit_test(test_keys_tell_kind_tenant_and_name_apart),
	};
	int devnull = open("/dev/null", O_WRONLY | O_CLOEXEC);

	log_set_fd(devnull);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
