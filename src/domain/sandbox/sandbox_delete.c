/*
 * sandbox_delete.c - removing a sandbox: by its owner, by a rule, or what a failed one left.
 *
 * The record turns DELETING, which hides it from everybody, and a tombstone says
 * that it existed; then its jobs end, the driver removes what there is, as often
 * as it takes, and only then the record goes. Whoever dies on the way is replaced
 * by the reaper (sandbox_resume), since each step may be done twice.
 */
/* SPDX-License-Identifier: MIT */
#include "domain/exec/exec.h"
#include "domain/sandbox/sandbox_priv.h"
#include "domain/service_priv.h"
#include "backend/agent_client.h"
#include "backend/driver.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"
#include "base/log.h"
#include "cluster/sandbox_share.h"
#include "ipc/exec_lock.h"
#include "ipc/job_table.h"
#include "ipc/shm.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)METRIC_REAPED_ORPHAN - (int)METRIC_REAPED_TTL == (int)EXPIRY_RULES &&
		(int)METRIC_REAPED_DOUBTFUL - (int)METRIC_REAPED_TTL == (int)EXPIRY_DOUBTFUL,
	"a metric for each rule, in their order");

enum {
	REMOVAL_FIRST_PAUSE_MS = 200,
	REMOVAL_LAST_PAUSE_MS = 30000,
	REMOVAL_DRAIN_PAUSE_MS = 10,
	REMOVAL_DRAINS = 30,
	REMOVAL_JOB_PAUSE_MS = 20,
	REMOVAL_JOB_WAITS = 250,
	REMOVAL_TELL_PAUSE_MS = 2000 /* the id is not free before: soon after Redis is back */
};

struct sandbox_removal {
	LIST_ENTRY(sandbox_removal) link;
	struct service *service;
	struct event *timer;
	uint32_t slot;
	char id[SANDBOX_ID_SIZE];
	char uid[ID_UUID_SIZE];
	int64_t pause_ms;
	int drains, job_waits;
	bool destroyed; /* the driver has nothing of it any more */
	bool fresh; /* the driver may still do it at the first try: one of service->fresh_removals */
	bool keep_record; /* it failed: only what the driver has goes */
	bool told; /* other servers know that it is gone */
};

static void
removal_is_old(struct sandbox_removal *removal)
{
	if (removal->fresh)
		removal->service->fresh_removals--;
	removal->fresh = false;
}

