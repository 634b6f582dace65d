/*
 * replay.h - the last bytes of an output, by their offsets.
 *
 * It grows with what comes, up to its maximum and what the budget that all share
 * has left; then the oldest bytes give way.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_REPLAY_H
#define ORCHARD_AGENT_REPLAY_H

#include <stddef.h>
#include <stdint.h>

enum { REPLAY_MIN = 16 << 10 }; /* kept even when the budget is used up */

struct replay {
	char *bytes; /* NULL until the first one comes */
	size_t size, max;
	uint64_t end; /* all bytes that ever came; the newest is at end - 1 */
	int64_t *budget;
};

/* budget: bytes that may still be taken; outlives the replay. max is a power of two, at least REPLAY_MIN. */
void replay_init(struct replay *replay, size_t max, int64_t *budget);
void replay_fini(struct replay *replay);
/* More than REPLAY_MIN bytes at once may push each other out. */
void replay_add(struct replay *replay, const char *bytes, size_t len);
uint64_t replay_start(const struct replay *replay); /* the oldest offset kept */
/* Bytes that lie together at offset, which is between start and end. */
size_t replay_at(const struct replay *replay, uint64_t offset, const char **ret_bytes);

#endif
