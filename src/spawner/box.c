/* box.c - the registry of sandboxes; it does nothing to them. */
/* SPDX-License-Identifier: MIT */
#include "spawner/box.h"

#include "base/err.h"
#include "base/text.h"
#include "spawner/make.h"

#include <event2/event.h>
#include <json-c/linkhash.h>
#include <stdlib.h>
#include <string.h>

struct boxes {
	struct box_list all;
	uint32_t count;
	struct lh_table *by_uid, *by_id, *by_pid;
	uint32_t slots, next_slot;
	bool *taken;
};

enum { FIRST_BUCKETS = 1024 };

static void *
must(void *p)
{
	if (p == NULL)
		abort();
	return p;
}

static unsigned long
hash_pid(const void *key)
{
	return (unsigned long)(uintptr_t)key * 2654435761UL;
}

static int
equal_pid(const void *a, const void *b)
{
	return a == b;
}

static const void *
pid_key(pid_t pid)
{
	return (const void *)(uintptr_t)pid;
}

struct boxes *
boxes_create(uint32_t slots)
{
	struct boxes *boxes = must(calloc(1, sizeof *boxes));

	LIST_INIT(&boxes->all);
	boxes->by_uid = must(lh_kchar_table_new(FIRST_BUCKETS, NULL));
	boxes->by_id = must(lh_kchar_table_new(FIRST_BUCKETS, NULL));
	boxes->by_pid = must(lh_table_new(FIRST_BUCKETS, NULL, hash_pid, equal_pid));
	boxes->slots = slots;
	boxes->taken = must(calloc(slots, sizeof *boxes->taken));
	return boxes;
}

void
boxes_free(struct boxes *boxes)
{
	struct box *box;

	if (boxes == NULL)
		return;
	while ((box = LIST_FIRST(&boxes->all)) != NULL)
		boxes_remove(boxes, box);
	lh_table_free(boxes->by_uid);
	lh_table_free(boxes->by_id);
	lh_table_free(boxes->by_pid);
	free(boxes->taken);
	free(boxes);
}

struct box_list *
boxes_all(struct boxes *boxes)
{
	return &boxes->all;
}

uint32_t
boxes_count(const struct boxes *boxes)
{
	return boxes->count;
}

static struct box *
find(struct lh_table *table, const void *key)
{
	void *value = NULL;

	return lh_table_lookup_ex(table, key, &value) ? value : NULL;
}

struct box *
boxes_find_uid(struct boxes *boxes, const char *uid)
{
	return find(boxes->by_uid, uid);
}

struct box *
boxes_find_id(struct boxes *boxes, const char *id)
{
	return find(boxes->by_id, id);
}

struct box *
boxes_find_pid(struct boxes *boxes, pid_t pid)
{
	return find(boxes->by_pid, pid_key(pid));
}

struct box *
boxes_add(struct boxes *boxes, const char *id, const char *uid)
{
	struct box *box = must(calloc(1, sizeof *box));

	if (!text_copy(box->id, sizeof box->id, id) || !text_copy(box->uid, sizeof box->uid, uid))
		abort();
	box->pidfd = -1;
	box->wait_status = -1;
	STAILQ_INIT(&box->creators);
	STAILQ_INIT(&box->destroyers);
	LIST_INSERT_HEAD(&boxes->all, box, link);
	if (lh_table_insert(boxes->by_uid, box->uid, box) != 0 || lh_table_insert(boxes->by_id, box->id, box) != 0)
		abort();
	boxes->count++;
	return box;
}

static void
drop_waiters(struct box_waiters *waiters)
{
	struct box_waiter *waiter;

	while ((waiter = STAILQ_FIRST(waiters)) != NULL) {
		STAILQ_REMOVE_HEAD(waiters, link);
		free(waiter);
	}
}

void
boxes_remove(struct boxes *boxes, struct box *box)
{
	LIST_REMOVE(box, link);
	lh_table_delete(boxes->by_uid, box->uid);
	lh_table_delete(boxes->by_id, box->id);
	if (box->pid != 0 && boxes_find_pid(boxes, box->pid) == box)
		lh_table_delete(boxes->by_pid, pid_key(box->pid));
	if (box->has_slot)
		boxes->taken[box->slot] = false;
	if (box->ended != NULL)
		event_free(box->ended);
	cleanup_fd(&box->pidfd);
	drop_waiters(&box->creators);
	drop_waiters(&box->destroyers);
	free(box->order);
	free(box);
	boxes->count--;
}

void
boxes_set_pid(struct boxes *boxes, struct box *box, pid_t pid, uint64_t pid_start)
{
	struct box *old = boxes_find_pid(boxes, pid);

	if (old != NULL)
		lh_table_delete(boxes->by_pid, pid_key(pid));
	box->pid = pid;
	box->pid_start = pid_start;
	if (lh_table_insert(boxes->by_pid, pid_key(pid), box) != 0)
		abort();
}

bool
boxes_claim_slot(struct boxes *boxes, struct box *box, uint32_t slot)
{
	if (slot >= boxes->slots || boxes->taken[slot])
		return false;
	boxes->taken[slot] = true;
	box->slot = slot;
	box->has_slot = true;
	return true;
}

/* Goes round, so that the ids of one just removed rest for a while. */
int
boxes_take_slot(struct boxes *boxes, struct box *box, struct err *err)
{
	for (uint32_t i = 0; i < boxes->slots; i++) {
		uint32_t slot = (boxes->next_slot + i) % boxes->slots;

		if (boxes_claim_slot(boxes, box, slot)) {
			boxes->next_slot = (slot + 1) % boxes->slots;
			return 0;
		}
	}
	return err_set(err, ERR_NO_CAPACITY, "all %u ranges of user ids are in use", boxes->slots);
}

void
box_add_waiter(struct box_waiters *waiters, uint64_t peer, uint64_t seq)
{
	struct box_waiter *waiter = must(calloc(1, sizeof *waiter));

	waiter->peer = peer;
	waiter->seq = seq;
	STAILQ_INSERT_TAIL(waiters, waiter, link);
}
