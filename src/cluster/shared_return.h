/*
 * shared_return.h - Redis has come back, perhaps as a copy that lacks what it was told last.
 *
 * Whoever has told it tells it again then. Until that is done nobody can say of anything that it does not exist.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CLUSTER_SHARED_RETURN_H
#define ORCHARD_CLUSTER_SHARED_RETURN_H

#include <stdbool.h>
#include <stdint.h>

enum { SHARED_RETURN_MS = 5000 };

struct shared_return {
	bool was_up;
	int64_t back_ms; /* boot clock; 0: it was never away */
};

static inline void
shared_return_up(struct shared_return *shared, int64_t now_ms)
{
	if (shared->was_up)
		shared->back_ms = now_ms;
	shared->was_up = true;
}

static inline bool
shared_return_is_fresh(const struct shared_return *shared, int64_t now_ms)
{
	return shared->back_ms != 0 && now_ms - shared->back_ms < SHARED_RETURN_MS;
}

#endif
