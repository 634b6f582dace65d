/*
 * exec_priv.h - one command that this process drives, for the exec files.
 *
 * exec_submit.c waits for readiness and admits; exec.c owns the struct and its place in the lock; exec_lane.c its way
 * through a lane that others share; exec_agent.c talks to the agent; exec_finish.c writes the end down; exec_resume.c makes
 * one for the job of a dead process.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_DOMAIN_EXEC_PRIV_H
#define ORCHARD_DOMAIN_EXEC_PRIV_H

#include "domain/exec/exec.h"
#include "domain/service_priv.h"
#include "domain/watch.h"
#include "backend/key_store.h"
#include "base/err.h"
#include "cluster/lanes.h"
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
	EXEC_DRAINING, /* its sandbox is being deleted: asking what it has written so far */
	EXEC_SAVING /* ended */
};

/* A request on its way to a recorded job. */
struct exec_submit {
	LIST_ENTRY(exec_submit) link;
	struct service *service;
	struct exec *exec; /* it is being recorded; NULL: not yet */
	char tenant[SANDBOX_TENANT_SIZE];
	char sandbox_id[SANDBOX_ID_SIZE];
	char sandbox_uid[ID_UUID_SIZE]; /* "" until it was seen */
	struct job_record record; /* what comes from the request: lane, timeout, detached, key */
	struct json_object *spec; /* owned */
	bool keyed;
	bool again; /* the job of `claim` was never recorded: this request does it */
	char digest[TEXT_SHA256_HEX_SIZE]; /* of the request, when keyed */
	struct key_claim claim; /* the one that was found; its answer is not kept */
	struct err refusal; /* what it will be told if the key does not help */
	struct watch watch;
	struct event *timer; /* NULL: it does not wait */
	bool silent; /* it waits for an agent that did not answer the last time */
	bool recorded; /* its job has record.id; its client is told once other servers can know of it */
	bool untold, due; /* they can't yet: told when Redis is back; its turn has come */
	exec_submitted_f *done;
	void *arg;
	bool *ret_over; /* set when it is freed while exec_submit() runs */
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
	struct lane_pass pass; /* where lanes are shared with other servers */
	bool granted; /* it may run */
	bool parked; /* at the head of this server's queue, without a place to run, while other servers go first */
	bool counted; /* as started */
	bool agent_ended; /* the agent holds the result until it is acknowledged */
	bool saved_short; /* the disk is full: trying without outputs */
	bool resumed; /* taken over from a dead process */
	bool asking_others; /* Redis, how it ended elsewhere */
	bool ran; /* its agent has forgotten how it ended */
	bool orphaned; /* the agent that may have got it is no more: another one answers in its place */
	struct watch sandbox_watch, job_watch;
	struct event *timer; /* pause before the next attempt */
	struct event *cancel_timer; /* pause before asking for its end again */
	struct agent_call *call, *cancel_call;
	struct json_object *result; /* owned; the ended job */
	char busy_job[ID_UUID_SIZE];
	char *deleted_error; /* owned; while EXEC_DRAINING */
	int64_t pause_ms;
	int64_t unreachable_ms; /* since when the agent can't be reached; 0: it can */
	int64_t refused_ms; /* since when the agent has no room for it; 0: it has */
	int64_t sent_ms; /* when the agent may first have got it; 0: never */
	uint32_t stale_count, garbled;
	uint64_t stale_fence; /* the newest that its agent has said */
	bool first; /* its key was free */
	struct record_location claim; /* of its key, if that was free and it is not recorded yet; segment 0: none */
};

/* --- exec.c --- */
struct exec *exec_new(struct service *service);
void exec_free(struct exec *exec); /* gives the place in the lock back, leaves the record as it is */
void exec_free_all(struct service *service);
struct exec *exec_of_job(struct service *service, const char *job_id); /* NULL: this process drives none */
uint64_t exec_lane_number(const char *lane); /* as the exec lock names it */
int exec_acquire(struct exec *exec, bool *ret_granted, struct err *err) MUSTCHECK;
void exec_release(struct exec *exec);
/* Nobody waits for it any more, so its place outlives this process; after its record has been written. */
void exec_keep(struct exec *exec);
/* The place of a dead process, if it was kept. */
void exec_adopt(struct exec *exec);
void exec_granted(struct service *service, const struct exec_grant *grant);
/* Takes a new place at the end of the queue, and starts it if that is granted at once. May end it. */
void exec_queue(struct exec *exec);
/* Watches job and sandbox from now on; looks at both at once. False: that ended it, and it is gone. */
bool exec_watch(struct exec *exec);
/* The agent may have got it. */
bool exec_was_sent(const struct exec *exec);
/* Writes exec->record to the table and learns of a cancel; false: the job is not ours any more, exec is gone. */
bool exec_write_record(struct exec *exec) MUSTCHECK;
bool exec_give_up(struct exec *exec); /* its client left while it was queued; true: that ended it */
void exec_pause(struct exec *exec); /* the next attempt after a growing pause */

/* --- exec_lane.c; nothing happens in them where lanes are shared with nobody --- */
/* It has a place in this server's queue; ERR_UNAVAILABLE, ERR_BUSY. */
int exec_lane_join(struct exec *exec, struct err *err) MUSTCHECK;
/* Its place was a dead process's. */
void exec_lane_adopt(struct exec *exec);
/* At the head of that queue: true, it may go; false: exec_start() comes later, or it is gone. */
bool exec_lane_enter(struct exec *exec) MUSTCHECK;
/* The fence that its agent is given. */
uint64_t exec_lane_fence(const struct exec *exec);
/* The agent knows a newer one. False: this is for the exec lock to mend. */
bool exec_lane_overtaken(struct exec *exec, uint64_t newest);

