/*
 * shared_clock.h - the replicas' common clock: Redis' own, in milliseconds since 1970.
 *
 * Ages in shared memory are of this host's boot clock, ages in Redis of Redis' clock. What lies between the two is known
 * from each answer that says its time, to within the answer's way. 0 is "never" on both sides.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CLUSTER_SHARED_CLOCK_H
#define ORCHARD_CLUSTER_SHARED_CLOCK_H

#include <stdint.h>

enum { SHARED_CLOCK_SLACK_MS = 200 };

struct shared_clock {
	int64_t ahead_ms; /* Redis' clock less the boot clock */
};

/* How long an answer was on its way must not show: a moment that goes there and back stays the same. */
static inline void
shared_clock_learn(struct shared_clock *shared, int64_t redis_ms, int64_t boot_ms)
{
	int64_t off_by = redis_ms - boot_ms - shared->ahead_ms;

	if (off_by > SHARED_CLOCK_SLACK_MS || off_by < -SHARED_CLOCK_SLACK_MS)
		shared->ahead_ms = redis_ms - boot_ms;
}

static inline int64_t
shared_clock_to_redis(const struct shared_clock *shared, int64_t boot_ms)
{
	return boot_ms == 0 ? 0 : boot_ms + shared->ahead_ms;
}

/* May be before the boot, or ahead of now where somebody has set Redis' clock. */
static inline int64_t
shared_clock_to_boot(const struct shared_clock *shared, int64_t redis_ms)
{
	return redis_ms == 0 ? 0 : redis_ms - shared->ahead_ms;
}

#endif
