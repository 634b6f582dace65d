/*
 * exec.h - a command on its way: admitted, recorded, queued, run once, ended.
 *
 * exec_submit() is the whole of it: what it started goes on by itself, whoever
 * listens. Admission comes first (a refusal leaves nothing behind), then the job
 * record, then the exec lock, then the agent. A lost connection is resolved by
 * asking the agent for the job id, never by sending again; `busy` waits for the
 * running job and tries again; a stale fence takes a newer one, same job id.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_DOMAIN_EXEC_H
#define ORCHARD_DOMAIN_EXEC_H

#include "base/cleanup.h"
#include "base/id.h"

#include <stdbool.h>
#include <stdint.h>

struct config;
struct err;
struct json_object;
struct json_reader;
struct service;

/* A checked exec request; strings and objects borrowed from the body. */
struct exec_spec {
	struct json_object *command; /* string, or array of strings (never empty) */
	const char *cwd; /* NULL: the sandbox's */
	struct json_object *env; /* string map or NULL */
	bool login_shell;
	bool wait;
	const char *stdin_base64; /* NULL: /dev/null; text stdin is encoded by exec_spec_read */
	const char *user;
	int64_t max_output_bytes;
	bool base64; /* encoding of stdout and stderr in the job */
	const char *lane; /* never NULL */
	int64_t timeout_ms;
	int64_t wait_timeout_ms; /* 0: timeout + 30 s */
	char *owned; /* what exec_spec_read allocated */
};

void exec_spec_read(const struct config *config, struct json_reader *reader, struct exec_spec *ret_spec);
void exec_spec_fini(struct exec_spec *spec);

/*
 * Called once, now or later: the job is recorded under job_id (why NULL), or it was refused and nothing
 * started: ERR_NOT_FOUND, ERR_NOT_READY (after the readiness wait), ERR_BUSY, ERR_NO_SPACE, ERR_DELETED.
 */
typedef void exec_submitted_f(const char *job_id, const struct err *why, void *arg);
struct exec_submit;
/* *ret_submit is NULL when done was called already. Cancelling stops only the readiness wait. */
void exec_submit(struct service *service, const char *tenant, const char *sandbox_id, const struct exec_spec *spec,
	exec_submitted_f *done, void *arg, struct exec_submit **ret_submit);
void exec_submit_cancel(struct exec_submit *submit);

/* Reaper: takes over a live job whose owner is dead (asks the agent for it; ends it truthfully). */
void exec_resume(struct service *service, uint32_t job_slot);
/* Ends every live job of a sandbox that is being removed or was lost; `verdict` as in the REST API. */
void exec_end_all(struct service *service, const char *sandbox_uid, const char *verdict, const char *error);

#endif
