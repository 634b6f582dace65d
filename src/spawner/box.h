/*
 * box.h - the sandboxes that the spawner knows, by uid and by id, and their ranges of host ids.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_BOX_H
#define ORCHARD_SPAWNER_BOX_H

#include "base/cleanup.h"
#include "base/id.h"
#include "image/image.h"
#include "network/net.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

struct event;
struct err;
struct make_order;
struct pool_order;
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
	char group[64]; /* name of its control groups */
	int64_t known_us; /* clock_boot_us() when it was added */
	enum box_phase phase;
	bool blank; /* of no sandbox yet: what a helper holds ready, see blanks.h */
	bool stray; /* remains of no sandbox, removed by the spawner itself: in no list */
	bool doomed; /* destroyed while it was being made */
	bool has_slot;
	uint32_t slot;
	uint32_t strange_ids; /* first host id of one that was made with another idmap_base; 0: none */
	struct net_grant net; /* its address is given back with the box */
	char image[IMAGE_DIGEST_SIZE]; /* its manifest; "": none, IMAGE_UNKNOWN: an older version made it */
	pid_t pid;
	uint64_t pid_start;
	int wait_status; /* BOX_DEAD; -1 unknown */
	bool oom_killed;
	int64_t disk_used; /* as last measured where the kernel does not count; -1: not yet */
	struct pool_order *making; /* BOX_MAKING: to withdraw it */
	int64_t making_us; /* clock_boot_us() when it was in line for a helper */
	unsigned lost_removals; /* removals whose helper died */
	struct make_order *order; /* owned; BOX_IMAGE: to be made, BOX_REMOVING: to be made again, or NULL */
	int pidfd; /* one that was adopted; others are our children */
	struct event *ended;
	struct box_waiters creators, destroyers;
};
LIST_HEAD(box_list, box);

/* How many ranges of host ids there are and where they begin, and which addresses. */
struct boxes *boxes_create(uint32_t slots, int64_t idmap_base, uint32_t first_address, uint32_t addresses);
void boxes_free(struct boxes *boxes);
struct box_list *boxes_all(struct boxes *boxes);
uint32_t boxes_count(const struct boxes *boxes); /* but for blanks */

struct box *boxes_find_uid(struct boxes *boxes, const char *uid);
struct box *boxes_find_id(struct boxes *boxes, const char *id);
/* By the name of its control groups, of which no two have the same. */
struct box *boxes_find_group(struct boxes *boxes, const char *group);
struct box *boxes_find_pid(struct boxes *boxes, pid_t pid);
/* id and uid must not be there yet. */
struct box *boxes_add(struct boxes *boxes, const char *id, const char *uid);
void boxes_remove(struct boxes *boxes, struct box *box);
void boxes_set_blank(struct boxes *boxes, struct box *box, bool blank);
/* As its record says, if that is not its id. False when another box has them. */
bool boxes_claim_group(struct boxes *boxes, struct box *box, const char *group);
/* Box gets the groups and the range of the blank, which is removed. */
void boxes_take_blank(struct boxes *boxes, struct box *box, struct box *blank);
void boxes_set_pid(struct boxes *boxes, struct box *box, pid_t pid, uint64_t pid_start);
/* A range that no other box has; ERR_NO_CAPACITY when there is none. */
int boxes_take_slot(struct boxes *boxes, struct box *box, struct err *err) MUSTCHECK;
/*
 * The range that begins with that host id; false when another box has it. One that is not among ours is kept too:
 * while the box is there, no range that meets it is given to another.
 */
bool boxes_claim_ids(struct boxes *boxes, struct box *box, uint32_t first_id);

/* The same of addresses; box->net.address is set. */
int boxes_take_address(struct boxes *boxes, struct box *box, struct err *err) MUSTCHECK;
bool boxes_claim_address(struct boxes *boxes, struct box *box, uint32_t address);

/*
 * SIGKILL to its init while it lives. Dying is slow in the kernel, and cheap for many side by side: so those that are to
 * go die at once, not one by one as the helpers come to them.
 */
void box_kill(const struct box *box);
void box_add_waiter(struct box_waiters *waiters, uint64_t peer, uint64_t seq);

#endif
