/*
 * dispatch.c - moves boxes through their phases. The only file that does.
 *
 * image -> making -> live -> dead, and from each of them to removing and away.
 * Whoever asks for something that is under way already waits for the same end.
 */
/* SPDX-License-Identifier: MIT */
#include "spawner/dispatch.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/text.h"
#include "conf/config.h"
#include "spawn/destroyed.h"
#include "spawn/peer.h"
#include "spawn/request.h"
#include "spawner/blanks.h"
#include "spawner/make/create_times.h"
#include "spawner/images/image_cache.h"
#include "spawner/pool/pool.h"
#include "spawner/site.h"

#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

enum { LOST_REMOVALS_MAX = 5 };

void
dispatch_reply(struct dispatch *d, uint64_t peer, uint64_t seq, const struct err *why)
{
	struct spawn_reply reply;

	spawn_reply_fill(&reply, SPAWN_DONE, seq, why);
	peers_send(d->peers, peer, &reply, sizeof reply);
}

/* False when run_dir and id together are too long for the name of a socket. */
static bool
box_endpoint(const struct dispatch *d, const char *id, char *buf, size_t size)
{
	return (size_t)snprintf(buf, size, "unix:%s/sandboxes/%s/agent.sock", d->config->run_dir, id) < size;
}

static void
reply_live(struct dispatch *d, const struct box *box, uint64_t peer, uint64_t seq)
{
	struct spawn_reply reply;

	spawn_reply_fill(&reply, SPAWN_DONE, seq, NULL);
	reply.pid = box->pid;
	reply.pid_start = box->pid_start;
	(void)box_endpoint(d, box->id, reply.endpoint, sizeof reply.endpoint);
	peers_send(d->peers, peer, &reply, sizeof reply);
}

/* other: which life has the id, if there is one. */
static void
refuse_all(struct dispatch *d, struct box_waiters *waiters, const struct err *why, const struct box *other)
{
	struct box_waiter *waiter;
	struct spawn_reply reply;

	while ((waiter = STAILQ_FIRST(waiters)) != NULL) {
		spawn_reply_fill(&reply, SPAWN_DONE, waiter->seq, why);
		if (other != NULL && why->code == ERR_EXISTS)
			memcpy(reply.other_uid, other->uid, sizeof reply.other_uid);
		peers_send(d->peers, waiter->peer, &reply, sizeof reply);
		STAILQ_REMOVE_HEAD(waiters, link);
		free(waiter);
	}
}

/* Answers everybody on a list and empties it. why NULL: the box lives, or is gone, as they wanted. */
static void
answer_all(struct dispatch *d, struct box *box, struct box_waiters *waiters, const struct err *why)
{
	struct box_waiter *waiter;

	while ((waiter = STAILQ_FIRST(waiters)) != NULL) {
		if (why == NULL && waiters == &box->creators)
			reply_live(d, box, waiter->peer, waiter->seq);
		else
			dispatch_reply(d, waiter->peer, waiter->seq, why);
		STAILQ_REMOVE_HEAD(waiters, link);
		free(waiter);
	}
}

static void
log_box(enum log_level level, const struct box *box, const char *what, const struct err *why)
{
	struct log_ctx ctx = { .sandbox_id = box->id };

	if (why != NULL)
		log_write(level, &ctx, "%s: %s", what, why->msg);
	else
		log_write(level, &ctx, "%s", what);
}

/* --- removing --- */

static void begin(struct dispatch *d, struct make_order *order, struct box_waiters *waiters);

/* Whoever waits for it to be made anew hears that it won't be. */
static void
forget_order(struct dispatch *d, struct box *box, const struct err *why)
{
	answer_all(d, box, &box->creators, why);
	free(box->order);
	box->order = NULL;
}

