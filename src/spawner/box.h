/*
 * box.h - the sandboxes that the spawner knows, by uid and by id, and their ranges of host ids.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_BOX_H
#define ORCHARD_SPAWNER_BOX_H

#include "base/cleanup.h"
#include "base/id.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

struct event;
struct err;
struct make_order;
struct boxes;
struct dispatch;

enum box_phase {
	BOX_IMAGE, /* waits until its image is there */
	BOX_MAKING, /* a helper is at it */
	BOX_LIVE,
	BOX_DEAD, /* its agent has ended; the rest is there until it is destroyed */
	BOX_REMOVING
};

/* Who wants to hear of the end of a create or a destroy. */
struct box_waiter {
	STAILQ_ENTRY(box_waiter) link;
	uint64_t peer;
	uint64_t seq;
};
STAILQ_HEAD(box_waiters, box_waiter);

struct box {
	LIST_ENTRY(box) link;
	struct dispatch *dispatch;
	char id[64];
	char uid[ID_UUID_SIZE];
	enum box_phase phase;
	bool doomed; /* destroyed while it was being made */
	bool has_slot;
	uint32_t slot;
	pid_t pid;
	uint64_t pid_start;
	int wait_status; /* BOX_DEAD; -1 unknown */
	bool oom_killed;
	unsigned lost_removals; /* removals whose helper died */
	struct make_order *order; /* owned; BOX_IMAGE: to be made, BOX_REMOVING: to be made again, or NULL */
	int pidfd; /* one that was adopted; others are our children */
	struct event *ended;
	struct box_waiters creators, destroyers;
};
LIST_HEAD(box_list, box);

/* slots: how many ranges of host ids there are. */
struct boxes *boxes_create(uint32_t slots);
void boxes_free(struct boxes *boxes);
struct box_list *boxes_all(struct boxes *boxes);
uint32_t boxes_count(const struct boxes *boxes);

struct box *boxes_find_uid(struct boxes *boxes, const char *uid);
struct box *boxes_find_id(struct boxes *boxes, const char *id);
struct box *boxes_find_pid(struct boxes *boxes, pid_t pid);
/* id and uid must not be there yet. */
struct box *boxes_add(struct boxes *boxes, const char *id, const char *uid);
void boxes_remove(struct boxes *boxes, struct box *box);
void boxes_set_pid(struct boxes *boxes, struct box *box, pid_t pid, uint64_t pid_start);
/* A range that no other box has; ERR_NO_CAPACITY when there is none. */
int boxes_take_slot(struct boxes *boxes, struct box *box, struct err *err) MUSTCHECK;
/* That very range; false when it is taken or there is no such. */
bool boxes_claim_slot(struct boxes *boxes, struct box *box, uint32_t slot);

void box_add_waiter(struct box_waiters *waiters, uint64_t peer, uint64_t seq);

#endif
