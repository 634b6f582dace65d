/*
 * bench_ipc.c - nanoseconds per operation of what the processes share, in one process without rivals.
 *
 * usage: bench_ipc [DIRECTORY]   where the record log is written; default /tmp
 */
/* SPDX-License-Identifier: MIT */
#include "backend/record_log.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "ipc/exec_lock.h"
#include "ipc/job_table.h"
#include "ipc/notify.h"
#include "ipc/sandbox_table.h"
#include "ipc/scoreboard.h"
#include "ipc/shm.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { SANDBOXES = 16384, JOBS = 10000, RECORDS = 262144, MANY = 1000000, FEW = 100000 };

struct bench {
	char dir[512];
	struct shm *shm;
	struct notify *notify;
	struct record_log *log;
	struct proc_ref self;
};

static void
die(const struct err *err)
{
	fprintf(stderr, "bench_ipc: %s\n", err->msg);
	exit(1);
}

static double
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static void
report(const char *what, double started, unsigned count)
{
	printf("%-44s %9.0f ns\n", what, (now_ns() - started) / count);
}

static void
set_up(struct bench *bench, const char *parent)
{
	const struct shm_sizes sizes = { .sandboxes = SANDBOXES, .jobs = JOBS, .records = RECORDS };
	char path[600];
	bool adopted;
	struct err err;
	struct record_log_options options = { .dir = bench->dir };

	snprintf(bench->dir, sizeof bench->dir, "%s/bench-ipc-XXXXXX", parent);
	if (mkdtemp(bench->dir) == NULL) {
		perror(bench->dir);
		exit(1);
	}
	snprintf(path, sizeof path, "%s/shm", bench->dir);
	if (shm_open_or_create(path, &sizes, &bench->shm, &adopted, &err) < 0 ||
		notify_open(shm_notify(bench->shm), &bench->notify, &err) < 0 ||
		scoreboard_claim(shm_scoreboard(bench->shm), PROC_WORKER, &bench->self, &err) < 0 ||
		record_log_open(&options, shm_index(bench->shm), &bench->log, &err) < 0)
		die(&err);
}

static void
tear_down(struct bench *bench)
{
	struct err err;

	record_log_close(bench->log);
	notify_close(bench->notify);
	shm_close(bench->shm);
	if (file_remove_tree_at(AT_FDCWD, bench->dir, &err) < 0)
		die(&err);
}

static void
bench_exec_lock(struct bench *bench)
{
	const struct exec_lock_limits limits = { .running = 1000, .per_sandbox = 1000 };
	struct shm_exec_lock *lock = shm_exec_lock(bench->shm);
	double started = now_ns();

	for (uint32_t i = 0; i < MANY; i++) {
		struct exec_ticket ticket;
		bool granted;
		struct err err;

		if (exec_lock_acquire(lock, bench->notify, &limits, bench->self, i % SANDBOXES, 0, 0, &ticket,
			    &granted, &err) < 0)
			die(&err);
		exec_lock_release(lock, bench->notify, &limits, ticket);
	}
	report("exec lock: acquire + release", started, MANY);
}

static int
touch(struct sandbox_record *record, void *arg, struct err *err)
{
	(void)arg;
	(void)err;
	record->activity_ms++;
	return 0;
}

static void
bench_sandboxes(struct bench *bench)
{
	struct shm_sandboxes *table = shm_sandboxes(bench->shm);
	struct sandbox_record record = { .uid = "uid" };
	double started = now_ns();
	uint32_t slot;
	struct err err;

	for (uint32_t i = 0; i < SANDBOXES; i++) {
		snprintf(record.id, sizeof record.id, "sb-%u", i);
		if (sandbox_table_insert(table, &record, &slot, &err) < 0)
			die(&err);
	}
	report("sandbox table: insert", started, SANDBOXES);
	started = now_ns();
	for (uint32_t i = 0; i < MANY; i++) {
		char id[SANDBOX_ID_SIZE];

		snprintf(id, sizeof id, "sb-%u", i * 7919 % SANDBOXES);
		if (!sandbox_table_find(table, id, &record, &slot))
			abort();
	}
	report("sandbox table: find by id", started, MANY);
	started = now_ns();
	for (uint32_t i = 0; i < MANY; i++)
		if (sandbox_table_change(table, i % SANDBOXES, "uid", touch, NULL, &err) < 0)
			die(&err);
	report("sandbox table: change", started, MANY);
}

static void
bench_jobs(struct bench *bench)
{
	struct shm_jobs *table = shm_jobs(bench->shm);
	struct job_record record = { .attempt = 1 };
	double started = now_ns();
	uint32_t slot;
	struct err err;

	for (uint32_t i = 0; i < MANY; i++) {
		snprintf(record.id, sizeof record.id, "job-%u", i);
		if (job_table_insert(table, &record, &slot, &err) < 0)
			die(&err);
		if (!job_table_remove(table, slot, record.id))
			abort();
	}
	report("job table: insert + remove", started, MANY);
}

static void
bench_notify(struct bench *bench)
{
	double started = now_ns();

	for (uint32_t i = 0; i < MANY; i++) {
		notify_watch(bench->notify, bench->self.slot, NOTIFY_JOB, i % JOBS);
		notify_post(bench->notify, NOTIFY_JOB, i % JOBS);
		if (notify_take(bench->notify, bench->self.slot, NOTIFY_JOB) != i % JOBS)
			abort();
	}
	report("notify: watch + post + take", started, MANY);
	started = now_ns();
	for (uint32_t i = 0; i < MANY; i++)
		notify_post(bench->notify, NOTIFY_JOB, i % JOBS);
	report("notify: post that nobody watches", started, MANY);
}

static void
bench_log(struct bench *bench)
{
	static char text[1024];
	double started = now_ns(), expires_at = clock_wall() + 3600;
	struct record_location place;
	struct record_key key;
	char id[ID_UUID_SIZE], *data;
	size_t len;
	struct err err;

	memset(text, 'x', sizeof text);
	for (uint32_t i = 0; i < FEW; i++) {
		snprintf(id, sizeof id, "%08x-0000-4000-8000-%012x", i * 2654435761u, i);
		key = record_key_job(id);
		if (record_log_append(bench->log, RECORD_JOB_RESULT, &key, expires_at, text, sizeof text, true,
			    &place, &err) < 0)
			die(&err);
	}
	report("record log: append 1 KiB, indexed", started, FEW);
	started = now_ns();
	for (uint32_t i = 0; i < FEW; i++) {
		snprintf(id, sizeof id, "%08x-0000-4000-8000-%012x", i * 2654435761u, i);
		key = record_key_job(id);
		if (record_log_find(bench->log, RECORD_JOB_RESULT, &key, &data, &len, &err) < 0)
			die(&err);
		free(data);
	}
	report("record log: find 1 KiB", started, FEW);
	started = now_ns();
	record_index_purge(shm_index(bench->shm), 0, 0);
	report("record index: look at an entry in a purge", started, FEW);
}

int
main(int argc, char **argv)
{
	struct bench bench;

	log_set_level(LOG_LEVEL_ERROR);
	set_up(&bench, argc > 1 ? argv[1] : "/tmp");
	bench_exec_lock(&bench);
	bench_sandboxes(&bench);
	bench_jobs(&bench);
	bench_notify(&bench);
	bench_log(&bench);
	tear_down(&bench);
	return 0;
}
