/*
 * record_index.c - key -> place, as hash chains over a fixed pool of entries.
 *
 * An entry is in use while its segment is not 0; that word is stored last when the
 * entry is made and cleared first when it goes, so no torn entry is ever in use.
 * Chains, free list and counts are derived, and are made new from the entries when a
 * holder of the mutex has died. Whatever walks the whole pool does so in slices and
 * gives the mutex up in between: no one waits for longer than a slice takes.
 */
/* SPDX-License-Identifier: MIT */
#include "ipc/record_index.h"
#include "base/clock.h"
#include "base/err.h"
#include "ipc/crash_point.h"
#include "ipc/robust.h"
#include "ipc/section.h"

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <string.h>

enum { SLICE = 2048, SAMPLES = 1024, ROOM_PART = 16, MIN_ENTRIES = 64 };

/* References to entries are number + 1; 0: none. */
struct index_entry {
	struct record_key key;
	double expires_at;
	uint64_t offset;
	uint32_t length;
	_Atomic uint32_t segment; /* 0: not in use */
	uint32_t next; /* in its chain or in the free list */
	uint32_t pad;
};

struct shm_index {
	alignas(64) pthread_mutex_t mutex;
	_Atomic uint32_t segment; /* the newest number given out */
	uint32_t total, bucket_mask;
	uint64_t buckets, entries; /* offsets from here */
	/* Derived. */
	uint32_t bound; /* entries from here on were never used */
	uint32_t free;
	uint32_t count;
};

_Static_assert(sizeof(struct index_entry) == 48, "layout changed: raise SHM_VERSION");

static uint32_t
bucket_count(uint32_t total)
{
	uint32_t n = MIN_ENTRIES;

	while (n < total)
		n *= 2;
	return n;
}

static uint64_t
lay_out(struct shm_index *index, uint32_t records)
{
	index->total = records;
	index->bucket_mask = bucket_count(records) - 1;
	index->buckets = (sizeof *index + 63) / 64 * 64;
	index->entries = index->buckets + (uint64_t)bucket_count(records) * sizeof(uint32_t);
	return index->entries + (uint64_t)records * sizeof(struct index_entry);
}

size_t
record_index_section_size(uint32_t records)
{
	struct shm_index layout;

	return lay_out(&layout, records);
}

void
record_index_section_init(struct shm_index *index, uint32_t records)
{
	lay_out(index, records);
	robust_init(&index->mutex);
}

static struct index_entry *
entry_at(struct shm_index *index, uint32_t ref)
{
	return (struct index_entry *)((char *)index + index->entries) + (ref - 1);
}

static uint32_t *
bucket_of(struct shm_index *index, const struct record_key *key)
{
	uint64_t words[2], h;

	memcpy(words, key->bytes, sizeof words);
	h = (words[0] ^ words[1] * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xd6e8feb86659fd93);
	return (uint32_t *)((char *)index + index->buckets) + ((uint32_t)(h >> 32) & index->bucket_mask);
}

static uint32_t
segment_of(const struct index_entry *entry)
{
	return atomic_load_explicit(&entry->segment, memory_order_relaxed);
}

static void
set_segment(struct index_entry *entry, uint32_t segment)
{
	robust_order();
	CRASH_POINT();
	atomic_store_explicit(&entry->segment, segment, memory_order_relaxed);
	robust_order();
	CRASH_POINT();
}

static void
link_entry(struct shm_index *index, uint32_t ref)
{
	struct index_entry *entry = entry_at(index, ref);
	uint32_t *bucket = bucket_of(index, &entry->key);

	entry->next = *bucket;
	CRASH_POINT();
	*bucket = ref;
	index->count++;
}

static void
free_entry(struct shm_index *index, uint32_t ref)
{
	entry_at(index, ref)->next = index->free;
	CRASH_POINT();
	index->free = ref;
}

static void
rebuild(struct shm_index *index)
{
	memset((char *)index + index->buckets, 0, ((size_t)index->bucket_mask + 1) * sizeof(uint32_t));
	index->free = index->count = 0;
	for (uint32_t ref = index->bound; ref > 0; ref--) {
		if (segment_of(entry_at(index, ref)) != 0)
			link_entry(index, ref);
		else
			free_entry(index, ref);
	}
}

void
record_index_section_adopt(struct shm_index *index, uint32_t records)
{
	lay_out(index, records);
	robust_init(&index->mutex);
	if (index->bound > records)
		index->bound = records;
	rebuild(index);
}

static void
enter(struct shm_index *index)
{
	if (robust_lock(&index->mutex)) {
		rebuild(index);
		robust_consistent(&index->mutex);
	}
}

static void
leave(struct shm_index *index)
{
	robust_unlock(&index->mutex);
}

/* The link that leads to key's entry, or to 0. */
static uint32_t *
find_link(struct shm_index *index, const struct record_key *key)
{
	uint32_t *link = bucket_of(index, key);

	while (*link != 0) {
		struct index_entry *entry = entry_at(index, *link);

		if (memcmp(&entry->key, key, sizeof *key) == 0)
			break;
		link = &entry->next;
	}
	return link;
}

