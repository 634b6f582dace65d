/* handle_job.h - answering with a job, now or when it has ended; exec does it too. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_WORKER_HANDLE_JOB_H
#define ORCHARD_WORKER_HANDLE_JOB_H

#include <stdint.h>

struct request;

/* Answers with the job when it has ended, or as it stands when the time or the worker's is up. */
void answer_with_ended_job(struct request *request, const char *job_id, int64_t timeout_ms);

#endif
