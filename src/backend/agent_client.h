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
	AGENT_UNKNOWN_JOB, /* get, cancel: the agent never had that job or has forgotten it */
	AGENT_FORGOTTEN, /* exec: that job ran, and its result was acknowledged or dropped; it will not run again */
	AGENT_REFUSED, /* the request itself is wrong (err says why): nothing was started */
	AGENT_DENIED, /* wrong token or sandbox: this is not our agent */
	AGENT_NOT_SENT, /* no connection: nothing was started */
	AGENT_LOST /* the connection broke after it may have been sent */
};

struct agent_answer {
	enum agent_outcome outcome;
	struct json_object *body; /* AGENT_JOB, or health; borrowed during the callback */
	const char *busy_job;
	uint64_t newest_fence;
	const struct err *err; /* for the last five; never NULL then */
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
int agent_health(struct agent_client *client, const struct agent_target *target, int64_t timeout_ms,
	agent_done_f *done, void *arg, struct agent_call **ret_call, struct err *err) MUSTCHECK;
void agent_call_cancel(struct agent_call *call);

/*
 * The job's result is stored: the agent may forget it. Sent with the next exec to that agent or after a
 * second, whichever comes first; losing it costs the agent a little memory, nothing else.
 */
void agent_job_ack(struct agent_client *client, const struct agent_target *target, const char *job_id);

#endif
