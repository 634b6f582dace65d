/*
 * sandbox_table.c - the slot array as a table of sandboxes.
 *
 * Concurrency and repair stand in slot_array.c: a killed writer leaves the old
 * record or the new one. SANDBOX_DOUBTFUL is for what an adopting server finds
 * damaged all the same; id and uid are kept, so that it can be removed.
 */
/* SPDX-License-Identifier: MIT */
#include "ipc/sandbox_table.h"
#include "base/err.h"
#include "ipc/section.h"
#include "ipc/slot_array.h"

#include <string.h>

_Static_assert(offsetof(struct sandbox_record, id) == 0, "the key of a slot array comes first");
_Static_assert(
	sizeof(struct sandbox_record) % 8 == 0 && sizeof(struct sandbox_record) >= SLOT_KEY_MAX, "copied in words");

static const struct slot_kind kind = {
	.record_size = sizeof(struct sandbox_record),
	.key_size = SANDBOX_ID_SIZE,
	.uid_offset = offsetof(struct sandbox_record, uid),
	.uid_size = ID_UUID_SIZE,
};

static struct slot_array *
slots_of(struct shm_sandboxes *table)
{
	return (struct slot_array *)table;
}

size_t
sandbox_table_section_size(uint32_t sandboxes)
{
	return slot_array_size(&kind, sandboxes);
}

size_t
sandbox_table_section_fixed_size(uint32_t sandboxes)
{
	return slot_array_fixed_size(&kind, sandboxes);
}

void
sandbox_table_section_init(struct shm_sandboxes *table, uint32_t sandboxes)
{
	slot_array_init(slots_of(table), &kind, sandboxes);
}

static bool
is_whole(const struct sandbox_record *record)
{
	return slot_string_ok(record->tenant, sizeof record->tenant) &&
		slot_string_ok(record->image, sizeof record->image) &&
		slot_string_ok(record->spec_digest, sizeof record->spec_digest) &&
		slot_string_ok(record->agent_token, sizeof record->agent_token) &&
		slot_string_ok(record->endpoint, sizeof record->endpoint) &&
		slot_string_ok(record->labels, sizeof record->labels) &&
		slot_string_ok(record->working_dir, sizeof record->working_dir) &&
		slot_string_ok(record->message, sizeof record->message) &&
		slot_string_ok(record->reap_rule, sizeof record->reap_rule) &&
		slot_string_ok(record->home, sizeof record->home) && record->status <= SANDBOX_DOUBTFUL;
}

static void
end_string(char *field, size_t size)
{
	field[size - 1] = '\0';
}

static bool
check_record(void *arg)
{
	struct sandbox_record *record = arg;

	if (!slot_string_ok(record->id, sizeof record->id) || !slot_string_ok(record->uid, sizeof record->uid) ||
		record->id[0] == '\0')
		return false;
	if (is_whole(record))
		return true;
	end_string(record->tenant, sizeof record->tenant);
	end_string(record->image, sizeof record->image);
	end_string(record->spec_digest, sizeof record->spec_digest);
	end_string(record->agent_token, sizeof record->agent_token);
	end_string(record->endpoint, sizeof record->endpoint);
	memcpy(record->labels, "{}", 3);
	end_string(record->working_dir, sizeof record->working_dir);
	end_string(record->message, sizeof record->message);
	end_string(record->reap_rule, sizeof record->reap_rule);
	end_string(record->home, sizeof record->home);
	record->status = SANDBOX_DOUBTFUL;
	return true;
}

void
sandbox_table_section_adopt(struct shm_sandboxes *table, uint32_t sandboxes)
{
	slot_array_adopt(slots_of(table), &kind, sandboxes, check_record);
}

int
sandbox_table_insert(
	struct shm_sandboxes *table, const struct sandbox_record *record, uint32_t *ret_slot, struct err *err)
{
	switch (slot_array_insert(slots_of(table), &kind, record, ret_slot)) {
	case SLOT_INSERTED:
		return 0;
	case SLOT_KEY_TAKEN:
		return err_set(err, ERR_EXISTS, "sandbox %s exists already", record->id);
	case SLOT_NO_MEMORY:
		return err_set(
			err, ERR_NO_CAPACITY, "no memory for one more sandbox: the file system of run_dir is full");
	case SLOT_ALL_USED:
		break;
	}
	return err_set(err, ERR_NO_CAPACITY,
		"all %u sandbox records are in use: delete sandboxes, or raise max_sandboxes",
		sandbox_table_capacity(table));
}

bool
sandbox_table_find(
	struct shm_sandboxes *table, const char *id, struct sandbox_record *ret_record, uint32_t *ret_slot)
{
	return slot_array_find(slots_of(table), &kind, id, ret_record, ret_slot);
}

bool
sandbox_table_read(struct shm_sandboxes *table, uint32_t slot, struct sandbox_record *ret_record)
{
	return slot_array_read(slots_of(table), &kind, slot, ret_record);
}

struct change_call {
	sandbox_change_f *change;
	void *arg;
};

static int
call_change(void *record, void *arg, struct err *err)
{
	struct change_call *call = arg;

	return call->change(record, call->arg, err);
}

int
sandbox_table_change(struct shm_sandboxes *table, uint32_t slot, const char *uid, sandbox_change_f *change,
	void *arg, struct err *err)
{
	struct change_call call = { .change = change, .arg = arg };

	switch (slot_array_change(slots_of(table), &kind, slot, uid, call_change, &call, err)) {
	case SLOT_CHANGED:
		return 0;
	case SLOT_REFUSED:
		return -1;
	case SLOT_GONE:
		break;
	}
	return err_set(err, ERR_NOT_FOUND, "the sandbox is gone");
}

bool
sandbox_table_remove(struct shm_sandboxes *table, uint32_t slot, const char *uid)
{
	return slot_array_remove(slots_of(table), &kind, slot, uid);
}

uint32_t
sandbox_table_bound(struct shm_sandboxes *table)
{
	return slot_array_bound(slots_of(table));
}

uint32_t
sandbox_table_count(struct shm_sandboxes *table)
{
	return slot_array_count(slots_of(table));
}

uint32_t
sandbox_table_capacity(struct shm_sandboxes *table)
{
	return slot_array_capacity(slots_of(table));
}

bool
sandbox_has_terminals(const struct sandbox_record *record, int64_t now_ms)
{
	return record->terminals > 0 && now_ms - record->terminals_ms < SANDBOX_TERMINALS_VALID_MS;
}

bool
sandbox_is_being_made(const struct sandbox_record *record)
{
	return record->status == SANDBOX_PENDING || record->status == SANDBOX_UNSCHEDULABLE;
}

bool
sandbox_is_foreign(const struct sandbox_record *record)
{
	return record->home[0] != '\0';
}

const char *
sandbox_status_name(enum sandbox_status status)
{
	static const char *const names[] = {
		[SANDBOX_PENDING] = "pending",
		[SANDBOX_UNSCHEDULABLE] = "unschedulable",
		[SANDBOX_READY] = "ready",
		[SANDBOX_FAILED] = "failed",
		[SANDBOX_DELETING] = "deleting",
		[SANDBOX_PAUSED] = "paused",
		[SANDBOX_DOUBTFUL] = "failed",
	};

	return (unsigned)status < sizeof names / sizeof *names ? names[status] : "failed";
}
