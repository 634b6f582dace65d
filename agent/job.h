/*
 * job.h - one command's record: what the journal keeps and what an answer says.
 *
 * A job is running until job_end(), which happens once; from then on it never
 * changes. Who waits for the end, or for more output, is a list here: a waiter
 * that leaves takes itself off, and nothing else happens.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_JOB_H
#define ORCHARD_AGENT_JOB_H

#include "agent/hold.h"
#include "agent/output.h"
#include "base/id.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct archive;
struct command;
struct evbuffer;
struct feed;
struct job;
struct spool_store;

enum job_verdict {
	JOB_EXITED,
	JOB_SIGNALED,
	JOB_TIMED_OUT,
	JOB_OOM_KILLED,
	JOB_DISK_FULL,
	JOB_CANCELED,
	JOB_NEVER_STARTED
};

struct job_usage {
	double wall_s, cpu_user_s, cpu_sys_s;
	int64_t max_rss_bytes;
};

struct job_waiter {
	void (*on_end)(struct job *job, void *arg);
	void *arg;
	TAILQ_ENTRY(job_waiter) link;
};

/* Told whenever an output has grown; takes itself off when the job ends. */
struct job_watcher {
	void (*on_output)(struct job *job, void *arg);
	void *arg;
	TAILQ_ENTRY(job_watcher) link;
};

struct job {
	char id[ID_UUID_SIZE];
	uint8_t id_bytes[16];
	char *lane;
	int64_t fence;
	bool ended;
	enum job_verdict verdict;
	int exit_code, signal; /* signal 0: none */
	char *error; /* NULL: none */
	double started_at, ended_at;
	int64_t ended_boot_ms;
	struct output out, err;
	struct hold hold; /* of both */
	struct job_usage usage;
	struct command *command; /* while it runs */
	struct feed *feed; /* NULL: its stdin is not open to writers, and was not */
	TAILQ_HEAD(, job_waiter) waiters;
	TAILQ_HEAD(, job_watcher) watchers;
	TAILQ_ENTRY(job) by_age; /* the journal's */
	LIST_ENTRY(job) by_id;
	struct archive *archive; /* that holds it; NULL: none */
	bool forgotten; /* by the journal: only the archive holds it */
	TAILQ_ENTRY(job) by_end; /* the archive's */
};

struct job *job_create(const char *id, const char *lane, int64_t fence, size_t max_output);
/* Each stream may use that much of a spool; before the job starts. */
void job_spool_to(struct job *job, struct spool_store *store, uint64_t max);
/* Its output waits for a reader, but not for longer than that without a word from one; before the job starts. */
void job_hold(struct job *job, int64_t grace_ms);
/* Nobody may wait for it any more. */
void job_free(struct job *job);
/* Sets ended, the clocks, and calls every waiter (each is off the list when called). */
void job_end(struct job *job);
void job_wait(struct job *job, struct job_waiter *waiter);
void job_unwait(struct job *job, struct job_waiter *waiter);
void job_watch(struct job *job, struct job_watcher *watcher);
void job_unwatch(struct job *job, struct job_watcher *watcher);
/* Of an ended job only the outputs are kept, in spools. */
void job_leave_memory(struct job *job, struct spool_store *store);
/* What never started says why in error and in stderr. */
void job_refuse(struct job *job, int exit_code, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Memory its outputs hold. */
size_t job_held(const struct job *job);
/* The JSON of docs/agent-protocol.md, "A job". */
void job_write(const struct job *job, struct evbuffer *out);

#endif