/* --- exec_board.c; nothing happens in them where there is no other server --- */
void exec_board_tell(struct exec *exec); /* how it stands */
void exec_board_tell_all(struct service *service);
/* May a client be promised such a job now? ERR_UNAVAILABLE: other servers would not know of it. */
int exec_board_check(const struct service *service, const struct job_record *record, struct err *err) MUSTCHECK;
/* Others are told; exec_submit_announced() comes later. False: not now. */
bool exec_board_announce(struct exec *exec, struct exec_submit *submit) MUSTCHECK;
/* It has ended, and is stored here. True: the agent is told once others have it, too. */
bool exec_board_end(struct exec *exec) MUSTCHECK;
/* An agent keeps the result of a job that has no record here. True: it is told to forget it when that is safe. */
bool exec_board_settle(
	struct service *service, uint32_t sandbox_slot, const char *sandbox_uid, const char *job_id) MUSTCHECK;
void exec_board_free_all(struct service *service);
/* A result of this server that Redis may have lost; sandbox_uid: "" where that life is gone. Nobody waits for it. */
void exec_board_end_again(
	struct service *service, const char *job_id, const char *sandbox_uid, struct json_object *result);

/* --- exec_retell.c --- */
void exec_retell_free(struct exec_retell *retell);

/* --- exec_others.c: a job of ours that another server may have taken over --- */
/*
 * Nobody here knows how it ended, nor its agent. True: another server may, and is asked; then it ends as that says, steps
 * back, or exec_unknown() comes.
 */
bool exec_others_ask(struct exec *exec) MUSTCHECK;
void exec_others_forget(struct exec *exec);
/* Another server drives it now. True: exec is gone, and whoever waits here looks there. */
bool exec_step_back(struct exec *exec) MUSTCHECK;

/* --- exec_cancel.c --- */
bool exec_cancel(struct exec *exec); /* its record says cancel; false: that ended it at once */
void exec_on_cancel_time(int fd, short what, void *arg);

/* --- exec_agent.c --- */
/* Where its agent is; false: the sandbox is gone, and that has ended the exec. */
bool exec_find_agent(struct exec *exec, struct sandbox_record *sandbox, struct agent_target *ret_target) MUSTCHECK;
bool exec_agent_ended(struct json_object *agent_job);
void exec_start(struct exec *exec); /* it has the lock: asks the agent to run it */
void exec_ask(struct exec *exec); /* asks the agent what became of it */
void exec_unknown(struct exec *exec); /* nobody knows how it ended */
/* A store could not say whether it has the result: the agent, and then that, are asked again. */
bool exec_store_failed(struct exec *exec, const struct err *why);
void exec_on_time(int fd, short what, void *arg);

/* --- exec_finish.c --- */
void exec_finish_agent(struct exec *exec, struct json_object *agent_job); /* the agent says how it ended */
/* It ends without the agent: verdict and error as in the REST API. */
void exec_finish_words(struct exec *exec, const char *verdict, const char *error);
void exec_finish_unsent(struct exec *exec); /* its process died before the agent could get it */
/* Its sandbox is being deleted: ends with what the agent knows of it by now, if it ran. */
void exec_finish_deleted(struct exec *exec, const char *error);
/* Its end as another server has told it, sealed; takes it over. */
void exec_finish_theirs(struct exec *exec, struct json_object *job);
/* Somebody else's end of it is in the store: that one counts. */
void exec_finish_stored(struct exec *exec);

/* --- exec_key.c --- */
void exec_key_look(struct exec_submit *submit); /* what does its key stand for? */
void exec_key_claim(struct exec *exec); /* admitted: makes the key its own, then records it */
void exec_key_check(struct exec *exec); /* recorded: not if that job has ended before */
/* It was admitted or recorded in vain, because a job of its id is there. */
void exec_key_attach(struct exec *exec);
void exec_key_give_up(struct exec *exec);
void exec_key_settle(struct exec *exec); /* it has ended: the time of its key begins */
void exec_key_lost(struct exec_submit *submit); /* the outcome is not known: never again */
/* Not admitted; perhaps it was a request of the same key that took the last place. */
void exec_key_refused(struct exec_submit *submit, const struct err *why);

/* --- exec_submit.c --- */
void exec_submit_end_all(struct service *service);

/* Makes the sandbox's agent forget what is done with. */
void exec_tidy(struct service *service, uint32_t sandbox_slot, const char *sandbox_uid);
/* The same, if the agent's answer to how it is says that it keeps much. */
void exec_tidy_if_due(
	struct service *service, uint32_t sandbox_slot, const char *sandbox_uid, struct json_object *health);
void exec_tidy_free_all(struct service *service);
void exec_submit_look(struct exec_submit *submit); /* at the sandbox: waits, admits or refuses */
/* Nothing is recorded: its place goes back, the submit goes on (NULL: nobody listens any more). */
struct exec_submit *exec_submit_withdraw(struct exec *exec);
void exec_submit_refuse(struct exec *exec, const struct err *why);
void exec_submit_record(struct exec *exec); /* admitted, and the key is its own: writes down what it asks for */
void exec_submit_recorded(struct exec *exec); /* nothing stands against it any more: tells, and goes on */
void exec_submit_tell(struct exec_submit *submit, const char *job_id, const struct err *why);
void exec_submit_announced(struct exec_submit *submit, bool told);
void exec_submit_announce_again(struct service *service); /* Redis is back */
/* Redis has the end of that job. */
void exec_submit_end_told(struct service *service, const char *job_id);

#endif
