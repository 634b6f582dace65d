/* test_record_batch.c - together or alone, nobody is told before it is kept, and everybody once. */
/* SPDX-License-Identifier: MIT */
#include "backend/record_batch.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "crash.h"
#include "ipc/section.h"

#include <event2/event.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { RECORDS = 1 << 16, MANY = 1000 };

struct told {
	int count;
	enum err_code code;
	struct record_location place;
};

static char dir[64];
static struct shm_index *table;
static struct record_log *record_log;
static struct record_batch *batch;
static struct event_base *base;

static void
open_all(void)
{
	struct record_log_options options = { .dir = dir };
	struct err err;

	table = crash_map(record_index_section_size(RECORDS));
	record_index_section_init(table, RECORDS);
	if (record_log_open(&options, table, &record_log, &err) < 0)
		fail_msg("%s", err.msg);
	base = event_base_new();
	batch = record_batch_create(base, record_log);
}

static void
close_all(void)
{
	record_batch_free(batch);
	event_base_free(base);
	record_log_close(record_log);
	crash_unmap(table, record_index_section_size(RECORDS));
}

static int
set_up(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/record-batch-XXXXXX");
	if (mkdtemp(dir) == NULL)
		return -1;
	open_all();
	return 0;
}

static int
tear_down(void **state)
{
	struct err err;

	(void)state;
	close_all();
	return file_remove_tree_at(AT_FDCWD, dir, &err);
}

/* As after a boot: nothing but the files is left. */
static void
lose_memory(void)
{
	struct err err;

	close_all();
	open_all();
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

static void
on_told(const struct record_location *place, const struct err *why, void *arg)
{
	struct told *told = arg;

	told->count++;
	told->code = why != NULL ? why->code : ERR_NONE;
	told->place = *place;
}

static void
put(uint32_t n, const char *data, size_t len, bool indexed, struct told *told)
{
	*told = (struct told){ 0 };
	record_batch_put(batch,
		&(struct record_put){ .kind = indexed ? RECORD_JOB_RESULT : RECORD_JOB_SPEC,
			.key = key_of(n),
			.expires_at = clock_wall() + 100,
			.data = data,
			.len = len,
			.indexed = indexed,
			.done = on_told,
			.arg = told });
}

static void
put_text(uint32_t n, const char *text, struct told *told)
{
	put(n, text, strlen(text), true, told);
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
	assert_string_equal(data, text);
	free(data);
}

static void
test_all_of_a_turn_are_told_at_its_end(void **state)
{
	static struct told told[MANY];
	char text[32], *data;
	size_t len;
	struct err err;

	(void)state;
	for (uint32_t i = 0; i < 100; i++) {
		snprintf(text, sizeof text, "record %u", i);
		put(i, text, strlen(text), i % 2 == 0, &told[i]);
	}
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(told[i].count, 0);
	event_base_loop(base, EVLOOP_NONBLOCK);
	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < 100; i++) {
			struct record_key key = key_of(i);

			assert_int_equal(told[i].count, 1);
			assert_int_equal(told[i].code, ERR_NONE);
			snprintf(text, sizeof text, "record %u", i);
			assert_int_equal(
				record_log_read(record_log, i % 2 == 0 ? RECORD_JOB_RESULT : RECORD_JOB_SPEC, &key,
					&told[i].place, &data, &len, &err),
				0);
			assert_string_equal(data, text);
			free(data);
			if (i % 2 == 0)
				assert_found(i, text);
		}
		lose_memory();
	}
}

/* Also for an index that is filled from the files later, which knows nothing of the order they were put in. */
static void
test_first_of_a_key_stands(void **state)
{
	struct told before, first, second, other;

	(void)state;
	put_text(1, "before", &before);
	event_base_loop(base, EVLOOP_NONBLOCK);
	put_text(1, "too late", &second);
	put_text(2, "first", &first);
	put_text(2, "second", &other);
	put_text(3, "empty follows", &before);
	event_base_loop(base, EVLOOP_NONBLOCK);
	assert_int_equal(second.code, ERR_EXISTS);
	assert_int_equal(first.code, ERR_NONE);
	assert_int_equal(other.code, ERR_EXISTS);
	assert_memory_equal(&other.place, &first.place, sizeof first.place);
	assert_int_equal(second.count + first.count + other.count, 3);
	for (int round = 0; round < 2; round++) {
		assert_found(1, "before");
		assert_found(2, "first");
		assert_found(3, "empty follows");
		lose_memory();
	}
}

