/*
 * fixture.h - services over one shared memory, with a driver and an agent that play along.
 *
 * Everything runs in one event loop. The agent is a real HTTP server on a unix
 * socket; what it does with the next exec is set by `next`.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_TEST_DOMAIN_FIXTURE_H
#define ORCHARD_TEST_DOMAIN_FIXTURE_H

#include "base/id.h"
#include "conf/config.h"
#include "domain/exec/exec.h"
#include "domain/job/job.h"
#include "domain/sandbox/sandbox.h"
#include "domain/service.h"
#include "ipc/scoreboard.h"

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

enum { FIXTURE_SERVICES = 2, FAKE_JOBS = 32 };

enum fake_next {
	FAKE_RUN, /* the command ends at once */
	FAKE_HOLD, /* it runs until fake_end() */
	FAKE_BUSY, /* 409 busy with the job that runs */
	FAKE_STALE, /* 409 stale_fence, 100 above what came */
	FAKE_CUT_BEFORE, /* the connection breaks, nothing was started */
	FAKE_CUT_AFTER, /* the connection breaks, the command runs */
	FAKE_FULL, /* 503 journal_full */
	FAKE_REFUSE /* 422 */
};

struct driver_usage;
struct http_exchange;
struct http_server;

struct fake_job {
	char id[ID_UUID_SIZE];
	bool ended, canceled, truncated;
	int exit_code;
	struct http_exchange *waiting[4]; /* whom its end is told */
	int waiting_count;
	bool acked;
};

struct fake_item {
	char id[64], uid[ID_UUID_SIZE];
	int64_t known_ms;
	bool alive;
};

struct fixture {
	char dir[64];
	struct event_base *base;
	struct config config;
	struct shm *shm;
	struct notify *notify;
	struct proc_ref refs[FIXTURE_SERVICES];
	struct service *services[FIXTURE_SERVICES];

	/* agent */
	struct http_server *agent;
	int agent_fd;
	enum fake_next next; /* for one exec; then FAKE_RUN again */
	int more_stale; /* FAKE_STALE for so many more */
	struct fake_job jobs[FAKE_JOBS];
	int job_count;
	int execs, gets, acks; /* requests that came */
	bool clogged; /* 503 journal_full while it keeps an ended job that is not acknowledged */
	int64_t kept; /* what /health says of that */
	bool forgets; /* jobs are answered 410: their results were acknowledged */
	int64_t age_ms; /* what it says of itself to who asks for jobs it does not know */
	bool garbles; /* jobs are answered with what is no JSON */
	bool late; /* a request that was on its way arrives just before the job is barred */
	int bars; /* unknown jobs that were barred */
	bool not_healthy; /* health checks are answered 500 */
	bool denies; /* health checks are answered 403 */
	const char *usage_answer; /* of GET /usage; NULL: an agent that knows no such request */
	bool usage_held; /* it is not answered */
	int usages; /* such requests that came */
	uint64_t last_fence;

	/* what the agent's commands write and read; all of them the same */
	char output[256]; /* stdout */
	bool truncated; /* results say so */
	const char *output_answer; /* instead of the true one */
	int output_cuts; /* so many reads find the connection cut */
	struct http_exchange *polls[8]; /* reads that wait */
	int64_t poll_offsets[8];
	int reads, writes; /* requests that came */
	char input[256]; /* stdin */
	char last_write[ID_UUID_SIZE];
	int write_cuts; /* so many writes are taken, but not answered */
	bool stdin_closed;

	/* driver */
	const char *create_error; /* creates fail with it; NULL: they succeed */
	char other_uid[ID_UUID_SIZE]; /* the life that has the id, until it is destroyed; "": none */
	bool unschedulable; /* what creates say of their progress */
	bool hold_creates; /* creates are kept until fixture_release_creates() */
	const struct driver_usage *usage; /* of any sandbox; NULL: none is there */
	bool hold_stats; /* likewise kept */
	bool agents_tell; /* what a sandbox takes, in place of the driver: services made from now on */
	void *held[8]; /* struct fake_call */
	int held_count;
	int creates, destroys, destroy_failures; /* so many destroys fail first */
	int destroying, most_destroying; /* under way at once */
	char destroyed_uid[ID_UUID_SIZE];
	char created_env[256];
	struct fake_item items[256]; /* what a list shows */
	int item_count, lists;
	bool list_fails;
	void *watcher; /* struct fake_driver that is watched last */
};

