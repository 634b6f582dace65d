/*
 * job.c - a job as it stands: from the table while it lives, from the store when it has ended.
 *
 * A result is stored before its live record goes, so whoever finds no record
 * looks into the store next and misses nothing.
 */
/* SPDX-License-Identifier: MIT */
#include "domain/job/job.h"
#include "domain/job/job_priv.h"
#include "domain/service_priv.h"
#include "backend/job_store.h"
#include "base/alloc.h"
#include "base/err.h"
#include "base/id.h"
#include "base/json.h"
#include "cluster/job_board.h"
#include "conf/config.h"
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

/* Another server's, or one that it had. */
static void
look_on_board(const struct board_answer *answer, const struct err *why, void *arg)
{
	struct job_look *look = arg;
	AUTO_JSON struct json_object *job = NULL;

	if (answer == NULL && why->code != ERR_NOT_FOUND) {
		look_end(look, NULL, why);
		return;
	}
	if (answer != NULL)
		job = job_far_json(answer, look->tenant);
	if (job != NULL)
		(void)!job_unseal(job, look->tenant, NULL);
	if (job == NULL)
		look_not_found(look);
	else
		look_end(look, job, NULL);
}

/* Not here. */
static void
look_elsewhere(struct job_look *look)
{
	struct err err;

	if (look->service->board == NULL)
		look_not_found(look);
	else if (job_far_get(look->service, look->job_id, look_on_board, look, &err) != 0)
		look_end(look, NULL, &err);
}

static void
look_on_result(struct json_object *value, const struct err *why, void *arg)
{
	struct job_look *look = arg;

	if (why != NULL && why->code != ERR_NOT_FOUND)
		look_end(look, NULL, why);
	else if (value == NULL)
		look_elsewhere(look);
	else if (!job_unseal(value, look->tenant, NULL))
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

void
job_blocker(struct service *service, const struct job_record *record, char ret_job_id[ID_UUID_SIZE])
{
	struct exec_ticket ticket = { .node = record->lock_node, .number = record->fence };
	uint32_t slot = exec_lock_blocker(shm_exec_lock(service->shm), ticket);
	struct job_record head;

	ret_job_id[0] = '\0';
	if (record->blocked_by[0] != '\0')
		memcpy(ret_job_id, record->blocked_by, ID_UUID_SIZE);
	else if (job_table_read(service_jobs(service), slot, &head) && strcmp(head.id, record->id) != 0 &&
		strcmp(head.sandbox_uid, record->sandbox_uid) == 0)
		memcpy(ret_job_id, head.id, ID_UUID_SIZE);
}

struct json_object *
job_standing_json(struct service *service, const struct job_record *record, struct json_object *command)
{
	struct json_object *job;
	char blocker[ID_UUID_SIZE];

	if (record->state != JOB_QUEUED)
		return job_live_json(record, command, UINT32_MAX);
	job = job_live_json(record, command, job_queue_position(service, record));
	job_blocker(service, record, blocker);
	json_object_object_add(job, "blocked_by", blocker[0] != '\0' ? json_object_new_string(blocker) : NULL);
	return job;
}

static void
look_on_spec(struct json_object *value, const struct err *why, void *arg)
{
	struct job_look *look = arg;
	struct json_object *request = NULL, *command = NULL, *job;

	(void)why;
	if (value != NULL && json_object_object_get_ex(value, "request", &request))
		json_object_object_get_ex(request, "command", &command);
	job = job_standing_json(look->service, &look->record, command);
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

static int
change_followed(struct job_record *record, void *arg, struct err *err)
{
	(void)arg;
	(void)err;
	record->followed = true;
	return 0;
}

void
job_follow(struct service *service, uint32_t slot, const char *job_id)
{
	struct err err;

	/* One that is gone has nothing to tell. */
	(void)!job_table_change(service_jobs(service), slot, job_id, change_followed, NULL, &err);
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

static int
change_left(struct job_record *record, void *arg, struct err *err)
{
	(void)arg;
	if (record->state != JOB_QUEUED || record->detached)
		return err_set(err, ERR_CONFLICT, "it goes on");
	record->left = true;
	return 0;
}

void
job_leave(struct service *service, const char *tenant, const char *job_id)
{
	struct job_record record;
	struct err err;
	uint32_t slot;

	if (job_find_live(service, tenant, job_id, &record, &slot) &&
		job_table_change(service_jobs(service), slot, job_id, change_left, NULL, &err) == 0)
		notify_post(service->notify, NOTIFY_JOB, slot);
}

void
job_cancel(struct service *service, const char *tenant, const char *job_id, job_done_f *done, void *arg,
	struct job_wait **ret_wait)
{
	struct job_record record;
	struct err err;
	uint32_t slot;

	/* Its owner, in whatever process, watches the slot; one that has just ended needs nothing. */
	if (job_find_live(service, tenant, job_id, &record, &slot)) {
		if (job_table_change(service_jobs(service), slot, job_id, change_cancel, NULL, &err) == 0)
			notify_post(service->notify, NOTIFY_JOB, slot);
	} else if (service->board != NULL && id_is_uuid(job_id)) {
		job_board_cancel(service->board, job_id, tenant);
	}
	job_wait_start(service, tenant, job_id, JOB_CANCEL_WAIT_MS, done, arg, ret_wait);
}

void
job_heard_far(struct service *service, const char *job_id)
{
	notify_post(service->notify, NOTIFY_JOB, job_far_slot(service, job_id));
}

static int
change_claimed(struct job_record *record, void *arg, struct err *err)
{
	(void)arg;
	(void)err;
	record->claimed = true;
	return 0;
}

static int
change_untold(struct job_record *record, void *arg, struct err *err)
{
	(void)arg;
	(void)err;
	record->untold = true;
	return 0;
}

static void
job_mark(struct service *service, const char *job_id, job_change_f *change)
{
	struct job_record record;
	struct err err;
	uint32_t slot;

	if (id_is_uuid(job_id) && job_table_find(service_jobs(service), job_id, &record, &slot) &&
		job_table_change(service_jobs(service), slot, job_id, change, NULL, &err) == 0)
		notify_post(service->notify, NOTIFY_JOB, slot);
}

void
job_heard_claim(struct service *service, const char *job_id)
{
	job_mark(service, job_id, change_claimed);
}

void
job_heard_lost(struct service *service, const char *job_id)
{
	job_mark(service, job_id, change_untold);
}

void
job_heard_cancel(struct service *service, const char *job_id)
{
	job_mark(service, job_id, change_cancel);
}
