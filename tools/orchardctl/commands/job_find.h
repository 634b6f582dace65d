/* job_find.h - a job by its id, or the newest of a sandbox. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARDCTL_COMMANDS_JOB_FIND_H
#define ORCHARDCTL_COMMANDS_JOB_FIND_H

#include "base/cleanup.h"

struct client;
struct err;

/* word: a job's id, or a sandbox's name, which stands for its newest job. malloc'ed; NULL with err. */
char *job_find(struct client *client, const char *word, struct err *err) MUSTCHECK;

#endif