static void
remove_at(struct shm_index *index, uint32_t *link)
{
	uint32_t ref = *link;
	struct index_entry *entry = entry_at(index, ref);

	set_segment(entry, 0);
	*link = entry->next;
	index->count--;
	free_entry(index, ref);
}

static uint32_t
pick(struct shm_index *index)
{
	uint32_t ref = index->free;

	if (ref == 0)
		return index->bound < index->total ? ++index->bound : 0;
	index->free = entry_at(index, ref)->next;
	return ref;
}

static struct record_location
location_of(const struct index_entry *entry)
{
	return (struct record_location){
		.segment = segment_of(entry), .length = entry->length, .offset = entry->offset
	};
}

static int
add(struct shm_index *index, const struct record_key *key, double expires_at,
	const struct record_location *location, struct err *err)
{
	uint32_t ref = pick(index);
	struct index_entry *entry;

	if (ref == 0)
		return err_set(err, ERR_BUSY,
			"%u finished jobs and deleted sandboxes are kept (job_store_max_records)", index->total);
	CRASH_POINT();
	entry = entry_at(index, ref);
	entry->key = *key;
	entry->expires_at = expires_at;
	entry->offset = location->offset;
	entry->length = location->length;
	set_segment(entry, location->segment);
	link_entry(index, ref);
	return 0;
}

int
record_index_put(struct shm_index *index, const struct record_key *key, double expires_at,
	struct record_location *location, struct err *err)
{
	double now = clock_wall();
	uint32_t *link;
	int rc;

	if (location->segment == 0)
		return err_set(err, ERR_INTERNAL, "record index: segment 0");
	enter(index);
	link = find_link(index, key);
	if (*link != 0 && entry_at(index, *link)->expires_at > now) {
		*location = location_of(entry_at(index, *link));
		rc = err_set(err, ERR_EXISTS, "a record of that key was there first");
	} else {
		if (*link != 0)
			remove_at(index, link);
		rc = add(index, key, expires_at, location, err);
	}
	leave(index);
	return rc;
}

bool
record_index_get(
	struct shm_index *index, const struct record_key *key, double now, struct record_location *ret_location)
{
	uint32_t ref;
	bool found;

	enter(index);
	ref = *find_link(index, key);
	found = ref != 0 && entry_at(index, ref)->expires_at > now;
	if (found)
		*ret_location = location_of(entry_at(index, ref));
	leave(index);
	return found;
}

void
record_index_drop(struct shm_index *index, const struct record_key *key)
{
	uint32_t *link;

	enter(index);
	link = find_link(index, key);
	if (*link != 0)
		remove_at(index, link);
	leave(index);
}

static void
purge_slice(struct shm_index *index, uint32_t from, double now, uint32_t oldest)
{
	for (uint32_t ref = from + 1; ref <= from + SLICE && ref <= index->bound; ref++) {
		struct index_entry *entry = entry_at(index, ref);
		uint32_t segment = segment_of(entry);

		if (segment != 0 && (entry->expires_at <= now || segment < oldest))
			remove_at(index, find_link(index, &entry->key));
	}
}

uint32_t
record_index_purge(struct shm_index *index, double now, uint32_t oldest)
{
	uint32_t count = 0, bound = 1;

	for (uint32_t from = 0; from < bound; from += SLICE) {
		enter(index);
		purge_slice(index, from, now, oldest);
		count = index->count;
		bound = index->bound;
		leave(index);
	}
	return count;
}

static int
compare_times(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* The time by which about one entry in ROOM_PART will have expired. */
static double
early_quantile(struct shm_index *index)
{
	double times[SAMPLES];
	uint32_t n = 0, step;

	enter(index);
	step = index->bound / SAMPLES + 1;
	for (uint32_t ref = 1; ref <= index->bound && n < SAMPLES; ref += step)
		if (segment_of(entry_at(index, ref)) != 0)
			times[n++] = entry_at(index, ref)->expires_at;
	leave(index);
	if (n == 0)
		return 0;
	qsort(times, n, sizeof *times, compare_times);
	return times[n / ROOM_PART];
}

void
record_index_make_room(struct shm_index *index, double now)
{
	if (record_index_purge(index, now, 0) > index->total - index->total / ROOM_PART)
		record_index_purge(index, early_quantile(index), 0);
}

uint32_t
record_index_next_segment(struct shm_index *index)
{
	uint32_t number;

	do
		number = atomic_fetch_add(&index->segment, 1) + 1;
	while (number == 0);
	return number;
}

void
record_index_raise_segment(struct shm_index *index, uint32_t seen)
{
	uint32_t newest = atomic_load(&index->segment);

	while (newest < seen && !atomic_compare_exchange_weak(&index->segment, &newest, seen))
		;
}

uint32_t
record_index_count(struct shm_index *index)
{
	uint32_t count;

	enter(index);
	count = index->count;
	leave(index);
	return count;
}