static void
test_big_records_go_alone_and_any_number_fits(void **state)
{
	static struct told told[MANY], big;
	static char text[100000];

	(void)state;
	memset(text, 'x', sizeof text - 1);
	put_text(MANY, text, &big);
	assert_int_equal(big.count, 1);
	for (uint32_t i = 0; i < MANY; i++)
		put(i, text, i * 30, true, &told[i]);
	event_base_loop(base, EVLOOP_NONBLOCK);
	for (uint32_t i = 0; i < MANY; i++) {
		assert_int_equal(told[i].count, 1);
		assert_int_equal(told[i].code, ERR_NONE);
	}
	lose_memory();
	assert_found(MANY, text);
	assert_found(0, "");
}

static struct told chained;

static void
put_another(const struct record_location *place, const struct err *why, void *arg)
{
	on_told(place, why, arg);
	put_text(11, "chained", &chained);
}

static void
test_what_is_told_may_put_more(void **state)
{
	struct told told = { 0 };

	(void)state;
	record_batch_put(batch,
		&(struct record_put){ .kind = RECORD_JOB_RESULT,
			.key = key_of(10),
			.expires_at = clock_wall() + 100,
			.indexed = true,
			.done = put_another,
			.arg = &told });
	assert_true(record_batch_flush(batch));
	assert_int_equal(told.count, 1);
	assert_int_equal(chained.count, 1);
	assert_false(record_batch_flush(batch));
	assert_found(11, "chained");
}

/* The whole does not fit; what fits of it is kept, and the others know why not. */
static void
test_full_file_tells_each_what_became_of_it(void **state)
{
	struct rlimit limit, small = { 0 };
	struct told told[8];
	char text[1001];
	int kept = 0;

	(void)state;
	memset(text, 'x', 1000);
	text[1000] = '\0';
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &limit);
	small = (struct rlimit){ .rlim_cur = 4000, .rlim_max = limit.rlim_max };
	setrlimit(RLIMIT_FSIZE, &small);
	for (uint32_t i = 0; i < 8; i++)
		put_text(i, text, &told[i]);
	event_base_loop(base, EVLOOP_NONBLOCK);
	setrlimit(RLIMIT_FSIZE, &limit);
	for (uint32_t i = 0; i < 8; i++) {
		assert_int_equal(told[i].count, 1);
		if (told[i].code == ERR_NONE)
			kept++;
	}
	assert_int_equal(kept, 3);
	lose_memory();
	for (uint32_t i = 0; i < 8; i++)
		if (told[i].code == ERR_NONE)
			assert_found(i, text);
}

/* Puts without end and writes down what it was told. */
static void
put_forever(_Atomic uint32_t *told, uint32_t from)
{
	for (uint32_t i = from;; i += 10) {
		struct told each[10];
		char text[32];

		for (uint32_t j = 0; j < 10; j++) {
			snprintf(text, sizeof text, "record %u", i + j);
			put_text(i + j, text, &each[j]);
		}
		event_base_loop(base, EVLOOP_NONBLOCK);
		for (uint32_t j = 0; j < 10; j++)
			if (each[j].code != ERR_NONE || each[j].count != 1)
				_exit(1);
		atomic_store(told, i + 10);
	}
}

static void
test_what_a_killed_writer_was_told_is_kept(void **state)
{
	void *shared = crash_map(sizeof(uint32_t));
	_Atomic uint32_t *told = shared;
	uint32_t from = 0;

	(void)state;
	for (int round = 0; round < 20; round++) {
		pid_t pid;
		int status;

		atomic_store(told, from);
		pid = fork();
		if (pid == 0) {
			event_reinit(base);
			put_forever(told, from);
		}
		while (atomic_load(told) < from + 50)
			usleep(100);
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		for (int look = 0; look < 2; look++) {
			for (uint32_t i = from; i < atomic_load(told); i++) {
				char text[32];

				snprintf(text, sizeof text, "record %u", i);
				assert_found(i, text);
			}
			if (look == 0 && round % 5 == 4)
				lose_memory();
		}
		from = atomic_load(told) + 10;
		if (from > RECORDS / 2)
			break;
	}
	crash_unmap(shared, sizeof(uint32_t));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_all_of_a_turn_are_told_at_its_end, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_first_of_a_key_stands, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_big_records_go_alone_and_any_number_fits, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_is_told_may_put_more, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_full_file_tells_each_what_became_of_it, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_a_killed_writer_was_told_is_kept, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
