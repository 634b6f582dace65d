/* refusal.h - why a process could not be started, in words. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_REFUSAL_H
#define ORCHARD_AGENT_REFUSAL_H

#include "agent/spawn.h"

struct err;

enum { REFUSAL_NOT_EXECUTABLE = 126, REFUSAL_NOT_FOUND = 127 };

/* What spawn() told about the plan: the words, and the exit code that stands for it. */
int refusal_of_spawn(const struct spawn_plan *plan, enum spawn_stage stage, int errnum, struct err *err);

#endif
