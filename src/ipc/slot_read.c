/*
 * slot_read.c - reading and finding records without a lock.
 *
 * The arguments for it stand in slot_array.c. A reader that was disturbed too often
 * (a killed writer leaves its marks) takes the lock, which repairs.
 */
/* SPDX-License-Identifier: MIT */
#include "ipc/slot_impl.h"
#include "ipc/robust.h"

#include <string.h>

enum { READ_TRIES = 256, FIND_TRIES = 16 };

enum try_read { READ_FREE, READ_DONE, READ_DISTURBED };

static enum try_read
try_read(struct slot_head *head, void *ret_record, size_t size)
{
	uint32_t seq = atomic_load_explicit(&head->seq, memory_order_acquire);

	if (!atomic_load_explicit(&head->used, memory_order_acquire))
		return READ_FREE;
	if (seq & 1)
		return READ_DISTURBED;
	slot_load_words(ret_record, slot_record_of(head), size);
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&head->seq, memory_order_relaxed) == seq ? READ_DONE : READ_DISTURBED;
}

bool
slot_array_read(struct slot_array *array, const struct slot_kind *kind, uint32_t slot, void *ret_record)
{
	struct slot_head *head;
	bool used;

	if (slot >= slot_ready(array))
		return false;
	head = slot_head_at(array, slot);
	for (int i = 0; i < READ_TRIES; i++) {
		enum try_read result = try_read(head, ret_record, kind->record_size);

		if (result != READ_DISTURBED)
			return result == READ_DONE;
	}
	slot_lock_record(array, kind, slot);
	used = atomic_load_explicit(&head->used, memory_order_acquire);
	if (used)
		memcpy(ret_record, slot_record_of(head), kind->record_size);
	slot_unlock_record(array, slot);
	return used;
}

static bool
read_if_key(
	struct slot_array *array, const struct slot_kind *kind, uint32_t slot, const char *key, void *ret_record)
{
	return slot_array_read(array, kind, slot, ret_record) &&
		strncmp((const char *)ret_record, key, kind->key_size) == 0;
}

enum walk { WALK_FOUND, WALK_MISSED, WALK_DISTURBED };

static enum walk
walk_chain(struct slot_array *array, const struct slot_kind *kind, const char *key, void *ret_record,
	uint32_t *ret_slot)
{
	uint32_t hash = slot_hash(array, kind, key), steps = 0;
	uint32_t version = atomic_load_explicit(&array->version, memory_order_acquire);
	uint32_t ref = atomic_load_explicit(slot_bucket_at(array, hash), memory_order_acquire);

	for (; ref != 0 && steps++ <= array->capacity;) {
		struct slot_head *head = slot_head_at(array, ref - 1);

		if (atomic_load_explicit(&head->hash, memory_order_relaxed) == hash &&
			read_if_key(array, kind, ref - 1, key, ret_record)) {
			*ret_slot = ref - 1;
			return WALK_FOUND;
		}
		ref = atomic_load_explicit(&head->next, memory_order_acquire);
		if (steps % 64 == 0 && atomic_load_explicit(&array->version, memory_order_relaxed) != version)
			return WALK_DISTURBED;
	}
	atomic_thread_fence(memory_order_acquire);
	if ((version & 1) || atomic_load_explicit(&array->version, memory_order_relaxed) != version)
		return WALK_DISTURBED;
	return WALK_MISSED;
}

bool
slot_array_find(struct slot_array *array, const struct slot_kind *kind, const char *key, void *ret_record,
	uint32_t *ret_slot)
{
	uint32_t slot = UINT32_MAX;
	bool found = false;

	for (int i = 0; i < FIND_TRIES && !found; i++) {
		enum walk result = walk_chain(array, kind, key, ret_record, &slot);

		if (result == WALK_MISSED)
			return false;
		found = result == WALK_FOUND;
	}
	if (!found) {
		slot_lock_table(array);
		slot = slot_find_locked(array, kind, key);
		robust_unlock(&array->mutex);
		found = slot != UINT32_MAX && read_if_key(array, kind, slot, key, ret_record);
	}
	if (found && ret_slot != NULL)
		*ret_slot = slot;
	return found;
}
