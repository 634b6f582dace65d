/*
 * lane.h - one command at a time in each lane, and never an old one after a newer.
 *
 * A lane knows its running job and the newest fence it has seen. There are at
 * most LANE_MAX; the idle lane used longest ago gives way, and its fence raises
 * the floor below which no lane ever starts anything again.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_LANE_H
#define ORCHARD_AGENT_LANE_H

#include "base/cleanup.h"

#include <stdint.h>

struct job;
struct lane_table;

enum { LANE_MAX = 4096, LANE_NAME_MAX = 255 };

enum lane_answer {
	LANE_FREE,
	LANE_BUSY, /* *ret_running is what runs there */
	LANE_STALE, /* *ret_newest is the fence to exceed */
	LANE_FULL /* every lane runs something */
};

struct lane_table *lane_table_create(void);
void lane_table_free(struct lane_table *table);
/* May a job with that fence start in that lane now? Changes nothing but which lanes exist. */
enum lane_answer lane_check(struct lane_table *table, const char *name, int64_t fence, struct job **ret_running,
	int64_t *ret_newest) MUSTCHECK;
/* After LANE_FREE: the lane's newest fence is the job's from now on, and it runs there. */
void lane_enter(struct lane_table *table, struct job *job);
void lane_leave(struct lane_table *table, struct job *job);
int64_t lane_newest_fence(const struct lane_table *table); /* in any lane */
uint32_t lane_running(const struct lane_table *table);

#endif