static void
on_unmade(const struct pool_answer *answer, void *arg)
{
	struct box *box = arg;
	struct dispatch *d = box->dispatch;
	struct make_order *order;
	struct box_waiters waiters = STAILQ_HEAD_INITIALIZER(waiters);

	/* Its helper died half-way: nobody must have to ask before the rest goes too. */
	if (answer->lost && ++box->lost_removals < LOST_REMOVALS_MAX) {
		dispatch_remove(d, box);
		return;
	}
	if (answer->why != NULL) {
		/* stays, so that asking again tries again */
		log_box(LOG_LEVEL_ERROR, box, "could not be removed", answer->why);
		answer_all(d, box, &box->destroyers, answer->why);
		forget_order(d, box, answer->why);
		box->phase = BOX_DEAD;
		return;
	}
	answer_all(d, box, &box->destroyers, NULL);
	order = box->order;
	box->order = NULL;
	STAILQ_CONCAT(&waiters, &box->creators);
	pool_sweep(d->janitor, box->uid);
	boxes_remove(d->boxes, box);
	image_cache_trim(d->images);
	if (order != NULL)
		begin(d, order, &waiters);
}

void
dispatch_remove(struct dispatch *d, struct box *box)
{
	struct unmake_order order = { .pid = box->pid, .pid_start = box->pid_start, .net = box->net };

	memcpy(order.id, box->id, sizeof order.id);
	memcpy(order.group, box->group, sizeof order.group);
	memcpy(order.uid, box->uid, sizeof order.uid);
	box_kill(box);
	box->phase = BOX_REMOVING;
	if (box->ended != NULL)
		event_del(box->ended);
	pool_unmake(d->pool, &order, on_unmade, box);
}

/* --- making --- */

/* Nothing of it is left: those who wanted it hear why, those who wanted it gone have it. */
static void
give_up(struct dispatch *d, struct box *box, const struct err *why)
{
	answer_all(d, box, &box->creators, why);
	answer_all(d, box, &box->destroyers, NULL);
	pool_sweep(d->janitor, box->uid);
	boxes_remove(d->boxes, box);
}

static void
box_is_live(struct dispatch *d, struct box *box, const struct make_result *made)
{
	int status;

	boxes_set_pid(d->boxes, box, made->pid, made->pid_start);
	box->phase = BOX_LIVE;
	log_box(LOG_LEVEL_DEBUG, box, "made", NULL);
	answer_all(d, box, &box->creators, NULL);
	/* One that has died but is not reaped yet is told by its SIGCHLD, with its status. */
	if (early_deaths_take(&d->early, box->pid, box->pid_start, box->making_us, &status))
		dispatch_ended(d, box->pid, box->pid_start, status);
}

static void
on_made(const struct pool_answer *answer, void *arg)
{
	struct box *box = arg;
	struct dispatch *d = box->dispatch;
	struct err gone;

	d->creating--;
	if (answer->why == NULL && !box->doomed) {
		create_times_count(d->board, d->self, &answer->made, clock_boot_us() - box->making_us);
		box_is_live(d, box, &answer->made);
		return;
	}
	if (answer->why != NULL) {
		log_box(LOG_LEVEL_WARN, box, "could not be made", answer->why);
		answer_all(d, box, &box->creators, answer->why);
	} else {
		err_set(&gone, ERR_DELETED, "sandbox %s was deleted while it was being made", box->id);
		answer_all(d, box, &box->creators, &gone);
	}
	if (answer->why != NULL && !answer->lost && !answer->made.remains) {
		give_up(d, box, answer->why);
		return;
	}
	if (answer->made.pid != 0)
		boxes_set_pid(d->boxes, box, answer->made.pid, answer->made.pid_start);
	dispatch_remove(d, box);
}

static void
start_making(struct dispatch *d, struct box *box)
{
	struct make_order *order = box->order;

	box->order = NULL;
	box->phase = BOX_MAKING;
	box->making_us = clock_boot_us();
	memcpy(box->image, order->digest, sizeof box->image);
	memcpy(order->group, box->group, sizeof order->group);
	blanks_note(d, order);
	box->making = pool_make(d->pool, order, on_made, box);
}

