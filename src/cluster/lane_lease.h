/*
 * lane_lease.h - what a lease allows, and what its record learns; no clock, no Redis.
 *
 * A lease that this server knows of is its own while its number is above `over`. A fence is the number with a count
 * below it: with numbers near Redis' clock in seconds it stays below 2^53, and above the fences of a server that shared
 * with nobody, which are microseconds.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CLUSTER_LANE_LEASE_H
#define ORCHARD_CLUSTER_LANE_LEASE_H

#include "ipc/lane_table.h"

#include <stdbool.h>
#include <stdint.h>

enum { LANE_FENCE_BITS = 21 };

enum lane_step {
	LANE_GO, /* with the fence */
	LANE_YIELD, /* others go first */
	LANE_ASK /* there is no lease */
};

/* May the next command go now? asked: it came while others waited, and may not pass them. away: nobody can be asked. */
enum lane_step
lane_lease_take(struct lane_record *record, bool asked, bool away, int64_t now_ms, uint64_t *ret_fence);

/* What Redis has said. */
struct lane_news {
	bool has; /* this server has the lane */
	bool wanted;
	uint64_t number; /* of the newest lease, whoever has it */
	uint32_t turns;
	int64_t until_ms;
};
/* Answers may be read in another order than they were given: one that is older than what is known changes nothing. */
void lane_lease_learn(struct lane_record *record, const struct lane_news *news);
/* It is this server's no more, and never will be under this number. */
void lane_lease_drop(struct lane_record *record);
/* An agent has seen that fence. */
void lane_lease_overtaken(struct lane_record *record, uint64_t newest_fence);

static inline bool
lane_lease_is_held(const struct lane_record *record)
{
	return record->number > record->over;
}

#endif
