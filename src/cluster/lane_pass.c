/*
 * lane_pass.c - one command on its way through its lane.
 *
 *   join:  nobody else waits -> it will just go; else it takes a place behind the others in Redis
 *   enter: the lease is there -> go; others go first -> yield; no lease -> ask; then wait for an answer,
 *          a message (by way of a change of the sandbox) or, should that be lost, a while
 *   leave: a place that it did not use is given back, so that nobody of this server gets it on top of his own
 *
 * Redis knows how many commands of a server wait, not which: of those the server's own queue has the first one enter.
 * An answer that did not help is followed by a pause, never by the same question.
 */
/* SPDX-License-Identifier: MIT */
#include "cluster/lanes_impl.h"

#include "base/clock.h"
#include "base/err.h"
#include "ipc/exec_lock.h"

#include <event2/event.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ASK_AGAIN_MS = 1000 };

static void
pass_on_time(evutil_socket_t fd, short what, void *arg)
{
	struct lane_pass *pass = arg;

	(void)fd;
	(void)what;
	pass->answered = false;
	if (pass->waits && pass->ask == NULL)
		pass->on_turn(pass->arg);
}

static void
pass_sleep(struct lane_pass *pass, int64_t ms)
{
	struct timeval tv = clock_tv(ms);

	event_add(pass->timer, &tv);
}

static void
pass_begin(struct lanes *lanes, struct lane_pass *pass, void (*on_turn)(void *arg), void *arg)
{
	pass->lanes = lanes;
	pass->on_turn = on_turn;
	pass->arg = arg;
	pass->timer = event_new(lanes->options.base, -1, 0, pass_on_time, pass);
	if (pass->timer == NULL)
		abort();
	LIST_INSERT_HEAD(&lanes->passes, pass, link);
}

static void
pass_name(struct lane_pass *pass, const struct lane_name *name)
{
	struct lane_ref *ref = &pass->ref;

	*pass = (struct lane_pass){ 0 };
	*ref = (struct lane_ref){ .slot = UINT32_MAX, .lane = name->lane, .sandbox_slot = name->sandbox_slot };
	snprintf(ref->key, sizeof ref->key, "%s:%016" PRIx64, name->sandbox_uid, name->lane);
}

void
lane_pass_rejoin(struct lanes *lanes, struct lane_pass *pass, const struct lane_name *name, bool inside,
	void (*on_turn)(void *arg), void *arg)
{
	struct err err;

	pass_name(pass, name);
	/* Where there is no room now it is tried again when it enters. */
	(void)!lanes_enter(lanes, &pass->ref, &err);
	pass->asked = true;
	pass->inside = inside;
	pass_begin(lanes, pass, on_turn, arg);
}

int
lane_pass_join(struct lanes *lanes, struct lane_pass *pass, const struct lane_name *name,
	void (*on_turn)(void *arg), void *arg, struct err *err)
{
	bool away = lanes_is_away(lanes);
	struct lane_record record;

	pass_name(pass, name);
	if (lanes_enter(lanes, &pass->ref, err) != 0)
		return -1;
	if (!lanes_read(lanes, &pass->ref, &record))
		record = (struct lane_record){ 0 };
	if (away && !lane_lease_is_held(&record))
		return err_set(err, ERR_UNAVAILABLE,
			"Redis is away or refuses, and another server may have used this lane last: try again "
			"later");
	pass_begin(lanes, pass, on_turn, arg);
	pass->asked = !away &&
		(!lane_lease_is_held(&record) || record.wanted || clock_boot_ms() >= record.until_ms);
	if (pass->asked)
		pass->queued = lanes_ask(lanes, "add", &pass->ref, pass);
	return 0;
}

/* --- entering --- */

struct take {
	bool asked, away, looks;
	enum lane_step step;
	uint64_t fence;
};

static int
change_take(struct lane_record *record, void *arg, struct err *err)
{
	struct take *take = arg;
	struct lane_record copy = *record;

	(void)err;
	take->step = lane_lease_take(
		take->looks ? &copy : record, take->asked, take->away, clock_boot_ms(), &take->fence);
	return 0;
}

