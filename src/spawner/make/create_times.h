/* create_times.h - what the steps of creates took, for GET /metrics. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_CREATE_TIMES_H
#define ORCHARD_SPAWNER_CREATE_TIMES_H

#include "ipc/scoreboard.h"
#include "spawner/make/make.h"

/* Counts one that went well; all_us since it was in line: what no step took, it waited. board NULL: not counted. */
void create_times_count(
	struct shm_scoreboard *board, struct proc_ref self, const struct make_result *made, int64_t all_us);

#endif
