/*
 * job.c - a job as it stands: from the table while it lives, from the store when it has ended.
 *
 * A result is stored before its live record goes, so whoever finds no record
 * looks into the store next and misses nothing.
 */
/* SPDX-License-Identifier: MIT */
#include "domain/job.h"
#include "domain/job_priv.h"
#include "domain/service_priv.h"
#include "backend/job_store.h"
#include "base/alloc.h"
#include "base/err.h"
#include "base/id.h"
#include "ipc/exec_lock.h"
#include "ipc/shm.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One look-up on its way through the store. */
struct job_look {
	struct service *service;
	char tenant[SANDBOX_TENANT_SIZE];
	char job_id[ID_UUID_SIZE];
	struct job_record record; /* of a live one */
	job_done_f *done;
	void *arg;
};

static void
look_end(struct job_look *look, struct json_object *job, const struct err *why)
{
	job_done_f *done = look->done;
	void *arg = look->arg;

	free(look);
	done(job, why, arg);
}

static void
look_not_found(struct job_look *look)
{
	struct err err;

	err_set(&err, ERR_NOT_FOUND, "there is no job \"%.64s\", or its time to be kept is over", look->job_id);
	look_end(look, NULL, &err);
}

static void
look_on_result(struct json_object *value, const struct err *why, void *arg)
{
	struct job_look *look = arg;

	if (why != NULL && why->code != ERR_NOT_FOUND)
		look_end(look, NULL, why);
	else if (value == NULL || !job_unseal(value, look->tenant, NULL))
		look_not_found(look);
	else
		look_end(look, value, NULL);
}

uint32_t
job_queue_position(struct service *service, const struct job_record *record)
{
	struct exec_ticket ticket = { .node = record->lock_node, .number = record->fence };

	return exec_lock_position(shm_exec_lock(service->shm), ticket);
}

static void
look_on_spec(struct json_object *value, const struct err *why, void *arg)
{
	struct job_look *look = arg;
	struct json_object *request = NULL, *command = NULL, *job;

	(void)why;
	if (value != NULL && json_object_object_get_ex(value, "request", &request))
		json_object_object_get_ex(request, "command", &command);
	job = job_live_json(&look->record, command, job_queue_position(look->service, &look->record));
	look_end(look, job, NULL);
	json_object_put(job);
}

bool
job_find_live(struct service *service, const char *tenant, const char *job_id, struct job_record *ret_record,
	uint32_t *ret_slot)
{
	return id_is_uuid(job_id) && job_table_find(service_jobs(service), job_id, ret_record, ret_slot) &&
		strcmp(ret_record->tenant, tenant) == 0;
}

void
job_get(struct service *service, const char *tenant, const char *job_id, job_done_f *done, void *arg)
{
	struct job_look *look = alloc_zero(1, sizeof *look);
	uint32_t slot;

	look->service = service;
	look->done = done;
	look->arg = arg;
	snprintf(look->tenant, sizeof look->tenant, "%s", tenant);
	snprintf(look->job_id, sizeof look->job_id, "%s", job_id);
	if (!id_is_uuid(job_id))
		look_not_found(look);
	else if (job_find_live(service, tenant, job_id, &look->record, &slot))
		job_store_get_spec(service->store, job_id, &look->record.spec, look_on_spec, look);
	else
		job_store_get_result(service->store, job_id, look_on_result, look);
}

/* --- cancelling --- */

static int
change_cancel(struct job_record *record, void *arg, struct err *err)
{
	(void)arg;
	(void)err;
	record->cancel = true;
	return 0;
}

void
job_cancel(struct service *service, const char *tenant, const char *job_id, job_done_f *done, void *arg,
	struct job_wait **ret_wait)
{
	struct job_record record;
	struct err err;
	uint32_t slot;

	/* Its owner, in whatever process, watches the slot; one that has just ended needs nothing. */
	if (job_find_live(service, tenant, job_id, &record, &slot) &&
		job_table_change(service_jobs(service), slot, job_id, change_cancel, NULL, &err) == 0)
		notify_post(service->notify, NOTIFY_JOB, slot);
	job_wait_start(service, tenant, job_id, JOB_CANCEL_WAIT_MS, done, arg, ret_wait);
}
