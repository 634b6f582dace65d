/*
 * exec_priv.h - one command that this process drives, for the exec files.
 *
 * exec_submit.c waits for readiness and admits; exec.c owns the struct and its
 * place in the lock; exec_agent.c talks to the agent; exec_finish.c writes the
 * end down; exec_resume.c makes one for the job of a dead process.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_DOMAIN_EXEC_PRIV_H
#define ORCHARD_DOMAIN_EXEC_PRIV_H

#include "domain/exec.h"
#include "domain/service_priv.h"
#include "domain/watch.h"
#include "ipc/exec_lock.h"
#include "ipc/job_table.h"

struct agent_answer;
struct agent_call;
struct event;

enum exec_step {
	EXEC_STORING, /* what it asks for is being written down */
	EXEC_QUEUED, /* waits for the lock */
	EXEC_SENDING, /* the agent is being asked, or will be after a pause: it may run */
	EXEC_BUSY_WAIT, /* another job of the lane runs at the agent: this one does not */
	EXEC_ASKING, /* the connection was lost: asking for the job by its id */
	EXEC_SAVING /* ended */
};

struct exec {
	LIST_ENTRY(exec) link;
	struct service *service;
	struct exec_submit *submit; /* who still waits for the job id, or NULL */
	enum exec_step step;
	struct job_record record; /* as this process last wrote it; state, fence and so on are read from here */
	uint32_t job_slot;
	struct json_object *spec; /* owned: {"request", "base64", "wait"} as stored */
	uint64_t cookie;
	struct exec_ticket ticket;
	bool has_ticket;
	bool granted; /* it may run */
	bool counted; /* as started */
	bool agent_ended; /* the agent holds the result until it is acknowledged */
	bool saved_short; /* the disk is full: trying without outputs */
	bool resumed; /* taken over from a dead process */
	struct watch sandbox_watch, job_watch;
	struct event *timer; /* pause before the next attempt */
	struct event *cancel_timer; /* pause before asking for its end again */
	struct agent_call *call, *cancel_call;
	struct json_object *result; /* owned; the ended job */
	char busy_job[ID_UUID_SIZE];
	int64_t pause_ms;
	int64_t unreachable_ms; /* since when the agent can't be reached; 0: it can */
	int64_t refused_ms; /* since when the agent has no room for it; 0: it has */
	int64_t sent_ms; /* when the agent may first have got it; 0: never */
	uint32_t stale_count;
};

/* --- exec.c --- */
struct exec *exec_new(struct service *service);
void exec_free(struct exec *exec); /* gives the place in the lock back, leaves the record as it is */
void exec_free_all(struct service *service);
int exec_acquire(struct exec *exec, bool *ret_granted, struct err *err) MUSTCHECK;
void exec_release(struct exec *exec);
void exec_granted(struct service *service, const struct exec_grant *grant);
/* Takes a new place at the end of the queue, and starts it if that is granted at once. May end it. */
void exec_queue(struct exec *exec);
/* Watches job and sandbox from now on; looks at both at once. False: that ended it, and it is gone. */
bool exec_watch(struct exec *exec);
/* Writes exec->record to the table and learns of a cancel; false: the job is not ours any more, exec is gone. */
bool exec_write_record(struct exec *exec) MUSTCHECK;
void exec_pause(struct exec *exec); /* the next attempt after a growing pause */

/* --- exec_agent.c --- */
void exec_start(struct exec *exec); /* it has the lock: asks the agent to run it */
void exec_ask(struct exec *exec); /* asks the agent what became of it */
bool exec_cancel(struct exec *exec); /* its record says cancel; false: that ended it at once */
void exec_on_time(int fd, short what, void *arg);
void exec_on_cancel_time(int fd, short what, void *arg);

/* --- exec_finish.c --- */
void exec_finish_agent(struct exec *exec, struct json_object *agent_job); /* the agent says how it ended */
/* It ends without the agent: verdict and error as in the REST API. */
void exec_finish_words(struct exec *exec, const char *verdict, const char *error);
/* Somebody else's end of it is in the store: that one counts. */
void exec_finish_stored(struct exec *exec);

/* --- exec_submit.c --- */
void exec_submit_end_all(struct service *service);
void exec_submit_tell(struct exec_submit *submit, const char *job_id, const struct err *why);

#endif