/* What can be said about a create before anything is done for it. */
static int
admit(struct dispatch *d, const struct make_order *order, struct image_name *ret_name, struct err *err)
{
	const struct box *other = boxes_find_id(d->boxes, order->spec.id);
	char endpoint[sizeof((struct spawn_reply *)NULL)->endpoint];

	if (destroyed_has(d->destroyed, order->spec.uid))
		return err_set(err, ERR_DELETED, "sandbox %s was deleted before this came", order->spec.id);
	if (other != NULL)
		return err_set(err, ERR_EXISTS, "sandbox %s is there already, as another one", order->spec.id);
	if (!d->usable)
		return err_set(err, ERR_UNSUPPORTED, "%s", d->problem);
	if (!box_endpoint(d, order->spec.id, endpoint, sizeof endpoint))
		return err_set(err, ERR_INVALID, "sandbox id and run_dir are too long together; use a shorter id");
	if (image_name_parse(order->spec.image, ret_name, err) != 0)
		return -1;
	return order->spec.block_network ? 0 : net_keeper_need(&d->net, err);
}

/* What it has alone on this host. */
static int
take_numbers(struct dispatch *d, struct box *box, struct err *err)
{
	struct make_order *order = box->order;

	if (boxes_take_slot(d->boxes, box, err) != 0)
		return -1;
	order->slot = box->slot;
	if (order->spec.block_network)
		return 0;
	box->net.egress = order->spec.egress;
	if (boxes_take_address(d->boxes, box, err) != 0)
		return -1;
	order->net = box->net;
	return 0;
}

/*
 * Joins a create of the same uid that came before; true when the order was taken
 * over: what the death of a helper or a spawner left of the first try is being
 * removed, nobody wants it gone, so it is made again afterwards.
 */
static bool
join_create(struct dispatch *d, struct box *box, struct make_order *order, const struct box_waiter *who)
{
	struct err err;

	if (box->phase == BOX_LIVE) {
		reply_live(d, box, who->peer, who->seq);
	} else if (box->doomed || (box->phase == BOX_REMOVING && !STAILQ_EMPTY(&box->destroyers))) {
		err_set(&err, ERR_DELETED, "sandbox %s is being deleted", box->id);
		dispatch_reply(d, who->peer, who->seq, &err);
	} else if (box->phase == BOX_DEAD) {
		err_set(&err, ERR_CONFLICT, "the agent of sandbox %s has ended", box->id);
		dispatch_reply(d, who->peer, who->seq, &err);
	} else {
		box_add_waiter(&box->creators, who->peer, who->seq);
		if (box->phase == BOX_REMOVING && box->order == NULL) {
			box->order = order;
			return true;
		}
	}
	return false;
}

/* Makes a new one; order is taken over, and so are the waiters, who hear how it went. */
static void
begin(struct dispatch *d, struct make_order *order, struct box_waiters *waiters)
{
	struct image_name name;
	struct box *box;
	struct err err;

	if (admit(d, order, &name, &err) != 0) {
		refuse_all(d, waiters, &err, boxes_find_id(d->boxes, order->spec.id));
		free(order);
		return;
	}
	box = boxes_add(d->boxes, order->spec.id, order->spec.uid);
	box->dispatch = d;
	box->order = order;
	STAILQ_CONCAT(&box->creators, waiters);
	if (take_numbers(d, box, &err) != 0) {
		refuse_all(d, &box->creators, &err, NULL);
		boxes_remove(d->boxes, box);
		return;
	}
	d->creating++;
	if (name.form == IMAGE_DIR || image_cache_find(d->images, order->spec.image, order->digest)) {
		start_making(d, box);
	} else {
		box->phase = BOX_IMAGE;
		image_cache_fetch(d->images, order->spec.image);
	}
}

void
dispatch_create(struct dispatch *d, struct make_order *order, uint64_t peer, uint64_t seq)
{
	struct box *box = boxes_find_uid(d->boxes, order->spec.uid);
	struct box_waiters waiters = STAILQ_HEAD_INITIALIZER(waiters);

	if (box == NULL) {
		box_add_waiter(&waiters, peer, seq);
		begin(d, order, &waiters);
	} else if (!join_create(d, box, order, &(struct box_waiter){ .peer = peer, .seq = seq })) {
		free(order);
	}
}

