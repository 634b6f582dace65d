/* sandbox.c - looking a sandbox up, and the small changes of its record. */
/* SPDX-License-Identifier: MIT */
#include "domain/sandbox/sandbox.h"
#include "domain/sandbox/sandbox_priv.h"
#include "domain/service_priv.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text.h"
#include "ipc/exec_lock.h"
#include "ipc/notify.h"
#include "ipc/shm.h"

#include <stdio.h>
#include <string.h>

enum { TOUCH_INTERVAL_MS = 100 };

/* Also why it is gone, where a rule of its going is known ("": none is). */
static int
not_found(const char *id, const char *rule, struct err *err)
{
	char words[SANDBOX_MESSAGE_SIZE] = "";

	if (rule[0] != '\0')
		sandbox_gone_words(rule, words, sizeof words);
	return err_set(
		err, ERR_NOT_FOUND, "there is no sandbox \"%.64s\"%s%s", id, *words != '\0' ? ": " : "", words);
}

/* One that goes says itself why: what is kept of it for later may not be written yet. */
int
sandbox_lookup(struct service *service, const char *tenant, const char *id, struct sandbox_record *ret_record,
	uint32_t *ret_slot, struct err *err)
{
	char rule[SANDBOX_RULE_SIZE] = "";
	bool found = sandbox_table_find(service_sandboxes(service), id, ret_record, ret_slot) &&
		strcmp(ret_record->tenant, tenant) == 0;

	if (found && ret_record->status == SANDBOX_DELETING)
		return not_found(id, ret_record->reap_rule, err);
	if (found && ret_record->status != SANDBOX_DOUBTFUL)
		return 0;
	if (!sandbox_tombstone_find(service, tenant, id, rule))
		rule[0] = '\0';
	return not_found(id, rule, err);
}

bool
sandbox_read_life(struct service *service, uint32_t slot, const char *uid, struct sandbox_record *ret_record)
{
	return sandbox_table_read(service_sandboxes(service), slot, ret_record) &&
		strcmp(ret_record->uid, uid) == 0;
}

int
sandbox_get(struct service *service, const char *tenant, const char *id, struct sandbox_record *ret_record,
	struct err *err)
{
	return sandbox_lookup(service, tenant, id, ret_record, NULL, err);
}

void
sandbox_post(struct service *service, uint32_t slot)
{
	notify_post(service->notify, NOTIFY_SANDBOX, slot);
}

void
sandbox_post_shared(struct service *service, uint32_t slot)
{
	if (service->sandboxes != NULL)
		sandbox_post(service, slot);
}

static int
change_activity(struct sandbox_record *record, void *arg, struct err *err)
{
	(void)arg;
	(void)err;
	record->activity_ms = clock_boot_ms();
	return 0;
}

void
sandbox_touch(struct service *service, uint32_t slot, const struct sandbox_record *record)
{
	struct err err;

	if (clock_boot_ms() - record->activity_ms < TOUCH_INTERVAL_MS)
		return;
	/* It may be gone by now: then there is nothing to keep alive. */
	(void)!sandbox_table_change(service_sandboxes(service), slot, record->uid, change_activity, NULL, &err);
}

/* A change by a tenant: only of what the tenant still sees. */
static int
check_visible(const struct sandbox_record *record, struct err *err)
{
	if (record->status == SANDBOX_DELETING || record->status == SANDBOX_DOUBTFUL)
		return err_set(err, ERR_NOT_FOUND, "there is no sandbox \"%.64s\"", record->id);
	return 0;
}

static int
change_heartbeat(struct sandbox_record *record, void *arg, struct err *err)
{
	(void)arg;
	if (check_visible(record, err) != 0)
		return -1;
	record->heartbeat_ms = clock_boot_ms();
	return 0;
}

int
sandbox_heartbeat(struct service *service, const char *tenant, const char *id, struct err *err)
{
	struct sandbox_record record;
	uint32_t slot;

	if (sandbox_lookup(service, tenant, id, &record, &slot, err) != 0)
		return -1;
	return sandbox_table_change(service_sandboxes(service), slot, record.uid, change_heartbeat, NULL, err);
}

