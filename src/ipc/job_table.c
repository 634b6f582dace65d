/*
 * job_table.c - the slot array as a table of jobs; key and uid are both the job id.
 *
 * Concurrency and repair stand in slot_array.c. A record that an adopting server
 * finds damaged all the same is dropped: the job is then unknown, never mistaken.
 */
/* SPDX-License-Identifier: MIT */
#include "ipc/job_table.h"
#include "base/err.h"
#include "ipc/section.h"
#include "ipc/slot_array.h"

#include <stddef.h>

_Static_assert(offsetof(struct job_record, id) == 0, "the key of a slot array comes first");
_Static_assert(sizeof(struct job_record) % 8 == 0 && sizeof(struct job_record) >= SLOT_KEY_MAX, "copied in words");

static const struct slot_kind kind = {
	.record_size = sizeof(struct job_record),
	.key_size = ID_UUID_SIZE,
	.uid_offset = offsetof(struct job_record, id),
	.uid_size = ID_UUID_SIZE,
};

static struct slot_array *
slots_of(struct shm_jobs *table)
{
	return (struct slot_array *)table;
}

size_t
job_table_section_size(uint32_t jobs)
{
	return slot_array_size(&kind, jobs);
}

size_t
job_table_section_fixed_size(uint32_t jobs)
{
	return slot_array_fixed_size(&kind, jobs);
}

void
job_table_section_init(struct shm_jobs *table, uint32_t jobs)
{
	slot_array_init(slots_of(table), &kind, jobs);
}

static bool
check_record(void *arg)
{
	const struct job_record *record = arg;

	return slot_string_ok(record->id, sizeof record->id) && record->id[0] != '\0' &&
		slot_string_ok(record->sandbox_id, sizeof record->sandbox_id) &&
		slot_string_ok(record->sandbox_uid, sizeof record->sandbox_uid) &&
		slot_string_ok(record->tenant, sizeof record->tenant) &&
		slot_string_ok(record->lane, sizeof record->lane) && record->state <= JOB_SAVING;
}

void
job_table_section_adopt(struct shm_jobs *table, uint32_t jobs)
{
	slot_array_adopt(slots_of(table), &kind, jobs, check_record);
}

int
job_table_insert(struct shm_jobs *table, const struct job_record *record, uint32_t *ret_slot, struct err *err)
{
	switch (slot_array_insert(slots_of(table), &kind, record, ret_slot)) {
	case SLOT_INSERTED:
		return 0;
	case SLOT_KEY_TAKEN:
		return err_set(err, ERR_EXISTS, "job %s exists already", record->id);
	case SLOT_NO_MEMORY:
		return err_set(
			err, ERR_NO_CAPACITY, "no memory for one more job: the file system of run_dir is full");
	case SLOT_ALL_USED:
		break;
	}
	return err_set(err, ERR_BUSY, "%u commands are queued or running (exec_queue_limit): try again later",
		slot_array_capacity(slots_of(table)));
}

bool
job_table_find(struct shm_jobs *table, const char *job_id, struct job_record *ret_record, uint32_t *ret_slot)
{
	return slot_array_find(slots_of(table), &kind, job_id, ret_record, ret_slot);
}

bool
job_table_read(struct shm_jobs *table, uint32_t slot, struct job_record *ret_record)
{
	return slot_array_read(slots_of(table), &kind, slot, ret_record);
}

struct change_call {
	job_change_f *change;
	void *arg;
};

static int
call_change(void *record, void *arg, struct err *err)
{
	struct change_call *call = arg;

	return call->change(record, call->arg, err);
}

int
job_table_change(
	struct shm_jobs *table, uint32_t slot, const char *job_id, job_change_f *change, void *arg, struct err *err)
{
	struct change_call call = { .change = change, .arg = arg };

	switch (slot_array_change(slots_of(table), &kind, slot, job_id, call_change, &call, err)) {
	case SLOT_CHANGED:
		return 0;
	case SLOT_REFUSED:
		return -1;
	case SLOT_GONE:
		break;
	}
	return err_set(err, ERR_NOT_FOUND, "the job has ended");
}

bool
job_table_remove(struct shm_jobs *table, uint32_t slot, const char *job_id)
{
	return slot_array_remove(slots_of(table), &kind, slot, job_id);
}

uint32_t
job_table_bound(struct shm_jobs *table)
{
	return slot_array_bound(slots_of(table));
}

uint32_t
job_table_count(struct shm_jobs *table)
{
	return slot_array_count(slots_of(table));
}
