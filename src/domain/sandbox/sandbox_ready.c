/*
 * sandbox_ready.c - waiting until a sandbox can be worked in, as long as a command would.
 *
 * A sandbox that is pending may still become ready; one whose agent does not answer may be back in a moment.
 */
/* SPDX-License-Identifier: MIT */
#include "domain/sandbox/sandbox_ready.h"
#include "domain/sandbox/sandbox_priv.h"
#include "domain/service_priv.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "conf/config.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SILENT_WAIT_MS = 3000 };

struct sandbox_ready {
	struct service *service;
	struct watch watch;
	struct event *timer;
	char *tenant;
	char id[SANDBOX_ID_SIZE];
	char uid[ID_UUID_SIZE]; /* of the life that was asked for */
	bool silent; /* ready, but its agent does not answer */
	sandbox_ready_f *done;
	void *arg;
};

void
sandbox_ready_cancel(struct sandbox_ready *ready)
{
	watch_remove(&ready->watch);
	event_free(ready->timer);
	service_waiter_drop(ready->service);
	free(ready->tenant);
	free(ready);
}

static void
ready_end(struct sandbox_ready *ready, uint32_t slot, const struct sandbox_record *record, const struct err *why)
{
	sandbox_ready_f *done = ready->done;
	void *arg = ready->arg;

	if (record != NULL)
		sandbox_touch(ready->service, slot, record);
	sandbox_ready_cancel(ready);
	done(slot, record, why, arg);
}

/* True when that was the end. */
static bool
ready_look(struct sandbox_ready *ready)
{
	struct sandbox_record record;
	struct err err;
	uint32_t slot;

	if (sandbox_lookup(ready->service, ready->tenant, ready->id, &record, &slot, &err) != 0 ||
		strcmp(ready->uid, record.uid) != 0) {
		err_set(&err, ERR_DELETED, "the sandbox \"%s\" was deleted meanwhile", ready->id);
		ready_end(ready, UINT32_MAX, NULL, &err);
		return true;
	}
	ready->silent = record.status == SANDBOX_READY && !record.ready;
	if (ready->silent || sandbox_is_being_made(&record))
		return false;
	if (record.status == SANDBOX_READY) {
		ready_end(ready, slot, &record, NULL);
		return true;
	}
	err_set(&err, ERR_NOT_READY, "the sandbox \"%s\" is not ready but %s%s%s", record.id,
		sandbox_status_name((enum sandbox_status)record.status), record.message[0] != '\0' ? ": " : "",
		record.message);
	ready_end(ready, UINT32_MAX, NULL, &err);
	return true;
}

static void
ready_on_change(void *arg)
{
	ready_look(arg);
}

static void
ready_on_time(evutil_socket_t fd, short what, void *arg)
{
	struct sandbox_ready *ready = arg;
	struct err err;

	(void)fd;
	(void)what;
	if (ready_look(ready))
		return;
	if (ready->silent)
		sandbox_silent_err(ready->service, ready->tenant, ready->id, &err);
	else
		err_set(&err, ERR_NOT_READY, "the sandbox \"%s\" is still pending; wait for it to become ready",
			ready->id);
	ready_end(ready, UINT32_MAX, NULL, &err);
}

/* How long this sandbox is waited for; 0: how it stands is told as soon as the loop goes on. */
static int64_t
ready_wait_ms(const struct service *service, const struct sandbox_record *record)
{
	int64_t wait = service->config->readiness_wait_seconds * 1000, left;

	if (record->status == SANDBOX_READY)
		return record->ready ? 0 : wait < SILENT_WAIT_MS ? wait : SILENT_WAIT_MS;
	if (!sandbox_is_being_made(record))
		return 0;
	left = record->created_ms + record->create_timeout_s * 1000 - clock_boot_ms();
	return left < wait ? left : wait;
}

int
sandbox_ready_start(struct service *service, const char *tenant, const char *id, sandbox_ready_f *done, void *arg,
	struct sandbox_ready **ret_ready, struct err *err)
{
	struct sandbox_record record;
	struct sandbox_ready *ready;
	uint32_t slot;

	if (sandbox_lookup(service, tenant, id, &record, &slot, err) != 0 ||
		sandbox_check_host(&record, err) != 0 || service_waiter_add(service, err) != 0)
		return -1;
	ready = alloc_zero(1, sizeof *ready);
	ready->service = service;
	ready->tenant = alloc_string(tenant);
	ready->done = done;
	ready->arg = arg;
	snprintf(ready->id, sizeof ready->id, "%s", record.id);
	snprintf(ready->uid, sizeof ready->uid, "%s", record.uid);
	ready->timer = service_timer(service, ready_on_time, ready);
	ready->watch = (struct watch){ .on_change = ready_on_change, .arg = ready };
	watch_add(&service->watches, &ready->watch, NOTIFY_SANDBOX, slot);
	/* Look again, now that changes are told. */
	if (!sandbox_read_life(service, slot, ready->uid, &record))
		record.status = SANDBOX_DELETING;
	service_timer_set(ready->timer, ready_wait_ms(service, &record));
	*ret_ready = ready;
	return 0;
}
