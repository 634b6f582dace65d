/*
 * watch.h - whoever in this process waits for a change of a sandbox or a job.
 *
 * A watch stands in a bucket of its slot. It registers with notify first; its
 * owner then looks at the state, and after that sleeps: so nothing is missed.
 * on_change may come for a slot that someone else uses by now; the owner always
 * looks at the record and its uid.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_DOMAIN_WATCH_H
#define ORCHARD_DOMAIN_WATCH_H

#include "ipc/notify.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct watch;
LIST_HEAD(watch_list, watch);

enum { WATCH_BUCKETS = 1024 };

struct watch_table {
	struct notify *notify;
	uint32_t proc; /* this process's slot */
	struct watch_list buckets[NOTIFY_KIND_COUNT][WATCH_BUCKETS];
};

/* Embedded in whoever waits; all zero: not armed. */
struct watch {
	LIST_ENTRY(watch) link;
	enum notify_kind kind;
	uint32_t slot;
	bool armed;
	void (*on_change)(void *arg); /* may remove this watch and any other */
	void *arg;
};

void watch_table_init(struct watch_table *table, struct notify *notify, uint32_t proc);
void watch_add(struct watch_table *table, struct watch *watch, enum notify_kind kind, uint32_t slot);
void watch_remove(struct watch *watch); /* also of one that isn't armed */
/* Tells every process that watches the slot; this one is not woken for those who have left. */
void watch_post(struct watch_table *table, enum notify_kind kind, uint32_t slot);
/* Calls every watch of the slot, after it has registered with notify anew. */
void watch_fire(struct watch_table *table, enum notify_kind kind, uint32_t slot);

#endif
