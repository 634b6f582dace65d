/*
 * exec.h - a command on its way: admitted, recorded, queued, run once, ended.
 *
 * exec_submit() is the whole of it: what it started goes on by itself, whoever
 * listens. Admission comes first (a refusal leaves nothing behind), then the job
 * record, then the exec lock, then the agent. A lost connection is resolved by
 * asking the agent for the job id, never by sending again; `busy` waits for the
 * running job and tries again; a stale fence takes a newer one, same job id.
 * With an Idempotency-Key the job is the one that was first recorded under it.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_DOMAIN_EXEC_H
#define ORCHARD_DOMAIN_EXEC_H

#include "base/cleanup.h"
#include "base/id.h"
#include "ipc/exec_lock.h"

#include <stdbool.h>
#include <stdint.h>

struct config;
struct err;
struct idempotency_key;
struct json_object;
struct json_reader;
struct service;

/* A checked exec request; strings and objects borrowed from the body. */
struct exec_spec {
	struct json_object *command; /* string, or array of strings (never empty) */
	const char *cwd; /* NULL: the sandbox's */
	struct json_object *env; /* string map or NULL */
	bool login_shell;
	bool apply_patch; /* the agent applies the patch in stdin; command is the word for that */
	bool wait;
	const char *stdin_base64; /* NULL: nothing; text stdin is encoded by exec_spec_read */
	bool stdin_open; /* after that it stays open for job_stdin_write() */
	const char *user;
	int64_t max_output_bytes;
	int64_t spool_bytes; /* of each stream, kept to be read by offset */
	int64_t hold_ms; /* what is not kept waits for a stream; so long, when there is none */
	bool base64; /* encoding of stdout and stderr in the job */
	const char *lane; /* never NULL */
	int64_t timeout_ms;
	int64_t wait_timeout_ms; /* 0: timeout + 30 s */
	const struct idempotency_key *key; /* NULL: none; borrowed */
	char *owned; /* what exec_spec_read or patch_spec_read allocated */
	struct json_object *owned_command;
};

void exec_spec_read(const struct config *config, struct json_reader *reader, struct exec_spec *ret_spec);
void exec_spec_fini(struct exec_spec *spec);
/* A part of exec_spec_read(), for what is a command of its own kind. */
void exec_spec_read_lane(struct json_reader *reader, struct exec_spec *spec);

/*
 * Called once, now or later: the job is recorded under job_id (why NULL), or it was refused and nothing
 * started: ERR_NOT_FOUND, ERR_NOT_READY (after the readiness wait), ERR_BUSY, ERR_NO_SPACE, ERR_DELETED; with a
 * key also ERR_KEY_CONFLICT (another request has it) and ERR_OUTCOME_LOST (it may have run, nobody knows how it ended).
 */
typedef void exec_submitted_f(const char *job_id, const struct err *why, void *arg);
struct exec_submit;
/* *ret_submit is NULL when done was called already. Cancelling stops only the readiness wait. */
void exec_submit(struct service *service, const char *tenant, const char *sandbox_id, const struct exec_spec *spec,
	exec_submitted_f *done, void *arg, struct exec_submit **ret_submit);
void exec_submit_cancel(struct exec_submit *submit);

/*
 * The client that waits is told now how the command stands, and will come back for its end: from now on it goes on
 * without the client. Without effect on one that another process drives.
 */
void exec_detach(struct service *service, const char *job_id);

/*
 * Reaper: takes over a live job whose owner is dead (asks the agent for it; ends it truthfully). One that nobody
 * waits for keeps its place in the lane, so that its order of arrival stands.
 */
void exec_resume(struct service *service, uint32_t job_slot);
/* Reaper: a place in the lock to which no job belongs any more. */
void exec_give_back(struct service *service, struct exec_ticket ticket);
/* Reaper, once a minute: the keys of commands that wait or run for long do not lapse meanwhile. */
void exec_prolong_keys(struct service *service);
/*
 * Reaper, once a minute, behind the sweep of the log: descriptions of commands that wait or run for long are written
 * anew, so that they do not keep all that was written since.
 */
void exec_move_specs(struct service *service);
/* Ends every live job of a sandbox that is being removed or was lost; `verdict` as in the REST API. */
void exec_end_all(struct service *service, const char *sandbox_uid, const char *verdict, const char *error);

#endif
