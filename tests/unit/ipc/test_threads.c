/*
 * test_threads.c - threads that play processes on one mapping, mainly for the thread sanitizer.
 *
 * It sees what tests with processes cannot show: an access that is ordered by luck only. What a structure
 * promises to guard is written here without any other guard.
 */
/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "base/err.h"
#include "ipc/exec_lock.h"
#include "ipc/job_table.h"
#include "ipc/notify.h"
#include "ipc/record_index.h"
#include "ipc/sandbox_table.h"
#include "ipc/scoreboard.h"
#include "ipc/section.h"
#include "ipc/shm.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

enum { THREADS = 4, CAPACITY = 64, KEYS = 4, ROUNDS = 3000 };

struct player {
	pthread_t thread;
	uint32_t number;
	struct proc_ref ref;
	unsigned seed;
	uint32_t faults; /* cmocka's assertions belong to the main thread */
};

static struct player players[THREADS];
static struct shm_notify *notices;
static struct notify *notify;
static struct shm_scoreboard *board;

static void *
map(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		abort();
	return memory;
}

static int
set_up(void **state)
{
	struct err err;

	(void)state;
	notices = map(notify_section_size(CAPACITY, CAPACITY));
	notify_section_init(notices, CAPACITY, CAPACITY);
	board = map(scoreboard_section_size());
	for (uint32_t i = 0; i < THREADS; i++) {
		players[i] = (struct player){ .number = i, .seed = i + 1 };
		if (scoreboard_claim(board, PROC_WORKER, &players[i].ref, &err) < 0)
			abort();
	}
	return notify_open(notices, &notify, &err);
}

static int
tear_down(void **state)
{
	(void)state;
	notify_close(notify);
	munmap(notices, notify_section_size(CAPACITY, CAPACITY));
	munmap(board, scoreboard_section_size());
	return 0;
}

static void
play(void *(*game)(void *player))
{
	uint32_t faults = 0;

	for (uint32_t i = 0; i < THREADS; i++)
		if (pthread_create(&players[i].thread, NULL, game, &players[i]) != 0)
			abort();
	for (uint32_t i = 0; i < THREADS; i++) {
		pthread_join(players[i].thread, NULL);
		faults += players[i].faults;
	}
	assert_int_equal(faults, 0);
}

static uint32_t
choose(struct player *player, uint32_t n)
{
	return (uint32_t)rand_r(&player->seed) % n;
}

static bool
is_kicked(const struct player *player, int timeout_ms)
{
	struct pollfd p = { .fd = notify_fd(notify, player->ref.slot), .events = POLLIN };

	return poll(&p, 1, timeout_ms) == 1;
}

/* --- the exec lock --- */

static struct shm_exec_lock *lock;
static const struct exec_lock_limits limits = { .running = 3, .per_sandbox = 1000 };
static struct {
	uint32_t runs; /* only the holder of the lane writes it */
	uint64_t newest;
} lanes[KEYS];

static void
run(struct player *player, uint64_t key, struct exec_ticket ticket)
{
	lanes[key].runs++;
	player->faults += lanes[key].newest >= ticket.number;
	lanes[key].newest = ticket.number;
	exec_lock_release(lock, notify, &limits, ticket);
}

static uint32_t
run_granted(struct player *player)
{
	struct exec_grant grants[3];
	uint32_t n, sum = 0;

	while ((n = exec_lock_take(lock, player->ref, grants, 3)) > 0)
		for (uint32_t i = 0; i < n; i++, sum++)
			run(player, grants[i].cookie, grants[i].ticket);
	return sum;
}

static void *
take_turns(void *arg)
{
	struct player *player = arg;
	uint32_t waiting = 0;

	for (uint32_t i = 0; i < ROUNDS || waiting > 0;) {
		struct exec_ticket ticket;
		bool granted;
		struct err err;

		if (i++ < ROUNDS) {
			uint32_t key = choose(player, KEYS);

			if (exec_lock_acquire(lock, notify, &limits, player->ref, key / 2, key % 2, key, &ticket,
				    &granted, &err) < 0)
				abort();
			exec_lock_keep(lock, ticket);
			if (granted)
				run(player, key, ticket);
			waiting += !granted;
			(void)exec_lock_position(lock, ticket);
		}
		for (waiting -= run_granted(player); waiting >= 8 || (i >= ROUNDS && waiting > 0);
			waiting -= run_granted(player)) {
			if (!is_kicked(player, 20000)) {
				player->faults++;
				return NULL;
			}
			notify_drain(notify, player->ref.slot);
		}
	}
	return NULL;
}

