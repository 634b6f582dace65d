/*
 * record_room.c - what walks the whole index: forgetting what has expired, and what makes room when it is full.
 *
 * A walk goes in slices and gives the mutex up in between: no one waits for longer
 * than a slice takes. Room is made a sixteenth at a time, so that a walk pays for
 * many records; several processes that do it at once stop at the same mark.
 */
/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "ipc/record_index_impl.h"

#include <stdlib.h>

enum { SLICE = 2048, SAMPLES = 1024, ROOM_PART = 16 };

static void
purge_slice(struct shm_index *index, uint32_t from, double now, uint32_t oldest)
{
	for (uint32_t ref = from + 1; ref <= from + SLICE && ref <= index->bound; ref++) {
		struct index_entry *entry = index_entry_at(index, ref);
		uint32_t segment = index_segment_of(entry);

		if (segment != 0 && (entry->expires_at <= now || segment < oldest))
			index_forget(index, entry);
	}
}

uint32_t
record_index_purge(struct shm_index *index, double now, uint32_t oldest)
{
	uint32_t count = 0, bound = 1;

	for (uint32_t from = 0; from < bound; from += SLICE) {
		index_enter(index);
		purge_slice(index, from, now, oldest);
		count = index->count;
		bound = index->bound;
		index_leave(index);
	}
	return count;
}

static int
compare_seconds(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* The second by which about one entry in ROOM_PART had ended; not after `latest`. */
static uint32_t
early_end(struct shm_index *index, uint32_t latest)
{
	uint32_t ends[SAMPLES], seen = 0, n = 0, step;

	index_enter(index);
	step = index->bound / SAMPLES + 1;
	for (uint32_t ref = 1; ref <= index->bound; ref += step, seen++) {
		const struct index_entry *entry = index_entry_at(index, ref);

		if (index_segment_of(entry) != 0 && entry->ended != 0 && entry->ended <= latest)
			ends[n++] = entry->ended;
	}
	index_leave(index);
	if (n <= seen / ROOM_PART)
		return latest;
	qsort(ends, n, sizeof *ends, compare_seconds);
	return ends[seen / ROOM_PART];
}

static void
forget_slice(struct shm_index *index, uint32_t from, uint32_t latest, uint32_t mark)
{
	for (uint32_t ref = from + 1; ref <= from + SLICE && ref <= index->bound && index->count > mark; ref++) {
		struct index_entry *entry = index_entry_at(index, ref);

		if (index_segment_of(entry) != 0 && entry->ended != 0 && entry->ended <= latest) {
			index_forget(index, entry);
			index->forgotten++;
		}
	}
}

bool
record_index_make_room(struct shm_index *index, double now, double ended_by)
{
	uint32_t places = index_places(index), mark = places - places / ROOM_PART, latest, count = UINT32_MAX;

	if (record_index_purge(index, now, 0) <= mark)
		return true;
	latest = early_end(index, ended_by > 0 ? (uint32_t)ended_by : 0);
	for (uint32_t from = 0; from < places && count > mark; from += SLICE) {
		index_enter(index);
		forget_slice(index, from, latest, mark);
		count = index->count;
		index_leave(index);
	}
	return count < places;
}

uint64_t
record_index_forgotten(struct shm_index *index)
{
	uint64_t forgotten;

	index_enter(index);
	forgotten = index->forgotten;
	index_leave(index);
	return forgotten;
}

static int
compare_numbers(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static void
mark_slice(struct shm_index *index, uint32_t from, const uint32_t *numbers, size_t count, bool *ret_used)
{
	for (uint32_t ref = from + 1; ref <= from + SLICE && ref <= index->bound; ref++) {
		uint32_t segment = index_segment_of(index_entry_at(index, ref));
		const uint32_t *found = bsearch(&segment, numbers, count, sizeof *numbers, compare_numbers);

		if (found != NULL)
			ret_used[found - numbers] = true;
	}
}

void
record_index_mark_used(struct shm_index *index, const uint32_t *numbers, size_t count, bool *ret_used)
{
	uint32_t bound = 1;

	for (uint32_t from = 0; from < bound; from += SLICE) {
		index_enter(index);
		mark_slice(index, from, numbers, count, ret_used);
		bound = index->bound;
		index_leave(index);
	}
}

uint32_t
record_index_page(struct shm_index *index, uint32_t from, double ended_from, struct record_key *ret_keys,
	size_t size, size_t *ret_count)
{
	uint32_t ref = from + 1;
	bool more;

	*ret_count = 0;
	index_enter(index);
	for (; ref <= index->bound && ref <= from + SLICE && *ret_count < size; ref++) {
		const struct index_entry *entry = index_entry_at(index, ref);

		if (index_segment_of(entry) != 0 && entry->ended != 0 && entry->ended >= ended_from)
			ret_keys[(*ret_count)++] = entry->key;
	}
	more = ref <= index->bound;
	index_leave(index);
	return more ? ref - 1 : 0;
}