int fixture_setup(void **state);
/* With places for that many sandboxes. */
int fixture_setup_sized(void **state, uint32_t sandboxes);
int fixture_teardown(void **state);

/* Runs the loop until *flag is set; fails the test after five seconds. */
void run_until(struct fixture *f, const bool *flag);
void run_until_call(struct fixture *f, bool (*done)(struct fixture *f));
/* Lets what is due happen: a few turns of the loop without waiting. */
void run_due(struct fixture *f);

/* The watched driver tells that an agent has ended. */
void fake_gone(struct fixture *f, const char *id, const char *uid, int wait_status);
void fixture_release_creates(struct fixture *f);
/* The service's process is gone: retired and repaired, as the master does it. */
void fixture_kill(struct fixture *f, int service);
void fixture_revive(struct fixture *f, int service);
void fake_end(struct fixture *f, const char *job_id, int exit_code);
/* The running command writes. */
void fake_write(struct fixture *f, const char *text);
void fake_agent_stop(struct fixture *f);
void fake_agent_start(struct fixture *f);
int fake_started(const struct fixture *f, const char *job_id); /* 0 or 1: the agent has that job */

/* A ready sandbox. */
void make_sandbox(struct fixture *f, const char *id, struct sandbox_record *ret_record);
int create_sandbox(struct fixture *f, int service, const char *json, struct sandbox_record *ret_record,
	bool *ret_existing, struct err *err);
/* Both as they are answered at once, without other servers. */
int patch_sandbox(struct fixture *f, int service, const char *id, const struct sandbox_change *change,
	struct sandbox_record *ret_record, struct err *err);
int delete_sandbox(struct fixture *f, int service, const char *tenant, const char *id, struct err *err);

/* What a callback brought. */
struct outcome {
	bool done;
	int code; /* enum err_code */
	char message[512];
	char job_id[ID_UUID_SIZE];
	char status[32], verdict[32], error[256], output[64];
	int exit_code; /* -1: null */
	char blocked_by[ID_UUID_SIZE];
	bool started; /* started_at is there */
	double queue_s;
	int items; /* of a list */
	char first[ID_UUID_SIZE]; /* job_id of its first item */
};
void on_submitted(const char *job_id, const struct err *why, void *arg);
void on_job(struct json_object *job, const struct err *why, void *arg);
void on_sandbox(const struct sandbox_record *record, const struct err *why, void *arg);

void submit(struct fixture *f, int service, const char *sandbox_id, const char *json, struct outcome *ret,
	struct exec_submit **ret_submit);
/* With an Idempotency-Key. */
void submit_keyed(struct fixture *f, int service, const char *sandbox_id, const char *json, const char *key,
	struct outcome *ret);
/* Submits and waits for the end. */
void run_command(struct fixture *f, int service, const char *sandbox_id, const char *json, struct outcome *ret);
/* Puts an ended job into the store. */
void store_result(struct fixture *f, int service, const char *job_id, const char *json);
void wait_job(struct fixture *f, int service, const char *job_id, struct outcome *ret);
/* A command as short as any. */
#define COMMAND "{\"command\":\"x\"}"
/* Starts one in sandbox "a" that runs until fake_end(). */
void hold_command(struct fixture *f, int service, const char *json, struct outcome *ret);
/* Where its record is; it must have one. */
uint32_t slot_of(struct fixture *f, const char *job_id);
bool agent_has_a_job(struct fixture *f);
/* No job has a record or a place in the exec lock. */
bool nothing_is_left(struct fixture *f);
/* Waits for that, and holds that no service waits for anything. */
void assert_idle(struct fixture *f);

#endif