static void
test_exec_lock(void **state)
{
	struct exec_lock_stats stats;
	uint32_t runs = 0;

	(void)state;
	lock = map(exec_lock_section_size(KEYS, CAPACITY));
	exec_lock_section_init(lock, KEYS, CAPACITY);
	memset(lanes, 0, sizeof lanes);
	play(take_turns);
	for (uint32_t i = 0; i < KEYS; i++)
		runs += lanes[i].runs;
	assert_int_equal(runs, THREADS * ROUNDS);
	exec_lock_stats(lock, &stats);
	assert_int_equal(stats.nodes_used, 0);
	munmap(lock, exec_lock_section_size(KEYS, CAPACITY));
}

/* --- the two tables --- */

static struct shm_jobs *jobs;
static struct shm_sandboxes *sandboxes;

/* A record's parts all say the same number, so that a torn one shows. */
static void
fill_job(struct job_record *record, uint64_t value)
{
	record->fence = value;
	record->created_ms = (int64_t)value;
	snprintf(record->lane, sizeof record->lane, "%llu", (unsigned long long)value);
	record->timeout_ms = (int64_t)value;
}

static bool
is_torn_job(const struct job_record *record)
{
	return record->created_ms != (int64_t)record->fence || record->timeout_ms != (int64_t)record->fence ||
		strtoull(record->lane, NULL, 10) != record->fence;
}

static int
change_job(struct job_record *record, void *arg, struct err *err)
{
	(void)err;
	fill_job(record, record->fence + *(uint64_t *)arg);
	return 0;
}

static void *
play_jobs(void *arg)
{
	struct player *player = arg;
	struct err err;

	for (uint32_t i = 0; i < ROUNDS; i++) {
		struct job_record record = { .attempt = 1 }, found;
		uint64_t value = choose(player, 1000);
		uint32_t slot;

		snprintf(record.id, sizeof record.id, "job-%u", choose(player, 24));
		fill_job(&record, value);
		if (job_table_find(jobs, record.id, &found, &slot)) {
			player->faults += strcmp(found.id, record.id) != 0 || is_torn_job(&found);
			if (choose(player, 3) == 0)
				job_table_remove(jobs, slot, record.id);
			else
				(void)!job_table_change(jobs, slot, record.id, change_job, &value, &err);
		} else {
			(void)!job_table_insert(jobs, &record, &slot, &err);
		}
		if (job_table_read(jobs, choose(player, job_table_bound(jobs) + 1), &found))
			player->faults += is_torn_job(&found);
	}
	return NULL;
}

static void
test_job_table(void **state)
{
	(void)state;
	jobs = map(job_table_section_size(CAPACITY));
	job_table_section_init(jobs, CAPACITY);
	play(play_jobs);
	assert_true(job_table_count(jobs) <= 24);
	munmap(jobs, job_table_section_size(CAPACITY));
}

static int
change_sandbox(struct sandbox_record *record, void *arg, struct err *err)
{
	(void)arg;
	(void)err;
	record->activity_ms++;
	snprintf(record->message, sizeof record->message, "%lld", (long long)record->activity_ms);
	record->pid = record->activity_ms;
	return 0;
}

static void *
play_sandboxes(void *arg)
{
	struct player *player = arg;
	struct err err;

	for (uint32_t i = 0; i < ROUNDS / 2; i++) {
		struct sandbox_record record = { .uid = "uid", .message = "0" }, found;
		uint32_t slot;

		snprintf(record.id, sizeof record.id, "box-%u", choose(player, 12));
		if (!sandbox_table_find(sandboxes, record.id, &found, &slot)) {
			(void)!sandbox_table_insert(sandboxes, &record, &slot, &err);
			continue;
		}
		player->faults += strcmp(found.id, record.id) != 0 || found.pid != found.activity_ms ||
			atoll(found.message) != found.activity_ms;
		if (choose(player, 8) == 0)
			sandbox_table_remove(sandboxes, slot, "uid");
		else if (choose(player, 2) == 0)
			(void)!sandbox_table_change(sandboxes, slot, "uid", change_sandbox, NULL, &err);
	}
	return NULL;
}

static void
test_sandbox_table(void **state)
{
	(void)state;
	sandboxes = map(sandbox_table_section_size(CAPACITY));
	sandbox_table_section_init(sandboxes, CAPACITY);
	play(play_sandboxes);
	assert_true(sandbox_table_count(sandboxes) <= 12);
	munmap(sandboxes, sandbox_table_section_size(CAPACITY));
}

