/*
 * slot_array.c - shared records: lock-free reads, redone writes, rebuilt lists.
 *
 * Truth is each slot's `used` flag and record. Hash chains, free list and counts are
 * derived from it and are rebuilt when a holder of the table lock has died.
 *
 * Locks. The table lock guards inserting and removing: chains, free list, bound. A
 * record's lock is one of SLOT_STRIPES locks, chosen by slot number; it guards changing
 * the record and taking `used` away. Order: table, then stripe; never two stripes.
 *
 * Changing. The new record is made in the stripe's journal, then the journal is
 * armed with the slot's number, then copied over the record, then disarmed. Killed
 * before arming: nothing has changed. Killed after: whoever gets the lock next
 * copies the journal again. So a record is always the old one or the new one.
 *
 * Reading. `seq` is odd while a record is being written. A reader loads it (acquire),
 * copies, then (acquire fence) loads it again: both even and equal means that no
 * store of a writer lies between, for a writer stores odd, then (release fence) the
 * words, then even (release). The words are atomic and relaxed, so the copy is no
 * data race; its result is used only if seq says that it is whole. After some retries
 * (a killed writer leaves seq odd) the reader takes the stripe, which repairs.
 *
 * Finding. A chain is walked without a lock, and what is found is copied and its key
 * compared, so a hit is right by itself. A miss counts only if `version` was even
 * and the same before and after: it is odd while a chain is being taken apart.
 * Inserting at a chain's head is one store and disturbs nobody. After some retries
 * the reader walks with the table lock.
 *
 * Inserting. The record is written and linked first, `used` is stored last (release):
 * that store makes it exist, by number and by key at once. It needs no stripe before,
 * for whoever meets the slot reads `used` first (acquire).
 */
/* SPDX-License-Identifier: MIT */
#include "ipc/slot_array.h"
#include "ipc/slot_impl.h"
#include "base/err.h"
#include "ipc/crash_point.h"
#include "ipc/robust.h"
#include "ipc/room.h"

#include <string.h>
#include <sys/random.h>

enum { MIN_BUCKETS = 16 };

static uint64_t
round_up(uint64_t n)
{
	return (n + SLOT_LINE - 1) / SLOT_LINE * SLOT_LINE;
}

static uint32_t
bucket_count(uint32_t capacity)
{
	uint32_t n = MIN_BUCKETS;

	while (n < capacity)
		n *= 2;
	return n;
}

size_t
slot_array_fixed_size(const struct slot_kind *kind, uint32_t capacity)
{
	uint64_t stride = round_up(sizeof(struct slot_head) + kind->record_size);

	return sizeof(struct slot_array) + SLOT_STRIPES * stride + round_up((uint64_t)bucket_count(capacity) * 4);
}

size_t
slot_array_size(const struct slot_kind *kind, uint32_t capacity)
{
	return slot_array_fixed_size(kind, capacity) +
		(uint64_t)capacity * round_up(sizeof(struct slot_head) + kind->record_size);
}

static void
lay_out(struct slot_array *array, const struct slot_kind *kind, uint32_t capacity)
{
	array->capacity = capacity;
	array->stride = (uint32_t)round_up(sizeof(struct slot_head) + kind->record_size);
	array->bucket_mask = bucket_count(capacity) - 1;
	array->journals = sizeof *array;
	array->buckets = array->journals + (uint64_t)SLOT_STRIPES * array->stride;
	array->slots = array->buckets + round_up((uint64_t)bucket_count(capacity) * 4);
}

