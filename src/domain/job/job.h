/*
 * job.h - looking at jobs: now, when they end, all of a sandbox; and cancelling them.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_DOMAIN_JOB_H
#define ORCHARD_DOMAIN_JOB_H

#include "base/cleanup.h"

#include <stdint.h>

struct err;
struct job_wait;
struct json_object;
struct service;

/* The job as the REST API shows it (borrowed), or why not (ERR_NOT_FOUND, ...). */
typedef void job_done_f(struct json_object *job, const struct err *why, void *arg);

/* As it stands now; done may be called before it returns. */
void job_get(struct service *service, const char *tenant, const char *job_id, job_done_f *done, void *arg);
/*
 * done when it has ended, or as it stands when timeout_ms ran out (0: at once). *ret_wait is NULL when done
 * was called already. ERR_BUSY over max_waiters.
 */
void job_wait_start(struct service *service, const char *tenant, const char *job_id, int64_t timeout_ms,
	job_done_f *done, void *arg, struct job_wait **ret_wait);
void job_wait_cancel(struct job_wait *wait);
/* Asks for its end (TERM, grace, KILL; a queued one never starts); done with the job once it has ended or after 30 s. */
void job_cancel(struct service *service, const char *tenant, const char *job_id, job_done_f *done, void *arg,
	struct job_wait **ret_wait);
/*
 * The client that sent the command has left: if it is still queued, and was not asked to outlive its client, it gives
 * its place up and ends as never started. One that runs, or may, goes on.
 */
void job_leave(struct service *service, const char *tenant, const char *job_id);
/* Something is new about a job of another server. */
void job_heard_far(struct service *service, const char *job_id);
/* A client of another server wants to cancel a job of ours. */
void job_heard_cancel(struct service *service, const char *job_id);
/* Another server has taken a job of ours over. */
void job_heard_claim(struct service *service, const char *job_id);
/* Other servers do not know of it any more. */
void job_heard_lost(struct service *service, const char *job_id);
/* Live and finished jobs of a sandbox, newest first, at most limit; done gets a JSON array (without outputs). */
void job_list(struct service *service, const char *tenant, const char *sandbox_id, uint32_t limit, job_done_f *done,
	void *arg);

#endif
