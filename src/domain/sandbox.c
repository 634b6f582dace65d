/* sandbox.c - looking a sandbox up, and the small changes of its record. */
/* SPDX-License-Identifier: MIT */
#include "domain/sandbox.h"
#include "domain/sandbox_priv.h"
#include "domain/service_priv.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text.h"
#include "ipc/notify.h"

#include <stdio.h>
#include <string.h>

enum { TOUCH_INTERVAL_MS = 1000 };

int
sandbox_lookup(struct service *service, const char *tenant, const char *id, struct sandbox_record *ret_record,
	uint32_t *ret_slot, struct err *err)
{
	if (!sandbox_table_find(service_sandboxes(service), id, ret_record, ret_slot) ||
		strcmp(ret_record->tenant, tenant) != 0 || ret_record->status == SANDBOX_DELETING ||
		ret_record->status == SANDBOX_DOUBTFUL)
		return err_set(err, ERR_NOT_FOUND, "there is no sandbox \"%.64s\"", id);
	return 0;
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

struct sandbox_change {
	const char *labels; /* NULL: unchanged */
	int64_t ttl_ms, idle_timeout_ms; /* negative: unchanged */
	struct sandbox_record *ret_record;
};

static int
change_patch(struct sandbox_record *record, void *arg, struct err *err)
{
	const struct sandbox_change *change = arg;

	if (check_visible(record, err) != 0)
		return -1;
	if (change->labels != NULL && !text_copy(record->labels, sizeof record->labels, change->labels))
		return err_set(err, ERR_INVALID, "labels must be less than %d bytes as JSON", SANDBOX_LABELS_SIZE);
	record->activity_ms = clock_boot_ms();
	if (change->ttl_ms >= 0) {
		record->ttl_ms = change->ttl_ms;
		record->ttl_from_ms = record->activity_ms;
	}
	if (change->idle_timeout_ms >= 0)
		record->idle_timeout_ms = change->idle_timeout_ms;
	*change->ret_record = *record;
	return 0;
}

int
sandbox_patch(struct service *service, const char *tenant, const char *id, struct json_object *labels,
	int64_t ttl_ms, int64_t idle_timeout_ms, struct sandbox_record *ret_record, struct err *err)
{
	struct sandbox_change change = {
		.labels = labels != NULL ? json_text(labels, NULL) : NULL,
		.ttl_ms = ttl_ms,
		.idle_timeout_ms = idle_timeout_ms,
		.ret_record = ret_record,
	};
	struct sandbox_record record;
	uint32_t slot;

	if (sandbox_lookup(service, tenant, id, &record, &slot, err) != 0)
		return -1;
	return sandbox_table_change(service_sandboxes(service), slot, record.uid, change_patch, &change, err);
}

/* --- the end of it, by itself --- */

static int
change_failed(struct sandbox_record *record, void *arg, struct err *err)
{
	if (record->status != SANDBOX_PENDING && record->status != SANDBOX_UNSCHEDULABLE &&
		record->status != SANDBOX_READY && record->status != SANDBOX_PAUSED)
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
	if (sandbox_table_change(service_sandboxes(service), slot, uid, change_failed, words, &err) != 0)
		return false;
	service_count(service, METRIC_SANDBOXES_FAILED, 1);
	sandbox_post(service, slot);
	return true;
}

void
sandbox_gone_words(const char *rule, char *ret_text, size_t size)
{
	if (rule[0] == '\0' || strcmp(rule, "delete") == 0)
		snprintf(ret_text, size, "sandbox deleted");
	else
		snprintf(ret_text, size, "sandbox deleted: removed by the rule \"%s\"", rule);
}
