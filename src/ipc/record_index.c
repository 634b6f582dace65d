/*
 * record_index.c - key -> place, as hash chains over a fixed pool of entries.
 *
 * An entry is in use while its segment is not 0; that word is stored last when the
 * entry is made and cleared first when it goes, so no torn entry is ever in use.
 * Chains, free list and counts are derived, and are made new from the entries when a
 * holder of the mutex has died. What walks the whole pool is in record_room.c.
 */
/* SPDX-License-Identifier: MIT */
#include "ipc/record_index_impl.h"
#include "base/clock.h"
#include "base/err.h"
#include "ipc/crash_point.h"
#include "ipc/robust.h"
#include "ipc/room.h"
#include "ipc/section.h"

#include <string.h>

enum { MIN_BUCKETS = 64, FULL_CHAIN = 4 /* entries per chain when the index is full */, NOT_READY = -1 };

_Static_assert(sizeof(struct index_entry) == 48, "layout changed: raise SHM_VERSION");

static uint32_t
bucket_count(uint32_t total)
{
	uint32_t n = MIN_BUCKETS;

	while (n < total / FULL_CHAIN)
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
record_index_section_fixed_size(uint32_t records)
{
	struct shm_index layout;

	(void)lay_out(&layout, records);
	return layout.entries;
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

struct index_entry *
index_entry_at(struct shm_index *index, uint32_t ref)
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

uint32_t
index_segment_of(const struct index_entry *entry)
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
	struct index_entry *entry = index_entry_at(index, ref);
	uint32_t *bucket = bucket_of(index, &entry->key);

	entry->next = *bucket;
	CRASH_POINT();
	*bucket = ref;
	index->count++;
}

static void
free_entry(struct shm_index *index, uint32_t ref)
{
	index_entry_at(index, ref)->next = index->free;
	CRASH_POINT();
	index->free = ref;
}

/* The link that leads to key's entry, or to 0. */
static uint32_t *
find_link(struct shm_index *index, const struct record_key *key)
{
	uint32_t *link = bucket_of(index, key);

	while (*link != 0) {
		struct index_entry *entry = index_entry_at(index, *link);

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
	struct index_entry *entry = index_entry_at(index, ref);

	set_segment(entry, 0);
	*link = entry->next;
	index->count--;
	free_entry(index, ref);
}

void
index_forget(struct shm_index *index, struct index_entry *entry)
{
	remove_at(index, find_link(index, &entry->key));
}

/* A killed record_index_move() leaves two entries of a key: the one that lasts longer stays. */
static void
relink_entry(struct shm_index *index, uint32_t ref)
{
	struct index_entry *entry = index_entry_at(index, ref);
	uint32_t *link = find_link(index, &entry->key);

	if (*link != 0 && index_entry_at(index, *link)->expires_at >= entry->expires_at) {
		set_segment(entry, 0);
		free_entry(index, ref);
		return;
	}
	if (*link != 0)
		remove_at(index, link);
	link_entry(index, ref);
}

static void
rebuild(struct shm_index *index)
{
	memset((char *)index + index->buckets, 0, ((size_t)index->bucket_mask + 1) * sizeof(uint32_t));
	index->free = index->count = 0;
	for (uint32_t ref = index->bound; ref > 0; ref--) {
		if (index_segment_of(index_entry_at(index, ref)) != 0)
			relink_entry(index, ref);
		else
			free_entry(index, ref);
	}
}

void
record_index_section_adopt(struct shm_index *index, uint32_t records)
{
	lay_out(index, records);
	robust_init(&index->mutex);
	if (atomic_load(&index->ready) > records)
		atomic_store(&index->ready, records);
	if (index->bound > atomic_load(&index->ready))
		index->bound = atomic_load(&index->ready);
	rebuild(index);
}

void
index_enter(struct shm_index *index)
{
	if (robust_lock(&index->mutex)) {
		rebuild(index);
		robust_consistent(&index->mutex);
	}
}

void
index_leave(struct shm_index *index)
{
	robust_unlock(&index->mutex);
}

uint32_t
index_places(struct shm_index *index)
{
	return atomic_load_explicit(&index->ready, memory_order_acquire);
}

/* 0: there is none; NOT_READY: not yet the memory for it. */
static int64_t
pick(struct shm_index *index)
{
	uint32_t ref = index->free;

	if (ref == 0 && index->bound == index->total)
		return 0;
	if (ref == 0)
		return index->bound < index_places(index) ? (int64_t)++index->bound : NOT_READY;
	index->free = index_entry_at(index, ref)->next;
	return ref;
}

static struct record_location
location_of(const struct index_entry *entry)
{
	return (struct record_location){
		.segment = index_segment_of(entry), .length = entry->length, .offset = entry->offset
	};
}

/* Rounded up: nothing counts as ended before it had. */
static uint32_t
seconds_of(double time)
{
	return time > 0 && time < (double)UINT32_MAX ? (uint32_t)time + 1 : 0;
}

/* ERR_NO_SPACE: not yet the memory for it, see try_again. */
static int
add(struct shm_index *index, const struct record_key *key, const struct record_life *life,
	const struct record_location *location, struct err *err)
{
	int64_t picked = pick(index);
	uint32_t ref = (uint32_t)picked;
	struct index_entry *entry;

	if (picked == 0)
		return err_set(err, ERR_BUSY, "%u records are kept, as many as may be", index->total);
	if (picked == NOT_READY)
		return err_set(err, ERR_NO_SPACE, "no memory yet for more records");
	CRASH_POINT();
	entry = index_entry_at(index, ref);
	entry->key = *key;
	entry->expires_at = life->expires_at;
	entry->ended = seconds_of(life->ended_at);
	entry->offset = location->offset;
	entry->length = location->length;
	set_segment(entry, location->segment);
	link_entry(index, ref);
	return 0;
}

/*
 * After a call that failed, with the mutex free again: whether it is worth another try, because there is memory now.
 * An index that gets none is full: callers know how to make room.
 */
static bool
try_again(struct shm_index *index, uint32_t ready, struct err *err)
{
	const struct room room = { (char *)index_entry_at(index, 1), sizeof(struct index_entry), index->total,
		&index->ready };

	if (err->code != ERR_NO_SPACE)
		return false;
	if (room_grow(&room, ready))
		return true;
	err_set(err, ERR_BUSY, "%u records are kept: the file system of run_dir has no memory for more", ready);
	return false;
}

static int
try_put(struct shm_index *index, const struct record_key *key, const struct record_life *life,
	struct record_location *location, struct err *err)
{
	double now = clock_steady();
	uint32_t *link;
	int rc;

	index_enter(index);
	link = find_link(index, key);
	if (*link != 0 && index_entry_at(index, *link)->expires_at > now) {
		*location = location_of(index_entry_at(index, *link));
		rc = err_set(err, ERR_EXISTS, "a record of that key was there first");
	} else {
		if (*link != 0)
			remove_at(index, link);
		rc = add(index, key, life, location, err);
	}
	index_leave(index);
	return rc;
}

int
record_index_put(struct shm_index *index, const struct record_key *key, const struct record_life *life,
	struct record_location *location, struct err *err)
{
	uint32_t ready;
	int rc;

	if (location->segment == 0)
		return err_set(err, ERR_INTERNAL, "record index: segment 0");
	do {
		ready = index_places(index);
		rc = try_put(index, key, life, location, err);
	} while (rc < 0 && try_again(index, ready, err));
	return rc;
}

bool
record_index_find(struct shm_index *index, const struct record_key *key, double now,
	struct record_location *ret_location, struct record_life *ret_life)
{
	uint32_t ref;
	bool found;

	index_enter(index);
	ref = *find_link(index, key);
	found = ref != 0 && index_entry_at(index, ref)->expires_at > now;
	if (found) {
		const struct index_entry *entry = index_entry_at(index, ref);

		*ret_location = location_of(entry);
		*ret_life = (struct record_life){ .expires_at = entry->expires_at, .ended_at = entry->ended };
	}
	index_leave(index);
	return found;
}

bool
record_index_get(
	struct shm_index *index, const struct record_key *key, double now, struct record_location *ret_location)
{
	struct record_life life;

	return record_index_find(index, key, now, ret_location, &life);
}

void
record_index_drop(struct shm_index *index, const struct record_key *key)
{
	uint32_t *link;

	index_enter(index);
	link = find_link(index, key);
	if (*link != 0)
		remove_at(index, link);
	index_leave(index);
}

static bool
stands_at(struct shm_index *index, uint32_t ref, const struct record_location *location)
{
	struct index_entry *entry;

	if (ref == 0)
		return false;
	entry = index_entry_at(index, ref);
	return index_segment_of(entry) == location->segment && entry->offset == location->offset;
}

bool
record_index_drop_at(struct shm_index *index, const struct record_key *key, const struct record_location *location)
{
	uint32_t *link;
	bool there;

	index_enter(index);
	link = find_link(index, key);
	there = stands_at(index, *link, location);
	if (there)
		remove_at(index, link);
	index_leave(index);
	return there;
}

/*
 * The new entry is in its chain before the old one goes: killed in between, the key is there twice, never not at
 * all, and is put right when the lists are made new.
 */
static int
try_move(struct shm_index *index, const struct record_key *key, const struct record_life *life,
	const struct record_location *from, const struct record_location *to, struct err *err)
{
	uint32_t ref, *link;
	int rc;

	index_enter(index);
	ref = *find_link(index, key);
	if (!stands_at(index, ref, from) || index_entry_at(index, ref)->ended != 0)
		rc = err_set(err, ERR_STALE, "the record of that key is another one by now, or has ended");
	else
		rc = add(index, key, life, to, err);
	if (rc == 0) {
		link = bucket_of(index, key);
		while (*link != ref)
			link = &index_entry_at(index, *link)->next;
		CRASH_POINT();
		remove_at(index, link);
	}
	index_leave(index);
	return rc;
}

int
record_index_move(struct shm_index *index, const struct record_key *key, const struct record_life *life,
	const struct record_location *from, const struct record_location *to, struct err *err)
{
	uint32_t ready;
	int rc;

	do {
		ready = index_places(index);
		rc = try_move(index, key, life, from, to, err);
	} while (rc < 0 && try_again(index, ready, err));
	return rc;
}

bool
record_index_settle(struct shm_index *index, const struct record_key *key, const struct record_life *life,
	struct record_location *ret_location)
{
	uint32_t ref;

	index_enter(index);
	ref = *find_link(index, key);
	if (ref != 0) {
		struct index_entry *entry = index_entry_at(index, ref);

		entry->expires_at = life->expires_at;
		entry->ended = seconds_of(life->ended_at);
		*ret_location = location_of(entry);
	}
	index_leave(index);
	return ref != 0;
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

uint32_t
record_index_newest_segment(struct shm_index *index)
{
	return atomic_load(&index->segment);
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

	index_enter(index);
	count = index->count;
	index_leave(index);
	return count;
}
