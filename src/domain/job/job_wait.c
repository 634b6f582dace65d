/*
 * job_wait.c - waiting for the end of a job, whichever process drives it.
 *
 * A wait registers at the job's slot, looks, and only then sleeps. The end of a
 * job that this process drives is handed over as it is; any other is read from
 * the store. A job of another server has no slot: its changes are posted at one that it
 * may share, by the reaper, who hears of them; should that be lost, it is looked at anew now and then.
 */
/* SPDX-License-Identifier: MIT */
#include "domain/job/job.h"
#include "domain/job/job_priv.h"
#include "domain/service_priv.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"

#include <event2/event.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct job_wait {
	LIST_ENTRY(job_wait) link;
	struct service *service;
	struct watch watch;
	struct event *timer;
	char tenant[SANDBOX_TENANT_SIZE];
	char job_id[ID_UUID_SIZE];
	uint32_t slot;
	bool *ret_over; /* set when it is told while job_wait_start() runs */
	bool looking; /* the store is asked, and tells this wait */
	bool far; /* another server drives it */
	bool changed; /* since it is being looked at */
	int64_t end_ms; /* boot clock */
	job_done_f *done; /* NULL: its client has left meanwhile */
	void *arg;
};

static void
wait_stop(struct job_wait *wait)
{
	if (wait->timer == NULL)
		return;
	watch_remove(&wait->watch);
	event_free(wait->timer);
	wait->timer = NULL;
	service_waiter_drop(wait->service);
}

void
job_wait_cancel(struct job_wait *wait)
{
	wait_stop(wait);
	LIST_REMOVE(wait, link);
	if (wait->looking)
		wait->done = NULL;
	else
		free(wait);
}

static void wait_look(struct job_wait *wait);
static void wait_on_change(void *arg);
static void wait_on_time(evutil_socket_t fd, short what, void *arg);

static bool
job_is_live(struct json_object *job)
{
	const char *status = json_object_get_string(json_object_object_get(job, "status"));

	return status != NULL && (strcmp(status, "queued") == 0 || strcmp(status, "running") == 0);
}

static void
wait_watch(struct job_wait *wait, uint32_t slot)
{
	wait->slot = slot;
	wait->timer = service_timer(wait->service, wait_on_time, wait);
	wait->watch = (struct watch){ .on_change = wait_on_change, .arg = wait };
	watch_add(&wait->service->watches, &wait->watch, NOTIFY_JOB, slot);
}

/* Looks again when it hears something, or when that may have been lost. */
static void
wait_sleep(struct job_wait *wait)
{
	int64_t left = wait->end_ms - clock_boot_ms(), pause = wait->service->far_look_ms;

	service_timer_set(wait->timer, left < pause ? left : pause);
}

/* It goes on at another server. True: it is waited for. */
static bool
wait_far(struct job_wait *wait, struct err *err)
{
	if (wait->service->board == NULL || wait->end_ms <= clock_boot_ms())
		return false;
	if (!wait->far) {
		if (service_waiter_add(wait->service, err) != 0)
			return false;
		wait->far = true;
		wait_watch(wait, job_far_slot(wait->service, wait->job_id));
		/* It may have ended before there was anybody to hear of it. */
		wait->changed = true;
	}
	if (wait->changed)
		wait_look(wait);
	else
		wait_sleep(wait);
	return true;
}

/* Redis is away for a moment, or for longer: it is waited for all the same. */
static bool
wait_is_patient(struct job_wait *wait, const struct err *why)
{
	if (why == NULL || why->code != ERR_UNAVAILABLE || !wait->far || wait->timer == NULL ||
		wait->end_ms <= clock_boot_ms())
		return false;
	wait->changed = false;
	wait_sleep(wait);
	return true;
}

static void
wait_on_looked(struct json_object *job, const struct err *why, void *arg)
{
	struct job_wait *wait = arg;
	struct job_wait copy;
	struct err err = { 0 };

	wait->looking = false;
	if (wait->done != NULL &&
		((job != NULL && job_is_live(job) && wait_far(wait, &err)) || wait_is_patient(wait, why)))
		return;
	if (err.code != ERR_NONE) {
		job = NULL;
		why = &err;
	}
	copy = *wait;
	if (wait->ret_over != NULL)
		*wait->ret_over = true;
	if (copy.done == NULL) {
		free(wait);
		return;
	}
	job_wait_cancel(wait);
	copy.done(job, why, copy.arg);
}

