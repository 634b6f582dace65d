/*
 * sandbox_delete.c - removing a sandbox: by its owner, by a rule, or what a failed one left.
 *
 * The record turns DELETING, which hides it from everybody, and a tombstone says
 * that it existed; then its jobs end, the driver removes what there is, as often
 * as it takes, and only then the record goes. Whoever dies on the way is replaced
 * by the reaper (sandbox_resume), since each step may be done twice.
 */
/* SPDX-License-Identifier: MIT */
#include "domain/exec.h"
#include "domain/sandbox_priv.h"
#include "domain/service_priv.h"
#include "backend/agent_client.h"
#include "backend/driver.h"
#include "backend/record_log.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"
#include "base/log.h"
#include "base/text.h"
#include "conf/config.h"
#include "ipc/job_table.h"
#include "ipc/record_index.h"
#include "ipc/shm.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	REMOVAL_FIRST_PAUSE_MS = 200,
	REMOVAL_LAST_PAUSE_MS = 30000,
	REMOVAL_JOB_PAUSE_MS = 20,
	REMOVAL_JOB_WAITS = 250
};

struct sandbox_removal {
	LIST_ENTRY(sandbox_removal) link;
	struct service *service;
	struct event *timer;
	uint32_t slot;
	char id[SANDBOX_ID_SIZE];
	char uid[ID_UUID_SIZE];
	int64_t pause_ms;
	int job_waits;
	bool destroyed; /* the driver has nothing of it any more */
	bool keep_record; /* it failed: only what the driver has goes */
};

static void
removal_free(struct sandbox_removal *removal)
{
	event_free(removal->timer);
	LIST_REMOVE(removal, link);
	free(removal);
}

void
sandbox_removal_free_all(struct service *service)
{
	struct sandbox_removal *removal;

	while ((removal = LIST_FIRST(&service->removals)) != NULL)
		removal_free(removal);
}

/* Owners in other processes read the reason for the end of their jobs from the record. */
static bool
jobs_are_left(struct service *service, const char *uid)
{
	struct shm_jobs *jobs = service_jobs(service);
	uint32_t bound = job_table_count(jobs) > 0 ? job_table_bound(jobs) : 0;
	struct job_record job;

	for (uint32_t slot = 0; slot < bound; slot++)
		if (job_table_read(jobs, slot, &job) && strcmp(job.sandbox_uid, uid) == 0)
			return true;
	return false;
}

static void
removal_finish(struct sandbox_removal *removal)
{
	struct service *service = removal->service;

	removal->destroyed = true;
	if (!removal->keep_record && removal->job_waits < REMOVAL_JOB_WAITS &&
		jobs_are_left(service, removal->uid)) {
		removal->job_waits++;
		service_timer_set(removal->timer, REMOVAL_JOB_PAUSE_MS);
		return;
	}
	agent_client_forget(service->agents, removal->uid);
	if (!removal->keep_record && sandbox_table_remove(service_sandboxes(service), removal->slot, removal->uid))
		sandbox_post(service, removal->slot);
	removal_free(removal);
}

static void
removal_on_done(const struct err *why, void *arg)
{
	struct sandbox_removal *removal = arg;

	if (why == NULL) {
		removal_finish(removal);
		return;
	}
	log_write(LOG_LEVEL_WARN, &(struct log_ctx){ .sandbox_id = removal->id },
		"sandbox cannot be removed yet, trying again in %d ms: %s", (int)removal->pause_ms, why->msg);
	service_timer_set(removal->timer, removal->pause_ms);
	removal->pause_ms = removal->pause_ms * 2 < REMOVAL_LAST_PAUSE_MS ? removal->pause_ms * 2
									  : REMOVAL_LAST_PAUSE_MS;
}

static void
removal_on_time(evutil_socket_t fd, short what, void *arg)
{
	struct sandbox_removal *removal = arg;
	struct driver *driver = removal->service->driver;

	(void)fd;
	(void)what;
	if (removal->destroyed)
		removal_finish(removal);
	else
		driver->ops->destroy(driver, removal->id, removal->uid, removal_on_done, removal);
}

static struct sandbox_removal *
removal_new(struct service *service, uint32_t slot, const struct sandbox_record *record)
{
	struct sandbox_removal *removal = alloc_zero(1, sizeof *removal);

	removal->service = service;
	removal->slot = slot;
	removal->pause_ms = REMOVAL_FIRST_PAUSE_MS;
	memcpy(removal->id, record->id, sizeof removal->id);
	memcpy(removal->uid, record->uid, sizeof removal->uid);
	removal->timer = service_timer(service, removal_on_time, removal);
	LIST_INSERT_HEAD(&service->removals, removal, link);
	return removal;
}

/* It existed: so that deleting it once more is no error. The newest deletion counts. */
static void
tombstone_put(struct service *service, const struct sandbox_record *record)
{
	struct record_key key = record_key_named(RECORD_TOMBSTONE, record->tenant, record->id);
	double expires_at = clock_wall() + (double)service->config->idempotency_ttl_seconds;
	struct record_location place;
	struct err err;

	record_index_drop(shm_index(service->shm), &key);
	if (record_log_append(service->log, RECORD_TOMBSTONE, &key, expires_at, record->id, strlen(record->id),
		    true, &place, &err) != 0 &&
		err.code != ERR_EXISTS)
		log_write(LOG_LEVEL_WARN, &(struct log_ctx){ .sandbox_id = record->id },
			"its deletion could not be noted, deleting it again will say not found: %s", err.msg);
}