/*
 * Those that wait for the image, all before anything is done for one of them: to start one uses up a blank, whose box
 * may be the next in the list. What waits for an image goes only by itself.
 */
static struct box **
list_waiting(struct dispatch *d, const char *image, size_t *ret_count)
{
	struct box **waiting = alloc_zero((size_t)d->creating + 1, sizeof(struct box *));
	struct box *box;

	*ret_count = 0;
	LIST_FOREACH(box, boxes_all(d->boxes), link)
	{
		if (box->phase == BOX_IMAGE && strcmp(box->order->spec.image, image) == 0)
			waiting[(*ret_count)++] = box;
	}
	return waiting;
}

void
dispatch_image_ready(const char *image, const char *digest, const struct err *why, void *arg)
{
	struct dispatch *d = arg;
	size_t count;
	AUTO_FREE struct box **waiting = list_waiting(d, image, &count);

	for (size_t i = 0; i < count; i++) {
		struct box *box = waiting[i];

		if (why != NULL) {
			log_box(LOG_LEVEL_WARN, box, "could not be made", why);
			d->creating--;
			give_up(d, box, why);
		} else if (text_copy(box->order->digest, sizeof box->order->digest, digest)) {
			start_making(d, box);
		}
	}
}

/* --- destroying --- */

/* Nothing was begun for it. */
static void
withdraw(struct dispatch *d, struct box *box)
{
	struct err gone;

	err_set(&gone, ERR_DELETED, "sandbox %s was deleted while it was being made", box->id);
	d->creating--;
	give_up(d, box, &gone);
}

void
dispatch_destroy(struct dispatch *d, const char *id, const char *uid, uint64_t peer, uint64_t seq)
{
	struct box *box = boxes_find_uid(d->boxes, uid);
	struct err gone;

	if (box != NULL && strcmp(box->id, id) != 0) {
		dispatch_reply(d, peer, seq, NULL);
		return;
	}
	destroyed_add(d->destroyed, uid);
	if (box == NULL) {
		dispatch_reply(d, peer, seq, NULL);
		return;
	}
	box_add_waiter(&box->destroyers, peer, seq);
	switch (box->phase) {
	case BOX_IMAGE:
		withdraw(d, box);
		break;
	case BOX_MAKING:
		if (pool_withdraw(d->pool, box->making))
			withdraw(d, box);
		else
			box->doomed = true;
		break;
	case BOX_LIVE:
	case BOX_DEAD:
		dispatch_remove(d, box);
		break;
	case BOX_REMOVING:
		err_set(&gone, ERR_DELETED, "sandbox %s is being deleted", box->id);
		forget_order(d, box, &gone);
		break;
	}
}

/* --- endings --- */

static void
announce(struct dispatch *d, const struct box *box)
{
	struct spawn_item item = { .head = { SPAWN_VERSION, SPAWN_GONE, 0 },
		.pid = box->pid,
		.pid_start = box->pid_start,
		.wait_status = box->wait_status,
		.oom_killed = box->oom_killed };

	memcpy(item.id, box->id, sizeof item.id);
	memcpy(item.uid, box->uid, sizeof item.uid);
	peers_broadcast(d->peers, &item, sizeof item);
}

void
dispatch_ended(struct dispatch *d, pid_t pid, uint64_t pid_start, int status)
{
	struct box *box = boxes_find_pid(d->boxes, pid);

	/* a box keeps the pid of what has died until it is removed */
	if (box == NULL || !early_deaths_same(box->pid_start, pid_start)) {
		early_deaths_add(&d->early, pid, pid_start, clock_boot_us(), status);
		return;
	}
	if (box->phase != BOX_LIVE)
		return;
	box->phase = BOX_DEAD;
	if (box->blank) /* its helper finds that out when it is to be used */
		return;
	box->wait_status = status;
	box->oom_killed = cgroup_box_oom_killed(&d->site->cgroup, box->group);
	if (box->ended != NULL)
		event_del(box->ended);
	log_box(LOG_LEVEL_WARN, box,
		box->oom_killed ? "its agent has ended; the memory limit was hit" : "its agent has ended", NULL);
	announce(d, box);
}
