/*
 * sandbox_wait.c - waiting until a sandbox is ready, has failed, or is gone.
 *
 * A wait registers, looks, and only then sleeps. It ends in exactly one way:
 * told, out of time, or cancelled.
 */
/* SPDX-License-Identifier: MIT */
#include "domain/sandbox/sandbox.h"
#include "domain/sandbox/sandbox_priv.h"
#include "domain/service_priv.h"
#include "base/alloc.h"
#include "base/err.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>

struct sandbox_wait {
	LIST_ENTRY(sandbox_wait) link;
	struct service *service;
	struct watch watch;
	struct event *timer;
	char id[SANDBOX_ID_SIZE];
	char uid[ID_UUID_SIZE];
	uint32_t slot;
	sandbox_wait_f *done;
	void *arg;
};

void
sandbox_wait_cancel(struct sandbox_wait *wait)
{
	watch_remove(&wait->watch);
	event_free(wait->timer);
	LIST_REMOVE(wait, link);
	service_waiter_drop(wait->service);
	free(wait);
}

static void
wait_end(struct sandbox_wait *wait, const struct sandbox_record *record, const struct err *why)
{
	sandbox_wait_f *done = wait->done;
	void *arg = wait->arg;

	sandbox_wait_cancel(wait);
	done(record, why, arg);
}

/* Tells the end if it has come. */
static bool
wait_look(struct sandbox_wait *wait)
{
	struct sandbox_record record;
	struct err err;

	if (!sandbox_read_life(wait->service, wait->slot, wait->uid, &record) ||
		record.status == SANDBOX_DELETING || record.status == SANDBOX_DOUBTFUL) {
		err_set(&err, ERR_DELETED, "the sandbox \"%s\" was deleted meanwhile", wait->id);
		wait_end(wait, NULL, &err);
		return true;
	}
	if (record.status == SANDBOX_READY || record.status == SANDBOX_FAILED) {
		wait_end(wait, &record, NULL);
		return true;
	}
	return false;
}

static void
wait_on_change(void *arg)
{
	wait_look(arg);
}

static void
wait_on_time(evutil_socket_t fd, short what, void *arg)
{
	struct sandbox_wait *wait = arg;
	struct err err;

	(void)fd;
	(void)what;
	if (wait_look(wait))
		return;
	err_set(&err, ERR_TIMEOUT, "the sandbox \"%s\" did not become ready in this time; it may still", wait->id);
	wait_end(wait, NULL, &err);
}

int
sandbox_wait_start(struct service *service, const char *tenant, const char *id, int64_t timeout_ms,
	sandbox_wait_f *done, void *arg, struct sandbox_wait **ret_wait, struct err *err)
{
	struct sandbox_record record;
	struct sandbox_wait *wait;
	uint32_t slot;

	if (sandbox_lookup(service, tenant, id, &record, &slot, err) != 0 || service_waiter_add(service, err) != 0)
		return -1;
	wait = alloc_zero(1, sizeof *wait);
	wait->service = service;
	wait->slot = slot;
	wait->done = done;
	wait->arg = arg;
	snprintf(wait->id, sizeof wait->id, "%s", record.id);
	snprintf(wait->uid, sizeof wait->uid, "%s", record.uid);
	wait->timer = service_timer(service, wait_on_time, wait);
	wait->watch = (struct watch){ .on_change = wait_on_change, .arg = wait };
	LIST_INSERT_HEAD(&service->sandbox_waits, wait, link);
	watch_add(&service->watches, &wait->watch, NOTIFY_SANDBOX, slot);
	/* Look now, but tell from the loop: done never comes before this returns. */
	if (!sandbox_read_life(service, slot, wait->uid, &record) || !sandbox_is_being_made(&record))
		timeout_ms = 0;
	service_timer_set(wait->timer, timeout_ms);
	*ret_wait = wait;
	return 0;
}

void
sandbox_wait_end_all(struct service *service)
{
	struct sandbox_wait *wait;
	struct err err;

	err_set(&err, ERR_UNAVAILABLE, "this server process stops; ask again");
	while ((wait = LIST_FIRST(&service->sandbox_waits)) != NULL)
		wait_end(wait, NULL, &err);
}
