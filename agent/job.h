/*
 * job.h - one command's record: what the journal keeps and what an answer says.
 *
 * A job is running until job_end(), which happens once; from then on it never
 * changes. Who waits for the end is a list here: a waiter that leaves takes
 * itself off, and nothing else happens.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_JOB_H
#define ORCHARD_AGENT_JOB_H

#include "agent/output.h"
#include "base/id.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct command;
struct evbuffer;
struct job;

enum job_verdict { JOB_EXITED, JOB_SIGNALED, JOB_TIMED_OUT, JOB_OOM_KILLED, JOB_CANCELED, JOB_NEVER_STARTED };

struct job_usage {
	double wall_s, cpu_user_s, cpu_sys_s;
	int64_t max_rss_bytes;
};

struct job_waiter {
	void (*on_end)(struct job *job, void *arg);
	void *arg;
	TAILQ_ENTRY(job_waiter) link;
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
	struct job_usage usage;
	struct command *command; /* while it runs */
	TAILQ_HEAD(, job_waiter) waiters;
	TAILQ_ENTRY(job) by_age; /* the journal's */
	LIST_ENTRY(job) by_id;
};

struct job *job_create(const char *id, const char *lane, int64_t fence, size_t max_output);
/* Nobody may wait for it any more. */
void job_free(struct job *job);
/* Sets ended, the clocks, and calls every waiter (each is off the list when called). */
void job_end(struct job *job);
void job_wait(struct job *job, struct job_waiter *waiter);
void job_unwait(struct job *job, struct job_waiter *waiter);
/* What never started says why in error and in stderr. */
void job_refuse(struct job *job, int exit_code, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Memory its outputs hold. */
size_t job_held(const struct job *job);
/* The JSON of docs/agent-protocol.md, "A job". */
void job_write(const struct job *job, struct evbuffer *out);

#endif
