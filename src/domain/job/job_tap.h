/*
 * job_tap.h - what a job has written, read piece by piece from wherever it is kept.
 *
 * A live job's bytes are asked for at the agent of its sandbox, whichever process drives it. Those of an
 * ended one come from its stored result when that holds all of them, else from what the agent still keeps.
 * A tap holds one piece at a time.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_DOMAIN_JOB_TAP_H
#define ORCHARD_DOMAIN_JOB_TAP_H

#include "domain/job/job_output.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct job_tap;
struct json_object;
struct service;

enum job_tap_state {
	JOB_TAP_QUEUED,
	JOB_TAP_RUNNING,
	JOB_TAP_ENDING, /* no more will come; its end is not written down yet */
	JOB_TAP_ENDED
};

struct job_tap_ask {
	int64_t offset[JOB_STREAMS]; /* -1: not this one */
	uint32_t limit; /* bytes of each */
	int64_t wait_ms; /* while it runs: for a byte, or its end */
	bool reader; /* a command that waits for its reader may lose all before the offsets */
};

struct job_tap_part {
	int64_t offset; /* of the first byte; over what was asked: those between are not kept */
	int64_t bytes; /* written so far, kept or not */
	const uint8_t *data;
	size_t len;
	bool whole; /* all of it is kept, and does not change any more */
	bool gone; /* from what was asked on nothing is kept any more; bytes may be less than was written */
};

struct job_tap_answer {
	enum job_tap_state state;
	const char *status; /* as in the REST API */
	uint32_t queue_position; /* QUEUED; UINT32_MAX: not known */
	bool silent; /* RUNNING: its agent can't be asked just now, ask again after a pause */
	int64_t hold_ms; /* of a reader: how long the command waits without hearing of it; 0: it does not */
	struct json_object *job; /* ENDED: as stored */
	struct job_tap_part parts[JOB_STREAMS]; /* of those asked for */
};

/*
 * All of the answer is borrowed. why: ERR_NOT_FOUND, ERR_AGENT_UNREACHABLE (ask again), any other is the end.
 * The callback may close the tap.
 */
typedef void job_tap_f(const struct job_tap_answer *answer, const struct err *why, void *arg);

struct job_tap *
job_tap_open(struct service *service, const char *tenant, const char *job_id, job_tap_f *done, void *arg);
void job_tap_close(struct job_tap *tap);
/* One at a time; done comes from the loop, never before this returns. */
void job_tap_read(struct job_tap *tap, const struct job_tap_ask *ask);
/* No answer comes to the read that is on its way. */
void job_tap_stop(struct job_tap *tap);
/* The next read may be long in coming: gives back memory. */
void job_tap_rest(struct job_tap *tap);

#endif
