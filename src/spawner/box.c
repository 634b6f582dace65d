/* box.c - the registry of sandboxes; it does nothing to them. */
/* SPDX-License-Identifier: MIT */
#include "spawner/box.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/text.h"
#include "spawner/make/make.h"
#include "spawner/number_pool.h"
#include "spawner/site.h"

#include <event2/event.h>
#include <json-c/linkhash.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct boxes {
	struct box_list all;
	uint32_t count, blanks;
	struct lh_table *by_uid, *by_id, *by_group, *by_pid;
	struct number_pool slots, addresses;
	uint32_t first_address;
	int64_t idmap_base;
	uint32_t strangers; /* boxes with ids of another idmap_base */
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
boxes_create(uint32_t slots, int64_t idmap_base, uint32_t first_address, uint32_t addresses)
{
	struct boxes *boxes = must(calloc(1, sizeof *boxes));

	LIST_INIT(&boxes->all);
	boxes->by_uid = must(lh_kchar_table_new(FIRST_BUCKETS, NULL));
	boxes->by_id = must(lh_kchar_table_new(FIRST_BUCKETS, NULL));
	boxes->by_group = must(lh_kchar_table_new(FIRST_BUCKETS, NULL));
	boxes->by_pid = must(lh_table_new(FIRST_BUCKETS, NULL, hash_pid, equal_pid));
	number_pool_init(&boxes->slots, slots);
	number_pool_init(&boxes->addresses, addresses);
	boxes->first_address = first_address;
	boxes->idmap_base = idmap_base;
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
	lh_table_free(boxes->by_group);
	lh_table_free(boxes->by_pid);
	number_pool_fini(&boxes->slots);
	number_pool_fini(&boxes->addresses);
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
	return boxes->count - boxes->blanks;
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
boxes_find_group(struct boxes *boxes, const char *group)
{
	return find(boxes->by_group, group);
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

	if (!text_copy(box->id, sizeof box->id, id) || !text_copy(box->group, sizeof box->group, id) ||
		!text_copy(box->uid, sizeof box->uid, uid))
		abort();
	box->known_us = clock_boot_us();
	box->pidfd = -1;
	box->wait_status = -1;
	box->disk_used = -1;
	STAILQ_INIT(&box->creators);
	STAILQ_INIT(&box->destroyers);
	LIST_INSERT_HEAD(&boxes->all, box, link);
	if (lh_table_insert(boxes->by_uid, box->uid, box) != 0 ||
		lh_table_insert(boxes->by_id, box->id, box) != 0 ||
		lh_table_insert(boxes->by_group, box->group, box) != 0)
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
	boxes_set_blank(boxes, box, false);
	LIST_REMOVE(box, link);
	lh_table_delete(boxes->by_uid, box->uid);
	lh_table_delete(boxes->by_id, box->id);
	lh_table_delete(boxes->by_group, box->group);
	if (box->pid != 0 && boxes_find_pid(boxes, box->pid) == box)
		lh_table_delete(boxes->by_pid, pid_key(box->pid));
	if (box->has_slot)
		number_pool_give(&boxes->slots, box->slot);
	if (box->strange_ids != 0)
		boxes->strangers--;
	if (box->net.address != 0)
		number_pool_give(&boxes->addresses, box->net.address - boxes->first_address);
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
boxes_set_blank(struct boxes *boxes, struct box *box, bool blank)
{
	if (blank && !box->blank)
		boxes->blanks++;
	if (!blank && box->blank)
		boxes->blanks--;
	box->blank = blank;
}

bool
boxes_claim_group(struct boxes *boxes, struct box *box, const char *group)
{
	const struct box *other = boxes_find_group(boxes, group);

	if (other != NULL)
		return other == box;
	lh_table_delete(boxes->by_group, box->group);
	if (!text_copy(box->group, sizeof box->group, group) ||
		lh_table_insert(boxes->by_group, box->group, box) != 0)
		abort();
	return true;
}

void
boxes_take_blank(struct boxes *boxes, struct box *box, struct box *blank)
{
	uint32_t slot = box->slot;
	char group[sizeof blank->group];

	memcpy(group, blank->group, sizeof group);
	box->slot = blank->slot;
	blank->slot = slot; /* goes back with it */
	boxes_remove(boxes, blank);
	if (!boxes_claim_group(boxes, box, group))
		abort();
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
boxes_claim_ids(struct boxes *boxes, struct box *box, uint32_t first_id)
{
	int64_t above = first_id - boxes->idmap_base;

	if (above < 0 || above % SITE_IDS != 0 || above / SITE_IDS >= boxes->slots.count) {
		box->strange_ids = first_id;
		boxes->strangers++;
		return true;
	}
	if (!number_pool_claim(&boxes->slots, (uint32_t)(above / SITE_IDS)))
		return false;
	box->slot = (uint32_t)(above / SITE_IDS);
	box->has_slot = true;
	return true;
}

static bool
meets_stranger(const struct boxes *boxes, uint32_t slot)
{
	int64_t first = site_first_id(boxes->idmap_base, slot);
	const struct box *box;

	if (boxes->strangers == 0)
		return false;
	LIST_FOREACH(box, &boxes->all, link)
	{
		if (box->strange_ids != 0 && first < (int64_t)box->strange_ids + SITE_IDS &&
			box->strange_ids < first + SITE_IDS)
			return true;
	}
	return false;
}

int
boxes_take_slot(struct boxes *boxes, struct box *box, struct err *err)
{
	/* a number that is given back at once comes last again */
	for (uint32_t i = 0; i < boxes->slots.count && number_pool_take(&boxes->slots, &box->slot); i++) {
		box->has_slot = !meets_stranger(boxes, box->slot);
		if (box->has_slot)
			return 0;
		number_pool_give(&boxes->slots, box->slot);
	}
	return err_set(err, ERR_NO_CAPACITY, "all %u ranges of user ids are in use", boxes->slots.count);
}

bool
boxes_claim_address(struct boxes *boxes, struct box *box, uint32_t address)
{
	if (address < boxes->first_address || !number_pool_claim(&boxes->addresses, address - boxes->first_address))
		return false;
	box->net.address = address;
	return true;
}

int
boxes_take_address(struct boxes *boxes, struct box *box, struct err *err)
{
	uint32_t number;

	if (!number_pool_take(&boxes->addresses, &number))
		return err_set(err, ERR_NO_CAPACITY,
			"all %u addresses of network_subnet are in use; delete a sandbox, or make it wider",
			boxes->addresses.count);
	box->net.address = boxes->first_address + number;
	return 0;
}

/* One that was not adopted is a child of ours; while it is live it is not reaped, so its pid is nobody else's. */
void
box_kill(const struct box *box)
{
	if (box->phase != BOX_LIVE)
		return;
	if (box->pidfd >= 0)
		(void)syscall(SYS_pidfd_send_signal, box->pidfd, SIGKILL, NULL, 0);
	else
		(void)kill(box->pid, SIGKILL);
}

void
box_add_waiter(struct box_waiters *waiters, uint64_t peer, uint64_t seq)
{
	struct box_waiter *waiter = must(calloc(1, sizeof *waiter));

	waiter->peer = peer;
	waiter->seq = seq;
	STAILQ_INSERT_TAIL(waiters, waiter, link);
}
