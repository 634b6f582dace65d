/* replay.c - a ring whose size is a power of two, so that an offset tells the place. */
/* SPDX-License-Identifier: MIT */
#include "agent/terminal/replay.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

void
replay_init(struct replay *replay, size_t max, int64_t *budget)
{
	*replay = (struct replay){ .max = max, .budget = budget };
}

void
replay_fini(struct replay *replay)
{
	*replay->budget += (int64_t)replay->size;
	free(replay->bytes);
	*replay = (struct replay){ .budget = replay->budget };
}

uint64_t
replay_start(const struct replay *replay)
{
	return replay->end > replay->size ? replay->end - replay->size : 0;
}

size_t
replay_at(const struct replay *replay, uint64_t offset, const char **ret_bytes)
{
	size_t place = replay->size == 0 ? 0 : (size_t)(offset & (replay->size - 1));
	uint64_t left = replay->end - offset;

	*ret_bytes = replay->bytes + place;
	return left < replay->size - place ? (size_t)left : replay->size - place;
}

static void
replay_put(struct replay *replay, const char *bytes, size_t len)
{
	while (len > 0) {
		size_t place = (size_t)(replay->end & (replay->size - 1));
		size_t part = len < replay->size - place ? len : replay->size - place;

		memcpy(replay->bytes + place, bytes, part);
		replay->end += part;
		bytes += part;
		len -= part;
	}
}

/* What is kept goes to its places in the larger ring. */
static void
replay_grow(struct replay *replay, size_t size)
{
	struct replay grown = *replay;

	grown.end = replay_start(replay);
	grown.size = size;
	grown.bytes = alloc_bytes(size);
	while (grown.end < replay->end) {
		const char *bytes;
		size_t len = replay_at(replay, grown.end, &bytes);

		replay_put(&grown, bytes, len);
	}
	*replay->budget -= (int64_t)(size - replay->size);
	free(replay->bytes);
	*replay = grown;
}

void
replay_add(struct replay *replay, const char *bytes, size_t len)
{
	if (replay->size == 0)
		replay_grow(replay, REPLAY_MIN);
	while (replay->end + len > replay->size && replay->size < replay->max &&
		*replay->budget >= (int64_t)replay->size)
		replay_grow(replay, replay->size * 2);
	replay_put(replay, bytes, len);
}