/* --- the index of records --- */

static struct shm_index *records;

static void *
play_records(void *arg)
{
	struct player *player = arg;
	struct err err;

	for (uint32_t i = 0; i < ROUNDS; i++) {
		struct record_key key = { .bytes = { (uint8_t)choose(player, 48) } };
		struct record_location place = { .segment = record_index_next_segment(records),
			.offset = key.bytes[0] };

		switch (choose(player, 4)) {
		case 0:
			record_index_drop(records, &key);
			break;
		case 1:
			record_index_make_room(records, clock_wall(), clock_wall());
			break;
		case 2:
			(void)!record_index_put(records, &key,
				&(struct record_life){ .expires_at = clock_wall() + 1000 }, &place, &err);
			break;
		default:
			if (record_index_get(records, &key, clock_wall(), &place))
				player->faults += place.offset != key.bytes[0];
		}
	}
	return NULL;
}

static void
test_record_index(void **state)
{
	(void)state;
	records = map(record_index_section_size(CAPACITY));
	record_index_section_init(records, CAPACITY);
	play(play_records);
	assert_true(record_index_count(records) <= 48);
	munmap(records, record_index_section_size(CAPACITY));
}

/* --- notices --- */

static _Atomic uint32_t changes[CAPACITY];

static bool
has_seen_all(const uint32_t seen[CAPACITY])
{
	for (uint32_t slot = 0; slot < CAPACITY; slot++)
		if (seen[slot] != ROUNDS / CAPACITY * (THREADS - 1))
			return false;
	return true;
}

/* One listens until it has seen the last change of every slot; the others change and post. */
static void *
play_notices(void *arg)
{
	struct player *player = arg;
	uint32_t seen[CAPACITY], slot;

	for (uint32_t i = 0; player->number != 0 && i < ROUNDS / CAPACITY * CAPACITY; i++) {
		atomic_fetch_add_explicit(&changes[i % CAPACITY], 1, memory_order_relaxed);
		notify_post(notify, NOTIFY_JOB, i % CAPACITY);
	}
	if (player->number != 0)
		return NULL;
	for (slot = 0; slot < CAPACITY; slot++) {
		notify_watch(notify, player->ref.slot, NOTIFY_JOB, slot);
		seen[slot] = atomic_load_explicit(&changes[slot], memory_order_relaxed);
	}
	while (!has_seen_all(seen)) {
		if (!is_kicked(player, 20000)) {
			player->faults++;
			break;
		}
		notify_drain(notify, player->ref.slot);
		while ((slot = notify_take(notify, player->ref.slot, NOTIFY_JOB)) != UINT32_MAX) {
			notify_watch(notify, player->ref.slot, NOTIFY_JOB, slot);
			seen[slot] = atomic_load_explicit(&changes[slot], memory_order_relaxed);
		}
	}
	return NULL;
}

static void
test_notices(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < CAPACITY; i++)
		atomic_store(&changes[i], 0);
	play(play_notices);
}

/* --- the scoreboard --- */

static void *
play_scores(void *arg)
{
	struct player *player = arg;
	struct proc_info info;
	struct proc_ref ref;
	struct err err;

	for (uint32_t i = 0; i < ROUNDS; i++) {
		scoreboard_add(board, player->ref, METRIC_REQUESTS_TOTAL, 1);
		player->faults += scoreboard_sum(board, METRIC_REQUESTS_TOTAL) < i + 1;
		if (scoreboard_info(board, choose(player, THREADS + 2), &info))
			player->faults += info.role != PROC_WORKER && info.role != PROC_REAPER;
		/* The first one is the master as well. */
		if (player->number == 0 && scoreboard_claim(board, PROC_REAPER, &ref, &err) == 0) {
			scoreboard_set_pid(board, ref, 1, 1);
			scoreboard_set_state(board, ref, PROC_READY);
			scoreboard_retire(board, ref);
		}
	}
	return NULL;
}

static void
test_scoreboard(void **state)
{
	(void)state;
	play(play_scores);
	assert_int_equal(scoreboard_sum(board, METRIC_REQUESTS_TOTAL), THREADS * ROUNDS);
}

int
main(void)
{
#define GAME(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		GAME(test_exec_lock),
		GAME(test_job_table),
		GAME(test_sandbox_table),
		GAME(test_record_index),
		GAME(test_notices),
		GAME(test_scoreboard),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