static void
wait_look(struct job_wait *wait)
{
	wait->looking = true;
	wait->changed = false;
	job_get(wait->service, wait->tenant, wait->job_id, wait_on_looked, wait);
}

/* Over: tells how it stands now. */
static void
wait_end(struct job_wait *wait)
{
	wait_stop(wait);
	wait_look(wait);
}

static bool
wait_is_over(const struct job_wait *wait)
{
	struct job_record record;

	return !job_table_read(service_jobs(wait->service), wait->slot, &record) ||
		strcmp(record.id, wait->job_id) != 0;
}

static void
wait_on_change(void *arg)
{
	struct job_wait *wait = arg;

	if (!wait->far) {
		if (wait_is_over(wait))
			wait_end(wait);
	} else if (wait->looking) {
		wait->changed = true;
	} else {
		wait_look(wait);
	}
}

static void
wait_on_time(evutil_socket_t fd, short what, void *arg)
{
	struct job_wait *wait = arg;

	(void)fd;
	(void)what;
	if (!wait->far)
		wait_end(wait);
	else if (!wait->looking)
		wait_look(wait);
}

static struct job_wait *
wait_new(struct service *service, const char *tenant, const char *job_id, job_done_f *done, void *arg)
{
	struct job_wait *wait = alloc_zero(1, sizeof *wait);

	wait->service = service;
	wait->done = done;
	wait->arg = arg;
	snprintf(wait->job_id, sizeof wait->job_id, "%s", job_id);
	snprintf(wait->tenant, sizeof wait->tenant, "%s", tenant);
	LIST_INSERT_HEAD(&service->job_waits, wait, link);
	return wait;
}

void
job_wait_start(struct service *service, const char *tenant, const char *job_id, int64_t timeout_ms,
	job_done_f *done, void *arg, struct job_wait **ret_wait)
{
	struct job_record record;
	struct job_wait *wait;
	bool over = false, live;
	struct err err;
	uint32_t slot;

	*ret_wait = NULL;
	live = timeout_ms > 0 && job_find_live(service, tenant, job_id, &record, &slot);
	if (live && service_waiter_add(service, &err) != 0) {
		done(NULL, &err, arg);
		return;
	}
	wait = wait_new(service, tenant, job_id, done, arg);
	wait->ret_over = &over;
	wait->end_ms = clock_boot_ms() + timeout_ms;
	if (live) {
		wait_watch(wait, slot);
		service_timer_set(wait->timer, timeout_ms);
	}
	if (!live || wait_is_over(wait))
		wait_end(wait);
	if (over)
		return;
	wait->ret_over = NULL;
	*ret_wait = wait;
}

/* A wait for that job among those who watch its slot. */
static struct job_wait *
wait_find(struct service *service, uint32_t slot, const char *job_id)
{
	struct watch *watch;

	LIST_FOREACH(watch, &service->watches.buckets[NOTIFY_JOB][slot % WATCH_BUCKETS], link)
	{
		struct job_wait *wait = watch->arg;

		if (watch->on_change == wait_on_change && strcmp(wait->job_id, job_id) == 0)
			return wait;
	}
	return NULL;
}

void
job_waits_tell(struct service *service, uint32_t slot, const char *job_id, struct json_object *job)
{
	struct job_wait *wait;

	/* Telling one may end others: look from the front each time. */
	while ((wait = wait_find(service, slot, job_id)) != NULL) {
		job_done_f *done = wait->done;
		void *arg = wait->arg;

		job_wait_cancel(wait);
		done(job, NULL, arg);
	}
}

void
job_wait_end_all(struct service *service)
{
	struct job_wait *wait;
	struct err err;

	err_set(&err, ERR_UNAVAILABLE, "this server process stops; ask again");
	while ((wait = LIST_FIRST(&service->job_waits)) != NULL) {
		job_done_f *done = wait->done;
		void *arg = wait->arg;

		job_wait_cancel(wait);
		done(NULL, &err, arg);
	}
}