static void
removal_free(struct sandbox_removal *removal)
{
	removal_is_old(removal);
	if (removal->service->sandboxes != NULL)
		sandbox_share_forget(removal->service->sandboxes, removal);
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
removal_try_later(struct sandbox_removal *removal)
{
	service_timer_set(removal->timer, removal->pause_ms);
	removal->pause_ms = removal->pause_ms * 2 < REMOVAL_LAST_PAUSE_MS ? removal->pause_ms * 2
									  : REMOVAL_LAST_PAUSE_MS;
}

static void removal_finish(struct sandbox_removal *removal);

static void
removal_on_told(void *arg, const struct share_answer *answer, const struct err *why)
{
	struct sandbox_removal *removal = arg;

	(void)answer;
	removal->told = why == NULL;
	if (removal->told)
		removal_finish(removal);
	else
		service_timer_set(removal->timer, REMOVAL_TELL_PAUSE_MS);
}

/* As long as others have not heard of it, the record stays, so that somebody tells them. False: they have to be told first. */
static bool
removal_tell(struct sandbox_removal *removal)
{
	struct service *service = removal->service;
	struct sandbox_record record;
	struct err err;

	if (service->sandboxes == NULL || removal->keep_record || removal->told ||
		!sandbox_read_life(service, removal->slot, removal->uid, &record))
		return true;
	if (sandbox_share_finish(service->sandboxes, &record,
		    (struct share_to){ .fn = removal_on_told, .arg = removal }, &err) != 0)
		service_timer_set(removal->timer, REMOVAL_TELL_PAUSE_MS);
	return false;
}

static void
removal_finish(struct sandbox_removal *removal)
{
	struct service *service = removal->service;

	removal->destroyed = true;
	removal_is_old(removal);
	if (!removal->keep_record && removal->job_waits < REMOVAL_JOB_WAITS &&
		jobs_are_left(service, removal->uid)) {
		removal->job_waits++;
		service_timer_set(removal->timer, REMOVAL_JOB_PAUSE_MS);
		return;
	}
	if (!removal_tell(removal))
		return;
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
	removal_is_old(removal);
	removal_try_later(removal);
}

/* Whoever drives a command of it reads what that has written, while its agent still lives; not for long. */
static bool
removal_drains(struct sandbox_removal *removal)
{
	if (removal->keep_record || removal->drains == REMOVAL_DRAINS ||
		exec_lock_places(shm_exec_lock(removal->service->shm), removal->slot) == 0)
		return false;
	removal->drains++;
	service_timer_set(removal->timer, REMOVAL_DRAIN_PAUSE_MS);
	return true;
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
	else if (!removal_drains(removal))
		driver->ops->destroy(driver, removal->id, removal->uid, removal_on_done, removal);
}

static struct sandbox_removal *
removal_new(struct service *service, uint32_t slot, const struct sandbox_record *record)
{
	struct sandbox_removal *removal = alloc_zero(1, sizeof *removal);

	removal->service = service;
	removal->slot = slot;
	removal->pause_ms = REMOVAL_FIRST_PAUSE_MS;
	removal->fresh = true;
	service->fresh_removals++;
	memcpy(removal->id, record->id, sizeof removal->id);
	memcpy(removal->uid, record->uid, sizeof removal->uid);
	removal->timer = service_timer(service, removal_on_time, removal);
	LIST_INSERT_HEAD(&service->removals, removal, link);
	return removal;
}

void
sandbox_removal_start(struct service *service, uint32_t slot, const struct sandbox_record *record)
{
	struct sandbox_removal *removal = removal_new(service, slot, record);
	char words[SANDBOX_MESSAGE_SIZE];
	struct err err;

	sandbox_tombstone_put(service, record);
	sandbox_post(service, slot);
	/* So that others know soon; that they do is made sure of at the end. */
	if (service->sandboxes != NULL)
		(void)!sandbox_share_delete(
			service->sandboxes, record, record->reap_rule, false, (struct share_to){ 0 }, &err);
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
	const struct sandbox_record *judged; /* by the rule; NULL: whatever it is now */
	struct sandbox_record record;
};

/* Did anything happen that a rule goes by? */
static bool
is_as_judged(const struct sandbox_record *record, const struct sandbox_record *judged)
{
	return record->status == judged->status && record->activity_ms == judged->activity_ms &&
		record->heartbeat_ms == judged->heartbeat_ms && record->ttl_ms == judged->ttl_ms &&
		record->ttl_from_ms == judged->ttl_from_ms && record->idle_timeout_ms == judged->idle_timeout_ms;
}

static int
change_deleting(struct sandbox_record *record, void *arg, struct err *err)
{
	struct deletion *deletion = arg;

	if (record->status == SANDBOX_DELETING)
		return err_set(err, ERR_CONFLICT, "it is being deleted already");
	if (deletion->judged != NULL && !is_as_judged(record, deletion->judged))
		return err_set(err, ERR_CONFLICT, "it was used meanwhile");
	record->status = SANDBOX_DELETING;
	record->ready = false;
	record->status_ms = clock_boot_ms();
	record->owner = deletion->service->self;
	snprintf(record->reap_rule, sizeof record->reap_rule, "%s", deletion->rule);
	deletion->record = *record;
	return 0;
}

/* Ours. */
static int
delete_here(struct service *service, uint32_t slot, const char *uid, struct err *err)
{
	struct deletion deletion = { .service = service, .rule = SANDBOX_RULE_DELETE };

	if (sandbox_table_change(service_sandboxes(service), slot, uid, change_deleting, &deletion, err) != 0)
		return err->code == ERR_CONFLICT || err->code == ERR_NOT_FOUND ? 0 : -1;
	service_count(service, METRIC_SANDBOXES_DELETED, 1);
	sandbox_removal_start(service, slot, &deletion.record);
	return 0;
}

void
sandbox_delete(struct service *service, const char *tenant, const char *id, sandbox_told_f *done, void *arg)
{
	char rule[SANDBOX_RULE_SIZE];
	struct sandbox_record record;
	struct err err;
	uint32_t slot;
	int rc = 0;

	if (!sandbox_table_find(service_sandboxes(service), id, &record, &slot) ||
		strcmp(record.tenant, tenant) != 0) {
		if (!sandbox_tombstone_find(service, tenant, id, rule))
			rc = err_set(&err, ERR_NOT_FOUND, "there is no sandbox \"%.64s\"", id);
	} else if (!sandbox_is_foreign(&record)) {
		rc = delete_here(service, slot, record.uid, &err);
	} else if (record.status != SANDBOX_DELETING && service->sandboxes != NULL) {
		sandbox_ask_delete(service, &record, done, arg);
		return;
	}
	done(rc != 0 ? &err : NULL, arg);
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
sandbox_reap_now(struct service *service, uint32_t slot, const char *uid, const struct sandbox_record *judged,
	enum expiry_rule rule, struct err *err)
{
	struct deletion deletion = { .service = service, .rule = expiry_rule_name(rule), .judged = judged };

	if (sandbox_table_change(service_sandboxes(service), slot, uid, change_deleting, &deletion, err) != 0)
		return -1;
	service_count(service, (enum metric)(METRIC_REAPED_TTL + (int)rule), 1);
	log_write(LOG_LEVEL_INFO, &(struct log_ctx){ .sandbox_id = deletion.record.id },
		"sandbox removed by the rule \"%s\"", deletion.rule);
	sandbox_removal_start(service, slot, &deletion.record);
	return 0;
}

int
sandbox_reap(struct service *service, uint32_t slot, const struct sandbox_record *judged, enum expiry_rule rule,
	struct err *err)
{
	if (!record_is_sane(judged)) {
		/* Whatever it stood for is an orphan for the next reconciliation. */
		log_warn("sandbox slot %u holds no usable record: freed", slot);
		if (sandbox_table_remove(service_sandboxes(service), slot, judged->uid))
			sandbox_post(service, slot);
		return 0;
	}
	if (service->sandboxes != NULL)
		return sandbox_ask_reap(service, slot, judged, rule, err);
	return sandbox_reap_now(service, slot, judged->uid, judged, rule, err);
}

void
sandbox_unwanted(struct service *service, uint32_t slot, const char *uid)
{
	struct deletion deletion = { .service = service, .rule = SANDBOX_RULE_DELETE };
	struct err err;

	if (sandbox_table_change(service_sandboxes(service), slot, uid, change_deleting, &deletion, &err) != 0)
		return; /* it goes already */
	service_count(service, METRIC_SANDBOXES_DELETED, 1);
	sandbox_removal_start(service, slot, &deletion.record);
}

uint32_t
sandbox_removals(const struct service *service)
{
	return service->fresh_removals + service->reaps;
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