/* What a PATCH asks for, and what came of it. */
struct patch {
	const char *labels; /* NULL: unchanged */
	const struct sandbox_change *change;
	struct sandbox_record record;
};

static int
change_patch(struct sandbox_record *record, void *arg, struct err *err)
{
	struct patch *patch = arg;

	if (check_visible(record, err) != 0)
		return -1;
	if (patch->labels != NULL)
		snprintf(record->labels, sizeof record->labels, "%s", patch->labels);
	record->activity_ms = clock_boot_ms();
	if (patch->change->ttl_ms >= 0) {
		record->ttl_ms = patch->change->ttl_ms;
		record->ttl_from_ms = record->activity_ms;
	}
	if (patch->change->idle_timeout_ms >= 0)
		record->idle_timeout_ms = patch->change->idle_timeout_ms;
	patch->record = *record;
	return 0;
}

static int
check_labels(const char *labels, struct err *err)
{
	if (labels == NULL || strlen(labels) < SANDBOX_LABELS_SIZE)
		return 0;
	return err_set(err, ERR_INVALID, "labels must be less than %d bytes as JSON", SANDBOX_LABELS_SIZE);
}

void
sandbox_patch(struct service *service, const char *tenant, const char *id, const struct sandbox_change *change,
	sandbox_changed_f *done, void *arg)
{
	struct patch patch = {
		.labels = change->labels != NULL ? json_text(change->labels, NULL) : NULL,
		.change = change,
	};
	struct sandbox_record record;
	struct err err;
	uint32_t slot;

	if (sandbox_lookup(service, tenant, id, &record, &slot, &err) != 0 || check_labels(patch.labels, &err) != 0)
		done(NULL, &err, arg);
	else if (service->sandboxes != NULL)
		sandbox_ask_patch(service, &record, change, done, arg);
	else if (sandbox_table_change(service_sandboxes(service), slot, record.uid, change_patch, &patch, &err) !=
		0)
		done(NULL, &err, arg);
	else
		done(&patch.record, NULL, arg);
}

int
sandbox_check_host(const struct sandbox_record *record, struct err *err)
{
	if (!record->elsewhere)
		return 0;
	return err_set(err, ERR_UNAVAILABLE,
		"the sandbox \"%s\" is on another host: only the servers there can work in it; ask one of them",
		record->id);
}

/* --- the end of it, by itself --- */

static int
change_failed(struct sandbox_record *record, void *arg, struct err *err)
{
	if (sandbox_is_foreign(record))
		return err_set(err, ERR_CONFLICT, "another server judges it");
	if (!sandbox_is_being_made(record) && record->status != SANDBOX_READY && record->status != SANDBOX_PAUSED)
		return err_set(
			err, ERR_CONFLICT, "it is %s", sandbox_status_name((enum sandbox_status)record->status));
	record->status = SANDBOX_FAILED;
	record->ready = false;
	record->status_ms = clock_boot_ms();
	snprintf(record->message, sizeof record->message, "%s", (const char *)arg);
	return 0;
}

bool
sandbox_fail(struct service *service, uint32_t slot, const char *uid, const char *reason)
{
	char words[SANDBOX_MESSAGE_SIZE];
	struct err err;

	snprintf(words, sizeof words, "%s", reason);
	text_utf8_mend(words);
	if (sandbox_table_change(service_sandboxes(service), slot, uid, change_failed, words, &err) != 0)
		return false;
	service_count(service, METRIC_SANDBOXES_FAILED, 1);
	sandbox_post(service, slot);
	return true;
}

void
sandbox_gone_words(const char *rule, char *ret_text, size_t size)
{
	if (rule[0] == '\0' || strcmp(rule, SANDBOX_RULE_DELETE) == 0)
		snprintf(ret_text, size, "sandbox deleted");
	else
		snprintf(ret_text, size, "sandbox deleted: removed by the rule \"%s\"", rule);
}

bool
sandbox_is_busy(const struct service *service, uint32_t slot, const struct sandbox_record *record)
{
	return sandbox_has_terminals(record, clock_boot_ms()) ||
		exec_lock_places(shm_exec_lock(service->shm), slot) > 0;
}