static bool
tombstone_exists(struct service *service, const char *tenant, const char *id)
{
	struct record_key key = record_key_named(RECORD_TOMBSTONE, tenant, id);
	AUTO_FREE char *data = NULL;
	struct err err;
	size_t len;

	return record_log_find(service->log, RECORD_TOMBSTONE, &key, &data, &len, &err) == 0;
}

void
sandbox_removal_start(struct service *service, uint32_t slot, const struct sandbox_record *record)
{
	struct sandbox_removal *removal = removal_new(service, slot, record);
	char words[SANDBOX_MESSAGE_SIZE];

	tombstone_put(service, record);
	sandbox_post(service, slot);
	sandbox_gone_words(record->reap_rule, words, sizeof words);
	exec_end_all(service, record->uid, "sandbox_deleted", words);
	removal_on_time(-1, 0, removal);
}

void
sandbox_destroy_remains(struct service *service, uint32_t slot, const struct sandbox_record *record)
{
	struct sandbox_removal *removal = removal_new(service, slot, record);

	removal->keep_record = true;
	removal_on_time(-1, 0, removal);
}

/* --- who wants it gone --- */

struct deletion {
	struct service *service;
	const char *rule;
	struct sandbox_record record;
};

static int
change_deleting(struct sandbox_record *record, void *arg, struct err *err)
{
	struct deletion *deletion = arg;

	if (record->status == SANDBOX_DELETING)
		return err_set(err, ERR_CONFLICT, "it is being deleted already");
	record->status = SANDBOX_DELETING;
	record->ready = false;
	record->status_ms = clock_boot_ms();
	record->owner = deletion->service->self;
	snprintf(record->reap_rule, sizeof record->reap_rule, "%s", deletion->rule);
	deletion->record = *record;
	return 0;
}

int
sandbox_delete(struct service *service, const char *tenant, const char *id, struct err *err)
{
	struct deletion deletion = { .service = service, .rule = "delete" };
	struct sandbox_record record;
	uint32_t slot;

	if (!sandbox_table_find(service_sandboxes(service), id, &record, &slot) ||
		strcmp(record.tenant, tenant) != 0) {
		if (tombstone_exists(service, tenant, id))
			return 0;
		return err_set(err, ERR_NOT_FOUND, "there is no sandbox \"%.64s\"", id);
	}
	if (sandbox_table_change(service_sandboxes(service), slot, record.uid, change_deleting, &deletion, err) !=
		0)
		return err->code == ERR_CONFLICT || err->code == ERR_NOT_FOUND ? 0 : -1;
	service_count(service, METRIC_SANDBOXES_DELETED, 1);
	sandbox_removal_start(service, slot, &deletion.record);
	return 0;
}

/* A record that was torn by a killed writer names nothing that could be trusted. */
static bool
record_is_sane(const struct sandbox_record *record)
{
	return memchr(record->id, '\0', sizeof record->id) != NULL && id_is_sandbox_id(record->id) &&
		memchr(record->uid, '\0', sizeof record->uid) != NULL && id_is_uuid(record->uid) &&
		memchr(record->tenant, '\0', sizeof record->tenant) != NULL;
}

int
sandbox_reap(struct service *service, uint32_t slot, const char *uid, const char *rule, struct err *err)
{
	struct deletion deletion = { .service = service, .rule = rule };
	struct sandbox_record record;

	if (!sandbox_read_life(service, slot, uid, &record))
		return err_set(err, ERR_NOT_FOUND, "it is gone already");
	if (!record_is_sane(&record)) {
		/* Whatever it stood for is an orphan for the next reconciliation. */
		log_warn("sandbox slot %u holds no usable record: freed", slot);
		if (sandbox_table_remove(service_sandboxes(service), slot, uid))
			sandbox_post(service, slot);
		return 0;
	}
	if (sandbox_table_change(service_sandboxes(service), slot, uid, change_deleting, &deletion, err) != 0)
		return -1;
	service_count(service, METRIC_SANDBOXES_REAPED, 1);
	log_write(LOG_LEVEL_INFO, &(struct log_ctx){ .sandbox_id = record.id },
		"sandbox removed by the rule \"%s\"", rule);
	sandbox_removal_start(service, slot, &deletion.record);
	return 0;
}

void
sandbox_lost(struct service *service, uint32_t slot, const char *uid, const char *reason)
{
	struct sandbox_record record;

	if (!sandbox_read_life(service, slot, uid, &record) || !sandbox_fail(service, slot, uid, reason))
		return;
	log_write(LOG_LEVEL_WARN, &(struct log_ctx){ .sandbox_id = record.id }, "sandbox lost: %s", reason);
	exec_end_all(service, uid, "agent_lost", reason);
	sandbox_destroy_remains(service, slot, &record);
}
