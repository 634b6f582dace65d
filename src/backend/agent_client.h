/*
 * agent_client.h - the server's side of the agent protocol (docs/agent-protocol.md).
 *
 * One client per process; it keeps a connection pool per sandbox. A lost
 * connection is never answered by sending a command again: the result says
 * how far the request came, and the caller asks for the job by its id.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_BACKEND_AGENT_CLIENT_H
#define ORCHARD_BACKEND_AGENT_CLIENT_H

#include "base/cleanup.h"
#include "http/http_client.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct agent_call;
struct agent_client;
struct err;
struct event_base;
struct json_object;

/* Whom to talk to; copied. */
struct agent_target {
	const char *endpoint; /* "unix:..." or "tcp:..." */
	const char *sandbox_id;
	const char *sandbox_uid;
	const char *token;
};

struct agent_client_options {
	int64_t connect_timeout_ms; /* 0: 5000 */
	int64_t idle_timeout_ms; /* 0: 30000 */
};
int agent_client_create(struct event_base *base, const struct agent_client_options *options,
	struct agent_client **ret_client, struct err *err) MUSTCHECK;
void agent_client_free(struct agent_client *client);
/* Drops the pool of a sandbox that is gone. */
void agent_client_forget(struct agent_client *client, const char *sandbox_uid);

enum agent_outcome {
	AGENT_JOB, /* `body` is the job as the agent knows it, ended or (get) still running */
	AGENT_BUSY, /* its lane runs `busy_job`: nothing was started */
	AGENT_STALE, /* the fence is older than `newest_fence`: nothing was started */
	AGENT_STDIN_CLOSED, /* stdin: nothing was written */
	AGENT_UNKNOWN_JOB, /* get, cancel, output, stdin: the agent never had that job or has forgotten it */
	AGENT_FORGOTTEN, /* exec: that job ran, and its result was acknowledged or dropped; it will not run again */
	AGENT_REFUSED, /* the request itself is wrong (err says why): nothing was started */
	AGENT_DENIED, /* wrong token or sandbox: this is not our agent */
	AGENT_NOT_SENT, /* no connection: nothing was started */
	AGENT_LOST /* the connection broke after it may have been sent */
};

struct agent_answer {
	enum agent_outcome outcome;
	struct json_object *body; /* AGENT_JOB, or what was asked for; borrowed during the callback */
	const char *busy_job;
	uint64_t newest_fence;
	const struct err *err; /* for the last five and AGENT_STDIN_CLOSED; never NULL then */
};
typedef void agent_done_f(const struct agent_answer *answer, void *arg);

/* All start calls never call back before they return; done comes exactly once unless cancelled. */
struct agent_exec {
	const char *job_id;
	uint64_t fence;
	const char *lane;
	struct json_object *spec; /* command, cwd, env, login_shell, stdin_base64, user, max_output_bytes */
	int64_t timeout_ms;
	int64_t kill_grace_ms;
};
int agent_exec_start(struct agent_client *client, const struct agent_target *target, const struct agent_exec *exec,
	agent_done_f *done, void *arg, struct agent_call **ret_call, struct err *err) MUSTCHECK;
/* wait_ms > 0: answers when the job has ended or the time is up. */
int agent_job_get(struct agent_client *client, const struct agent_target *target, const char *job_id,
	int64_t wait_ms, agent_done_f *done, void *arg, struct agent_call **ret_call, struct err *err) MUSTCHECK;
int agent_job_cancel(struct agent_client *client, const struct agent_target *target, const char *job_id,
	agent_done_f *done, void *arg, struct agent_call **ret_call, struct err *err) MUSTCHECK;
/* AGENT_UNKNOWN_JOB: it never began, and never will, should a request for it still be on its way. */
int agent_job_bar(struct agent_client *client, const struct agent_target *target, const char *job_id,
	agent_done_f *done, void *arg, struct agent_call **ret_call, struct err *err) MUSTCHECK;
int agent_health(struct agent_client *client, const struct agent_target *target, int64_t timeout_ms,
	agent_done_f *done, void *arg, struct agent_call **ret_call, struct err *err) MUSTCHECK;
/* What its container takes, as far as its agent sees that; an older agent's answer is AGENT_REFUSED. */
int agent_usage(struct agent_client *client, const struct agent_target *target, int64_t timeout_ms,
	agent_done_f *done, void *arg, struct agent_call **ret_call, struct err *err) MUSTCHECK;
/* All jobs that the agent keeps: `body` is {"jobs":[{"job_id","lane","fence","state"}]}. */
int agent_job_list(struct agent_client *client, const struct agent_target *target, agent_done_f *done, void *arg,
	struct agent_call **ret_call, struct err *err) MUSTCHECK;
/* What a command has written so far; the answer is that of docs/agent-protocol.md. */
struct agent_output_ask {
	const char *job_id;
	int64_t stdout_offset, stderr_offset; /* -1: not this stream */
	uint32_t limit; /* bytes of each */
	int64_t wait_ms; /* for a byte, or the end */
	bool reader; /* all before the offsets has been taken: a command that waits for its reader goes on */
};
int
agent_output_get(struct agent_client *client, const struct agent_target *target, const struct agent_output_ask *ask,
	agent_done_f *done, void *arg, struct agent_call **ret_call, struct err *err) MUSTCHECK;
/*
 * Bytes for a command's stdin; the answer comes once the agent has taken all of them. The same write_id again
 * writes nothing and gets the first answer again, so a lost one can be asked for.
 */
struct agent_stdin_write {
	const char *job_id;
	const char *write_id;
	const void *data; /* copied */
	size_t len;
	bool eof;
	int64_t timeout_ms;
};
int agent_stdin_write(struct agent_client *client, const struct agent_target *target,
	const struct agent_stdin_write *write, agent_done_f *done, void *arg, struct agent_call **ret_call,
	struct err *err) MUSTCHECK;
void agent_call_cancel(struct agent_call *call);
/* Calls to that sandbox's agent that have no answer yet. */
uint32_t agent_client_calls(const struct agent_client *client, const char *sandbox_uid);

/*
 * The job's result is stored: the agent may forget it. Sent with the next exec to that agent or after a
 * second, whichever comes first. A process that dies loses some, see domain/exec/exec_tidy.c.
 */
void agent_job_ack(struct agent_client *client, const struct agent_target *target, const char *job_id);

#endif
