/*
 * slot_chain.c - what is derived from the slots: hash chains, free list, bound, count.
 *
 * All of it stands under the table lock, and is made new from the slots' `used`
 * flags when a holder of that lock has died. Readers walk the chains meanwhile
 * without it; `version` tells them when a chain is being taken apart.
 */
/* SPDX-License-Identifier: MIT */
#include "ipc/slot_impl.h"
#include "ipc/crash_point.h"
#include "ipc/robust.h"

#include <string.h>

/* FNV-1a from a random start, then mixed: clients choose the keys and should not choose the chains. */
uint32_t
slot_hash(const struct slot_array *array, const struct slot_kind *kind, const char *key)
{
	uint64_t h = array->seed;

	for (uint32_t i = 0; i < kind->key_size && key[i] != '\0'; i++)
		h = (h ^ (unsigned char)key[i]) * UINT64_C(0x100000001b3);
	h = (h ^ h >> 32) * UINT64_C(0xd6e8feb86659fd93);
	return (uint32_t)(h ^ h >> 32);
}

static void
disturb_begin(struct slot_array *array)
{
	atomic_store_explicit(&array->version, atomic_load_explicit(&array->version, memory_order_relaxed) | 1,
		memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
}

static void
disturb_end(struct slot_array *array)
{
	atomic_store_explicit(&array->version, atomic_load_explicit(&array->version, memory_order_relaxed) + 1,
		memory_order_release);
}

void
slot_link(struct slot_array *array, uint32_t slot)
{
	struct slot_head *head = slot_head_at(array, slot);
	_Atomic uint32_t *bucket = slot_bucket_at(array, atomic_load_explicit(&head->hash, memory_order_relaxed));

	atomic_store_explicit(
		&head->next, atomic_load_explicit(bucket, memory_order_relaxed), memory_order_relaxed);
	CRASH_POINT();
	atomic_store_explicit(bucket, slot + 1, memory_order_release);
}

static void
unlink_slot(struct slot_array *array, uint32_t slot)
{
	struct slot_head *head = slot_head_at(array, slot);
	_Atomic uint32_t *link = slot_bucket_at(array, atomic_load_explicit(&head->hash, memory_order_relaxed));
	uint32_t ref;

	while ((ref = atomic_load_explicit(link, memory_order_relaxed)) != slot + 1) {
		if (ref == 0)
			return;
		link = &slot_head_at(array, ref - 1)->next;
	}
	atomic_store_explicit(link, atomic_load_explicit(&head->next, memory_order_relaxed), memory_order_relaxed);
}

static void
free_slot(struct slot_array *array, uint32_t slot)
{
	atomic_store_explicit(&slot_head_at(array, slot)->next, array->free, memory_order_relaxed);
	CRASH_POINT();
	array->free = slot + 1;
}

void
slot_rebuild(struct slot_array *array)
{
	uint32_t bound = atomic_load_explicit(&array->bound, memory_order_relaxed), count = 0, last = 0;

	disturb_begin(array);
	for (uint32_t b = 0; b <= array->bucket_mask; b++)
		if (atomic_load_explicit(slot_bucket_at(array, b), memory_order_relaxed) != 0)
			atomic_store_explicit(slot_bucket_at(array, b), 0, memory_order_relaxed);
	array->free = 0;
	for (uint32_t slot = bound; slot-- > 0;) {
		if (atomic_load_explicit(&slot_head_at(array, slot)->used, memory_order_relaxed)) {
			slot_link(array, slot);
			last = last == 0 ? slot + 1 : last;
			count++;
		} else if (last != 0) {
			free_slot(array, slot);
		}
	}
	atomic_store_explicit(&array->bound, last, memory_order_relaxed);
	atomic_store_explicit(&array->count, count, memory_order_relaxed);
	disturb_end(array);
}

void
slot_lock_table(struct slot_array *array)
{
	if (robust_lock(&array->mutex)) {
		slot_rebuild(array);
		robust_consistent(&array->mutex);
	}
}

uint32_t
slot_find_locked(struct slot_array *array, const struct slot_kind *kind, const char *key)
{
	uint32_t hash = slot_hash(array, kind, key);
	uint32_t ref = atomic_load_explicit(slot_bucket_at(array, hash), memory_order_relaxed);

	while (ref != 0) {
		struct slot_head *head = slot_head_at(array, ref - 1);
		char found[SLOT_KEY_MAX];

		/* Nobody changes a key or takes `used` away without the lock we hold; changes write the same key again. */
		slot_load_words(found, slot_record_of(head), sizeof found);
		if (atomic_load_explicit(&head->hash, memory_order_relaxed) == hash &&
			strncmp(found, key, kind->key_size) == 0)
			return ref - 1;
		ref = atomic_load_explicit(&head->next, memory_order_relaxed);
	}
	return UINT32_MAX;
}

int64_t
slot_pick(struct slot_array *array)
{
	uint32_t bound = atomic_load_explicit(&array->bound, memory_order_relaxed), slot;

	if (array->free != 0) {
		slot = array->free - 1;
		array->free = atomic_load_explicit(&slot_head_at(array, slot)->next, memory_order_relaxed);
		return slot;
	}
	if (bound == array->capacity)
		return SLOT_NONE;
	if (bound >= slot_ready(array))
		return SLOT_NOT_READY;
	atomic_store_explicit(&array->bound, bound + 1, memory_order_release);
	return bound;
}

void
slot_retire(struct slot_array *array, uint32_t slot)
{
	disturb_begin(array);
	CRASH_POINT();
	atomic_store_explicit(&slot_head_at(array, slot)->used, 0, memory_order_release);
	robust_order();
	CRASH_POINT();
	unlink_slot(array, slot);
	CRASH_POINT();
	free_slot(array, slot);
	atomic_fetch_sub_explicit(&array->count, 1, memory_order_relaxed);
	disturb_end(array);
}