static void
write_record(struct slot_head *head, const void *record, size_t size)
{
	uint32_t odd = atomic_load_explicit(&head->seq, memory_order_relaxed) | 1;
	size_t half = size / 16 * 8;

	atomic_store_explicit(&head->seq, odd, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	CRASH_POINT();
	slot_store_words(slot_record_of(head), record, half);
	CRASH_POINT();
	slot_store_words(slot_record_of(head) + half, (const char *)record + half, size - half);
	atomic_store_explicit(&head->seq, odd + 1, memory_order_release);
}

/* Copies what the stripe's journal is armed for; its holder may have died in the middle. */
static void
redo_journal(struct slot_array *array, const struct slot_kind *kind, uint32_t stripe)
{
	uint32_t ref = atomic_load_explicit(&array->stripes[stripe].armed, memory_order_relaxed);

	if (ref != 0 && ref <= slot_ready(array))
		write_record(slot_head_at(array, ref - 1), slot_journal_at(array, stripe), kind->record_size);
	robust_order();
	atomic_store_explicit(&array->stripes[stripe].armed, 0, memory_order_relaxed);
}

void
slot_lock_record(struct slot_array *array, const struct slot_kind *kind, uint32_t slot)
{
	pthread_mutex_t *mutex = &array->stripes[slot % SLOT_STRIPES].mutex;

	if (robust_lock(mutex)) {
		redo_journal(array, kind, slot % SLOT_STRIPES);
		robust_consistent(mutex);
	}
}

void
slot_unlock_record(struct slot_array *array, uint32_t slot)
{
	robust_unlock(&array->stripes[slot % SLOT_STRIPES].mutex);
}

void
slot_array_init(struct slot_array *array, const struct slot_kind *kind, uint32_t capacity)
{
	lay_out(array, kind, capacity);
	if (getrandom(&array->seed, sizeof array->seed, 0) != sizeof array->seed)
		abort();
	robust_init(&array->mutex);
	for (uint32_t i = 0; i < SLOT_STRIPES; i++)
		robust_init(&array->stripes[i].mutex);
}

void
slot_array_adopt(struct slot_array *array, const struct slot_kind *kind, uint32_t capacity, slot_check_f *check)
{
	lay_out(array, kind, capacity);
	if (slot_ready(array) > capacity)
		atomic_store_explicit(&array->ready, capacity, memory_order_relaxed);
	robust_init(&array->mutex);
	for (uint32_t i = 0; i < SLOT_STRIPES; i++) {
		redo_journal(array, kind, i);
		robust_init(&array->stripes[i].mutex);
	}
	if (atomic_load_explicit(&array->bound, memory_order_relaxed) > slot_ready(array))
		atomic_store_explicit(&array->bound, slot_ready(array), memory_order_relaxed);
	for (uint32_t slot = 0; slot < array->bound; slot++) {
		struct slot_head *head = slot_head_at(array, slot);

		if (head->used && !check(slot_record_of(head)))
			head->used = 0;
		if (head->used)
			head->hash = slot_hash(array, kind, slot_record_of(head));
		head->seq = (head->seq | 1) + 1;
	}
	slot_rebuild(array);
}

/* The slot, or what slot_pick says when there is none. */
static int64_t
fill_slot(struct slot_array *array, const struct slot_kind *kind, const void *record)
{
	int64_t picked = slot_pick(array);
	uint32_t slot = (uint32_t)picked;
	struct slot_head *head;

	if (picked < 0)
		return picked;
	CRASH_POINT();
	head = slot_head_at(array, slot);
	write_record(head, record, kind->record_size);
	atomic_store_explicit(&head->hash, slot_hash(array, kind, record), memory_order_relaxed);
	slot_link(array, slot);
	CRASH_POINT();
	atomic_fetch_add_explicit(&array->count, 1, memory_order_relaxed);
	robust_order();
	CRASH_POINT();
	atomic_store_explicit(&head->used, 1, memory_order_release);
	robust_order();
	CRASH_POINT();
	return slot;
}

/* SLOT_NO_MEMORY: there would be a slot, but not yet its memory. */
static enum slot_insert
try_insert(struct slot_array *array, const struct slot_kind *kind, const void *record, uint32_t *ret_slot)
{
	enum slot_insert result = SLOT_KEY_TAKEN;

	slot_lock_table(array);
	if (slot_find_locked(array, kind, record) == UINT32_MAX) {
		int64_t slot = fill_slot(array, kind, record);

		result = slot == SLOT_NONE       ? SLOT_ALL_USED
			: slot == SLOT_NOT_READY ? SLOT_NO_MEMORY
						 : SLOT_INSERTED;
		if (result == SLOT_INSERTED)
			*ret_slot = (uint32_t)slot;
	}
	robust_unlock(&array->mutex);
	return result;
}

/* The kernel is asked for memory with no lock held: it may take its time. */
enum slot_insert
slot_array_insert(struct slot_array *array, const struct slot_kind *kind, const void *record, uint32_t *ret_slot)
{
	const struct room room = { (char *)array + array->slots, array->stride, array->capacity, &array->ready };
	enum slot_insert result;
	uint32_t ready;

	do {
		ready = slot_ready(array);
		result = try_insert(array, kind, record, ret_slot);
	} while (result == SLOT_NO_MEMORY && room_grow(&room, ready));
	return result;
}

/* With the slot's stripe. */
static bool
holds_uid(struct slot_head *head, const struct slot_kind *kind, const char *uid)
{
	return atomic_load_explicit(&head->used, memory_order_acquire) &&
		strncmp(slot_record_of(head) + kind->uid_offset, uid, kind->uid_size) == 0;
}

/* Makes the journal's record the slot's; with the slot's stripe. */
static void
commit(struct slot_array *array, const struct slot_kind *kind, uint32_t slot)
{
	char *journal = slot_journal_at(array, slot % SLOT_STRIPES),
	     *record = slot_record_of(slot_head_at(array, slot));

	memcpy(journal, record, kind->key_size);
	memcpy(journal + kind->uid_offset, record + kind->uid_offset, kind->uid_size);
	robust_order();
	CRASH_POINT();
	atomic_store_explicit(&array->stripes[slot % SLOT_STRIPES].armed, slot + 1, memory_order_relaxed);
	robust_order();
	CRASH_POINT();
	redo_journal(array, kind, slot % SLOT_STRIPES);
	CRASH_POINT();
}

enum slot_change
slot_array_change(struct slot_array *array, const struct slot_kind *kind, uint32_t slot, const char *uid,
	slot_change_f *change, void *arg, struct err *err)
{
	enum slot_change result = SLOT_GONE;
	char *journal;

	if (slot >= slot_ready(array))
		return SLOT_GONE;
	slot_lock_record(array, kind, slot);
	if (holds_uid(slot_head_at(array, slot), kind, uid)) {
		journal = slot_journal_at(array, slot % SLOT_STRIPES);
		memcpy(journal, slot_record_of(slot_head_at(array, slot)), kind->record_size);
		CRASH_POINT();
		result = change(journal, arg, err) == 0 ? SLOT_CHANGED : SLOT_REFUSED;
		if (result == SLOT_CHANGED)
			commit(array, kind, slot);
	}
	slot_unlock_record(array, slot);
	return result;
}

bool
slot_array_remove(struct slot_array *array, const struct slot_kind *kind, uint32_t slot, const char *uid)
{
	bool removed;

	if (slot >= slot_ready(array))
		return false;
	slot_lock_table(array);
	slot_lock_record(array, kind, slot);
	removed = holds_uid(slot_head_at(array, slot), kind, uid);
	if (removed)
		slot_retire(array, slot);
	slot_unlock_record(array, slot);
	robust_unlock(&array->mutex);
	return removed;
}

uint32_t
slot_array_bound(const struct slot_array *array)
{
	return atomic_load_explicit(&array->bound, memory_order_acquire);
}

uint32_t
slot_array_count(const struct slot_array *array)
{
	return atomic_load_explicit(&array->count, memory_order_relaxed);
}

uint32_t
slot_array_capacity(const struct slot_array *array)
{
	return array->capacity;
}

bool
slot_string_ok(const char *field, size_t size)
{
	return memchr(field, '\0', size) != NULL;
}
