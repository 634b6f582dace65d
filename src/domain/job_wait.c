/*
 * job_wait.c - waiting for the end of a job, whichever process drives it.
 *
 * A wait registers at the job's slot, looks, and only then sleeps. The end of a
 * job that this process drives is handed over as it is; any other is read from
 * the store.
 */
/* SPDX-License-Identifier: MIT */
#include "domain/job.h"
#include "domain/job_priv.h"
#include "domain/service_priv.h"
#include "base/alloc.h"
#include "base/err.h"

#include <event2/event.h>
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
	job_done_f *done;
	void *arg;
};

void
job_wait_cancel(struct job_wait *wait)
{
	watch_remove(&wait->watch);
	event_free(wait->timer);
	LIST_REMOVE(wait, link);
	service_waiter_drop(wait->service);
	free(wait);
}

/* Over: tells how it stands now. */
static void
wait_end(struct job_wait *wait)
{
	struct job_wait copy = *wait;

	job_wait_cancel(wait);
	job_get(copy.service, copy.tenant, copy.job_id, copy.done, copy.arg);
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
	if (wait_is_over(arg))
		wait_end(arg);
}

static void
wait_on_time(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	wait_end(arg);
}

void
job_wait_start(struct service *service, const char *tenant, const char *job_id, int64_t timeout_ms,
	job_done_f *done, void *arg, struct job_wait **ret_wait)
{
	struct job_record record;
	struct job_wait *wait;
	struct err err;
	uint32_t slot;

	*ret_wait = NULL;
	if (timeout_ms <= 0 || !job_find_live(service, tenant, job_id, &record, &slot)) {
		job_get(service, tenant, job_id, done, arg);
		return;
	}
	if (service_waiter_add(service, &err) != 0) {
		done(NULL, &err, arg);
		return;
	}
	wait = alloc_zero(1, sizeof *wait);
	wait->service = service;
	wait->slot = slot;
	wait->done = done;
	wait->arg = arg;
	memcpy(wait->job_id, record.id, sizeof wait->job_id);
	memcpy(wait->tenant, record.tenant, sizeof wait->tenant);
	wait->timer = service_timer(service, wait_on_time, wait);
	wait->watch = (struct watch){ .on_change = wait_on_change, .arg = wait };
	LIST_INSERT_HEAD(&service->job_waits, wait, link);
	watch_add(&service->watches, &wait->watch, NOTIFY_JOB, slot);
	service_timer_set(wait->timer, timeout_ms);
	if (wait_is_over(wait))
		wait_end(wait);
	else
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
