/*
 * attach.h - this process stands for a job: its output is ours, our stdin is its, our signals end it.
 *
 * INT, TERM, HUP and QUIT cancel the job, a second one leaves it to the server. A reader of stdout that goes away
 * cancels it as well.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARDCTL_ATTACH_ATTACH_H
#define ORCHARDCTL_ATTACH_ATTACH_H

#include "base/cleanup.h"

#include <stdbool.h>

struct ctl;
struct json_object;

struct attach {
	const char *job_id;
	bool input; /* stdin goes to the job */
	bool silent; /* its output goes nowhere */
	bool watch_only; /* the job goes on when we leave */
};

/*
 * Until the job has ended, or we leave. The exit status; *ret_job is the ended job without its output, owned by the
 * caller, NULL when we do not know its end. ctl->signals must be caught.
 */
int attach_run(struct ctl *ctl, const struct attach *attach, struct json_object **ret_job) MUSTCHECK;

/* The exit status that a job's end means; says on stderr what the exit code does not tell. */
int job_exit_status(const struct ctl *ctl, struct json_object *job);

#endif