static void
pass_ask(struct lane_pass *pass, enum lane_wish wish)
{
	bool in_vain = pass->answered && pass->wish == wish;

	if (pass->ask != NULL)
		return;
	pass->wish = wish;
	if (in_vain || !lanes_ask(pass->lanes, wish == LANE_WISH_TURN ? "yield" : "ensure", &pass->ref, pass))
		pass_sleep(pass, ASK_AGAIN_MS);
}

static bool
pass_take(struct lane_pass *pass, bool looks, uint64_t *ret_fence)
{
	struct lanes *lanes = pass->lanes;
	struct take take = { .asked = pass->asked, .away = lanes_is_away(lanes), .looks = looks };
	struct err err;

	event_del(pass->timer);
	pass->waits = true;
	pass->inside = false;
	if (lanes_change(lanes, &pass->ref, change_take, &take, &err) != 0) {
		pass_sleep(pass, ASK_AGAIN_MS);
		return false;
	}
	if (take.step != LANE_GO)
		pass_ask(pass, take.step == LANE_YIELD ? LANE_WISH_TURN : LANE_WISH_LEASE);
	else
		*ret_fence = take.fence;
	return take.step == LANE_GO;
}

bool
lane_pass_may_enter(struct lane_pass *pass)
{
	uint64_t fence;

	return pass_take(pass, true, &fence);
}

bool
lane_pass_enter(struct lane_pass *pass, uint64_t *ret_fence)
{
	if (!pass_take(pass, false, ret_fence))
		return false;
	pass->waits = false;
	pass->inside = true;
	pass->queued = false;
	return true;
}

void
lane_pass_answered(struct lane_pass *pass, bool has)
{
	bool again = pass->again;

	pass->again = false;
	if (!pass->waits)
		return;
	if (!has && !again) {
		pass_sleep(pass, ASK_AGAIN_MS);
		return;
	}
	pass->answered = !again;
	pass->on_turn(pass->arg);
}

void
lane_pass_hint(struct lane_pass *pass)
{
	if (pass->lanes == NULL || !pass->waits)
		return;
	pass->answered = false;
	if (pass->ask != NULL)
		pass->again = true;
	else
		pass->on_turn(pass->arg);
}

/* --- leaving --- */

static int
change_overtaken(struct lane_record *record, void *arg, struct err *err)
{
	(void)err;
	lane_lease_overtaken(record, *(uint64_t *)arg);
	return 0;
}

void
lane_pass_overtaken(struct lane_pass *pass, uint64_t newest_fence)
{
	struct err err;

	(void)!lanes_change(pass->lanes, &pass->ref, change_overtaken, &newest_fence, &err);
}

static int
change_unused(struct lane_record *record, void *arg, struct err *err)
{
	if (!lane_lease_is_held(record) || record->turns == 0)
		return err_set(err, ERR_NOT_FOUND, "it has no turn");
	record->turns--;
	*(bool *)arg = true;
	return 0;
}

/* Its turn came already, or will come by the entry in the queue: neither is another command's. */
static void
pass_give_back(struct lane_pass *pass)
{
	bool done = false;
	struct err err;

	if (!pass->queued)
		return;
	(void)!lanes_change(pass->lanes, &pass->ref, change_unused, &done, &err);
	if (!done)
		(void)!lanes_ask(pass->lanes, "drop", &pass->ref, NULL);
}

void
lane_pass_leave(struct lane_pass *pass)
{
	struct lanes *lanes = pass->lanes;
	struct lane_record record;

	if (lanes == NULL)
		return;
	if (pass->ask != NULL)
		pass->ask->pass = NULL;
	pass_give_back(pass);
	event_free(pass->timer);
	LIST_REMOVE(pass, link);
	pass->lanes = NULL;
	if (lanes_read(lanes, &pass->ref, &record) && record.wanted &&
		exec_lock_is_idle(lanes->options.lock, record.sandbox_slot, record.lane))
		lanes_let_go(lanes, &pass->ref);
}
