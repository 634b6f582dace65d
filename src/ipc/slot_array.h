/*
 * slot_array.h - fixed records in shared memory, found by key: what both tables are made of.
 *
 * A record starts with its key (a string) and holds a uid (a string) that names one
 * life of the key. Private to src/ipc; the tables give it their types.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_IPC_SLOT_ARRAY_H
#define ORCHARD_IPC_SLOT_ARRAY_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct slot_array;

enum { SLOT_KEY_MAX = 64 }; /* a record is at least as long */

/* What the records of a table look like; the same in all processes of a build. */
struct slot_kind {
	uint32_t record_size; /* a multiple of 8 */
	uint32_t key_size; /* of the string at offset 0; at most SLOT_KEY_MAX */
	uint32_t uid_offset, uid_size;
};

size_t slot_array_size(const struct slot_kind *kind, uint32_t capacity);
/* How much of that, from its start, must be there at once; the rest is taken as records come. */
size_t slot_array_fixed_size(const struct slot_kind *kind, uint32_t capacity);
/* Memory is zero-filled. */
void slot_array_init(struct slot_array *array, const struct slot_kind *kind, uint32_t capacity);
/* Looks at (and may mend) each record of an earlier server; false frees its slot. */
typedef bool slot_check_f(void *record);
void
slot_array_adopt(struct slot_array *array, const struct slot_kind *kind, uint32_t capacity, slot_check_f *check);

enum slot_insert { SLOT_INSERTED, SLOT_KEY_TAKEN, SLOT_ALL_USED, SLOT_NO_MEMORY };
enum slot_insert slot_array_insert(
	struct slot_array *array, const struct slot_kind *kind, const void *record, uint32_t *ret_slot) MUSTCHECK;
/* These two may scribble on *ret_record when they return false. ret_slot may be NULL. */
bool slot_array_find(struct slot_array *array, const struct slot_kind *kind, const char *key, void *ret_record,
	uint32_t *ret_slot) MUSTCHECK;
bool
slot_array_read(struct slot_array *array, const struct slot_kind *kind, uint32_t slot, void *ret_record) MUSTCHECK;

typedef int slot_change_f(void *record, void *arg, struct err *err);
enum slot_change { SLOT_CHANGED, SLOT_REFUSED, SLOT_GONE };
/* SLOT_REFUSED: change() returned -1 and set *err. What it does to key and uid is undone. */
enum slot_change slot_array_change(struct slot_array *array, const struct slot_kind *kind, uint32_t slot,
	const char *uid, slot_change_f *change, void *arg, struct err *err) MUSTCHECK;
bool
slot_array_remove(struct slot_array *array, const struct slot_kind *kind, uint32_t slot, const char *uid) MUSTCHECK;

uint32_t slot_array_bound(const struct slot_array *array);
uint32_t slot_array_count(const struct slot_array *array);
uint32_t slot_array_capacity(const struct slot_array *array);

/* True when the field of that size holds a terminated string. */
bool slot_string_ok(const char *field, size_t size);

#endif
