/* watch.c - watches in buckets, and calling them while they come and go. */
/* SPDX-License-Identifier: MIT */
#include "domain/watch.h"

#include <stddef.h>

void
watch_table_init(struct watch_table *table, struct notify *notify, uint32_t proc)
{
	table->notify = notify;
	table->proc = proc;
	for (int kind = 0; kind < NOTIFY_KIND_COUNT; kind++)
		for (int i = 0; i < WATCH_BUCKETS; i++)
			LIST_INIT(&table->buckets[kind][i]);
}

void
watch_add(struct watch_table *table, struct watch *watch, enum notify_kind kind, uint32_t slot)
{
	watch_remove(watch);
	watch->kind = kind;
	watch->slot = slot;
	watch->armed = true;
	LIST_INSERT_HEAD(&table->buckets[kind][slot % WATCH_BUCKETS], watch, link);
	notify_watch(table->notify, table->proc, kind, slot);
}

void
watch_remove(struct watch *watch)
{
	if (!watch->armed)
		return;
	LIST_REMOVE(watch, link);
	watch->armed = false;
}

static bool
slot_is_watched(const struct watch_table *table, enum notify_kind kind, uint32_t slot)
{
	const struct watch *watch;

	LIST_FOREACH(watch, &table->buckets[kind][slot % WATCH_BUCKETS], link)
	if (watch->slot == slot)
		return true;
	return false;
}

void
watch_post(struct watch_table *table, enum notify_kind kind, uint32_t slot)
{
	if (!slot_is_watched(table, kind, slot))
		notify_forget(table->notify, table->proc, kind, slot);
	notify_post(table->notify, kind, slot);
}

void
watch_fire(struct watch_table *table, enum notify_kind kind, uint32_t slot)
{
	struct watch_list *bucket = &table->buckets[kind][slot % WATCH_BUCKETS];
	struct watch_list due;
	struct watch *watch, *next;

	/*
	 * Those due move to a list of their own and back one by one before each is called, so that a callback
	 * may remove any watch and add new ones, which are not called in this round.
	 */
	LIST_INIT(&due);
	for (watch = LIST_FIRST(bucket); watch != NULL; watch = next) {
		next = LIST_NEXT(watch, link);
		if (watch->slot == slot) {
			LIST_REMOVE(watch, link);
			LIST_INSERT_HEAD(&due, watch, link);
		}
	}
	if (!LIST_EMPTY(&due))
		notify_watch(table->notify, table->proc, kind, slot);
	while ((watch = LIST_FIRST(&due)) != NULL) {
		LIST_REMOVE(watch, link);
		LIST_INSERT_HEAD(bucket, watch, link);
		watch->on_change(watch->arg);
	}
}
