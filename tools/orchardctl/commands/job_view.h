/* job_view.h - commands that were started, for people. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARDCTL_COMMANDS_JOB_VIEW_H
#define ORCHARDCTL_COMMANDS_JOB_VIEW_H

#include "orchardctl/output/print.h"

extern const struct column job_columns[];

#endif
