/*
 * lane_table.c - the slot array as a table of leases; key and uid are both the lane's key.
 *
 * Concurrency and repair stand in slot_array.c.
 */
/* SPDX-License-Identifier: MIT */
#include "ipc/lane_table.h"
#include "base/clock.h"
#include "base/err.h"
#include "ipc/section.h"
#include "ipc/slot_array.h"

#include <stddef.h>

_Static_assert(offsetof(struct lane_record, key) == 0, "the key of a slot array comes first");
_Static_assert(
	sizeof(struct lane_record) % 8 == 0 && sizeof(struct lane_record) >= SLOT_KEY_MAX, "copied in words");

static const struct slot_kind kind = {
	.record_size = sizeof(struct lane_record),
	.key_size = LANE_KEY_SIZE,
	.uid_offset = offsetof(struct lane_record, key),
	.uid_size = LANE_KEY_SIZE,
};

static struct slot_array *
slots_of(struct shm_lanes *table)
{
	return (struct slot_array *)table;
}

size_t
lane_table_section_size(uint32_t lanes)
{
	return slot_array_size(&kind, lanes);
}

size_t
lane_table_section_fixed_size(uint32_t lanes)
{
	return slot_array_fixed_size(&kind, lanes);
}

void
lane_table_section_init(struct shm_lanes *table, uint32_t lanes)
{
	slot_array_init(slots_of(table), &kind, lanes);
}

/* What was promised to commands that waited then is theirs no more; the numbers and fences stand. */
static bool
check_record(void *arg)
{
	struct lane_record *record = arg;

	record->turns = 0;
	return slot_string_ok(record->key, sizeof record->key);
}

void
lane_table_section_adopt(struct shm_lanes *table, uint32_t lanes)
{
	slot_array_adopt(slots_of(table), &kind, lanes, check_record);
}

enum { PIECE = 64 };

static bool
forget_one(struct shm_lanes *table, struct lane_forgetting *forgetting, int64_t over_ms)
{
	uint32_t slot = forgetting->hand++ % lane_table_bound(table);
	struct lane_record record;

	return lane_table_read(table, slot, &record) && record.until_ms <= over_ms &&
		forgetting->is_idle(forgetting->arg, &record) &&
		slot_array_remove(slots_of(table), &kind, slot, record.key);
}

/* Piece by piece until something went, so that a full table does not cost each newcomer a walk through all of it. */
static bool
forget_some(struct shm_lanes *table, struct lane_forgetting *forgetting, int64_t over_ms)
{
	uint32_t bound = lane_table_bound(table), forgotten = 0;

	for (uint32_t seen = 0; seen < bound && (forgotten == 0 || seen % PIECE != 0); seen++)
		forgotten += forget_one(table, forgetting, over_ms);
	return forgotten > 0;
}

int
lane_table_enter(struct shm_lanes *table, const struct lane_record *record, struct lane_forgetting *forgetting,
	uint32_t *ret_slot, struct err *err)
{
	struct lane_record there;
	bool room = true;

	while (room) {
		if (lane_table_find(table, record->key, &there, ret_slot))
			return 0;
		switch (slot_array_insert(slots_of(table), &kind, record, ret_slot)) {
		case SLOT_INSERTED:
			return 0;
		case SLOT_KEY_TAKEN:
			break;
		case SLOT_NO_MEMORY:
		case SLOT_ALL_USED:
			/* Rather leases that are over than such as would have to be asked for again. */
			room = forget_some(table, forgetting, clock_boot_ms()) ||
				forget_some(table, forgetting, INT64_MAX);
		}
	}
	return err_set(err, ERR_BUSY, "too many lanes are in use at once: try again later");
}

bool
lane_table_find(struct shm_lanes *table, const char *key, struct lane_record *ret_record, uint32_t *ret_slot)
{
	return slot_array_find(slots_of(table), &kind, key, ret_record, ret_slot);
}

bool
lane_table_read(struct shm_lanes *table, uint32_t slot, struct lane_record *ret_record)
{
	return slot_array_read(slots_of(table), &kind, slot, ret_record);
}

struct change_call {
	lane_change_f *change;
	void *arg;
};

static int
call_change(void *record, void *arg, struct err *err)
{
	struct change_call *call = arg;

	return call->change(record, call->arg, err);
}

int
lane_table_change(
	struct shm_lanes *table, uint32_t slot, const char *key, lane_change_f *change, void *arg, struct err *err)
{
	struct change_call call = { .change = change, .arg = arg };

	switch (slot_array_change(slots_of(table), &kind, slot, key, call_change, &call, err)) {
	case SLOT_CHANGED:
		return 0;
	case SLOT_REFUSED:
		return -1;
	case SLOT_GONE:
		break;
	}
	return err_set(err, ERR_NOT_FOUND, "nothing is known of that lane");
}

uint32_t
lane_table_bound(struct shm_lanes *table)
{
	return slot_array_bound(slots_of(table));
}

uint32_t
lane_table_count(struct shm_lanes *table)
{
	return slot_array_count(slots_of(table));
}
