/*
 * sandbox_enter.c - from a draft to a record in the table, with which its making begins.
 *
 * Where sandboxes are shared an id is one sandbox over all servers: Redis takes the draft first, and says so when
 * another one has the id. What was taken there and does not come into the table is taken back, for as long as this
 * process lives; after that it is found as a stray.
 */
/* SPDX-License-Identifier: MIT */
#include "domain/resources.h"
#include "domain/sandbox/sandbox_priv.h"
#include "domain/service_priv.h"
#include "backend/driver.h"
#include "backend/record_log.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "cluster/sandbox_share.h"
#include "conf/config.h"
#include "ipc/shm.h"

#include <event2/event.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#define GIB 1073741824.0

enum { LOOK_AGAIN_MS = 20, LOOKS = 50, FINISH_AGAIN_MS = 500 };

/* What Redis was asked to take. */
struct sandbox_entry {
	LIST_ENTRY(sandbox_entry) link;
	struct service *service;
	struct sandbox_record record;
	struct event *timer;
	int looks;
	sandbox_entered_f *done; /* NULL: told, but Redis has still to hear that it is not to be */
	void *arg;
};

/* Counted only when there are sandboxes enough to matter. */
static int
check_network_fits(struct service *service, const struct sandbox_record *wanted, struct err *err)
{
	struct shm_sandboxes *table = service_sandboxes(service);
	struct sandbox_record record;
	uint32_t networks = 0, most = service->host_networks;

	if (wanted->block_network || most == 0 || sandbox_table_count(table) < most)
		return 0;
	for (uint32_t slot = 0; slot < sandbox_table_bound(table); slot++)
		networks += sandbox_table_read(table, slot, &record) && !record.block_network &&
			!sandbox_is_foreign(&record) && record.status != SANDBOX_FAILED;
	if (networks < most)
		return 0;
	return err_set(err, ERR_NO_CAPACITY,
		"all %u places in the network of sandboxes are taken; delete one, or ask for block_network true",
		most);
}

/* What can never fit is told at once, not by a timeout; of a cluster that gets machines as it needs them nobody knows. */
static int
check_fits(struct service *service, const struct sandbox_record *wanted, struct err *err)
{
	if (config_is_kubernetes(service->config))
		return 0;
	if (service->host_memory_bytes == 0)
		service_learn_host(service); /* the driver did not answer so far: for the next one */
	if (service->host_memory_bytes > 0 && wanted->memory_bytes > service->host_memory_bytes)
		return err_set(err, ERR_NO_CAPACITY,
			"%.1f GiB of memory were asked for, this host has %.1f; ask for less",
			(double)wanted->memory_bytes / GIB, (double)service->host_memory_bytes / GIB);
	if (service->host_cpu_milli > 0 && wanted->cpu_milli > service->host_cpu_milli)
		return err_set(err, ERR_NO_CAPACITY, "%.6g cores were asked for, this host has %.6g; ask for less",
			wanted->cpu_milli / 1000.0, (double)service->host_cpu_milli / 1000);
	return check_network_fits(service, wanted, err);
}

/* Of the moment: what other processes enter right now may come on top of it. */
static int
check_turns(struct service *service, struct err *err)
{
	int64_t waiting = scoreboard_sum(shm_scoreboard(service->shm), METRIC_CREATES_WAITING);

	if (waiting < service->config->max_waiting_creates)
		return 0;
	return err_set(err, ERR_BUSY, "%" PRId64 " sandboxes wait to be made (max_waiting_creates); try again soon",
		waiting);
}

/* The id is there already: is it the same create asked again? Then *wanted becomes it. */
static int
create_again(struct sandbox_record *wanted, const struct sandbox_record *there, struct err *err)
{
	if (there->status == SANDBOX_DELETING || there->status == SANDBOX_DOUBTFUL)
		return err_set(
			err, ERR_CONFLICT, "the sandbox \"%s\" is being deleted; try again soon", wanted->id);
	if (strcmp(there->tenant, wanted->tenant) != 0 || strcmp(there->spec_digest, wanted->spec_digest) != 0)
		return err_set(err, ERR_EXISTS,
			"there is a sandbox \"%s\" that was made otherwise; choose another sandbox_id or delete it",
			wanted->id);
	*wanted = *there;
	return 0;
}

/* The default environment is big, so it stands in the record log. */
int
sandbox_env_store(struct service *service, struct json_object *env, struct sandbox_record *record, struct err *err)
{
	double expires_at = clock_steady() + (double)record->create_timeout_s +
		(double)service->config->pending_timeout_buffer_seconds + 3600;
	struct record_key key = record_key_job(record->uid);
	const char *text;
	size_t len;

	if (env == NULL)
		return 0;
	text = json_text(env, &len);
	return record_log_append(
		service->log, RECORD_JOB_SPEC, &key, expires_at, text, len, false, &record->env, err);
}

/*
 * This very life, of which Redis has told before this process could put it into the table: nobody makes it so far, unless the
 * reaper has taken it for one that was lost.
 */
static int
change_entered(struct sandbox_record *record, void *arg, struct err *err)
{
	const struct sandbox_record *entered = arg;

	if (!sandbox_is_foreign(record) || !sandbox_is_being_made(record))
		return err_set(err, ERR_STALE, "it is made already");
	*record = *entered;
	return 0;
}

static int
enter_found(struct service *service, uint32_t slot, struct sandbox_record *record, bool *ret_existing)
{
	struct err err;

	*ret_existing = false;
	if (sandbox_table_change(service_sandboxes(service), slot, record->uid, change_entered, record, &err) == 0)
		sandbox_make_start(service, slot, record);
	return 0;
}

/* *record becomes what is there. */
static int
enter_here(struct service *service, struct sandbox_record *record, bool *ret_existing, struct err *err)
{
	struct sandbox_record there;
	uint32_t slot;

	*ret_existing = true;
	if (sandbox_table_insert(service_sandboxes(service), record, &slot, err) != 0) {
		if (err->code != ERR_EXISTS ||
			!sandbox_table_find(service_sandboxes(service), record->id, &there, &slot))
			return -1;
		if (strcmp(there.uid, record->uid) == 0)
			return enter_found(service, slot, record, ret_existing);
		return create_again(record, &there, err);
	}
	service_count(service, METRIC_SANDBOXES_CREATED, 1);
	*ret_existing = false;
	sandbox_make_start(service, slot, record);
	return 0;
}

/* --- shared --- */

static void
entry_free(struct sandbox_entry *entry)
{
	LIST_REMOVE(entry, link);
	event_free(entry->timer);
	free(entry);
}

static void
entry_tell(struct sandbox_entry *entry, bool existing, const struct err *why)
{
	sandbox_entered_f *done = entry->done;

	entry->done = NULL;
	if (done != NULL)
		done(why == NULL ? &entry->record : NULL, existing, why, entry->arg);
}

static void
entry_end(struct sandbox_entry *entry, bool existing, const struct err *why)
{
	entry_tell(entry, existing, why);
	entry_free(entry);
}

void
sandbox_enter_end_all(struct service *service)
{
	struct sandbox_entry *entry;
	struct err err;

	err_set(&err, ERR_UNAVAILABLE, "this server process stops; ask again");
	while ((entry = LIST_FIRST(&service->entries)) != NULL) {
		sandbox_share_forget(service->sandboxes, entry);
		entry_end(entry, false, &err);
	}
}

static void
entry_on_finished(void *arg, const struct share_answer *answer, const struct err *why)
{
	struct sandbox_entry *entry = arg;

	(void)answer;
	if (why == NULL)
		entry_free(entry);
	else
		service_timer_set(entry->timer, FINISH_AGAIN_MS);
}

/* Until Redis says that it has nothing of it. */
static void
entry_finish(struct sandbox_entry *entry)
{
	struct err err;

	if (sandbox_share_finish(entry->service->sandboxes, &entry->record,
		    (struct share_to){ .fn = entry_on_finished, .arg = entry }, &err) != 0)
		service_timer_set(entry->timer, FINISH_AGAIN_MS);
}

/* It stands in Redis, or may, and does not come to be: whoever asked is told now. */
static void
entry_take_back(struct sandbox_entry *entry, const struct err *why)
{
	entry_tell(entry, false, why);
	entry_finish(entry);
}

static void
entry_done(struct sandbox_entry *entry, uint64_t version)
{
	struct sandbox_record record = entry->record;
	bool existing;
	struct err err;

	record.version = version;
	if (enter_here(entry->service, &record, &existing, &err) != 0) {
		entry_take_back(entry, &err);
		return;
	}
	if (!existing) {
		entry->record = record;
		entry_end(entry, false, NULL);
		return;
	}
	/* Another life has the id in the table, which Redis had lost. */
	entry->done(&record, true, NULL, entry->arg);
	entry->done = NULL;
	entry_finish(entry);
}

/* Another one has the id. One that another process of this server has just entered comes into the table any moment. */
static void
entry_look(struct sandbox_entry *entry, bool soon)
{
	struct sandbox_record there;
	struct err err;

	if (sandbox_table_find(service_sandboxes(entry->service), entry->record.id, &there, NULL)) {
		if (create_again(&entry->record, &there, &err) == 0)
			entry_end(entry, true, NULL);
		else
			entry_end(entry, false, &err);
	} else if (soon && entry->looks++ < LOOKS) {
		service_timer_set(entry->timer, LOOK_AGAIN_MS);
	} else {
		err_set(&err, ERR_CONFLICT, "the sandbox \"%s\" is being made or deleted; try again soon",
			entry->record.id);
		entry_end(entry, false, &err);
	}
}

static void
entry_on_time(evutil_socket_t fd, short what, void *arg)
{
	struct sandbox_entry *entry = arg;

	(void)fd;
	(void)what;
	if (entry->done != NULL)
		entry_look(entry, true);
	else
		entry_finish(entry);
}

static void
entry_on_answer(void *arg, const struct share_answer *answer, const struct err *why)
{
	struct sandbox_entry *entry = arg;
	struct err err;

	if (why != NULL) {
		entry_take_back(entry, why);
	} else if (answer->result == SHARE_DONE) {
		entry_done(entry, (uint64_t)answer->version);
	} else if (answer->result == SHARE_STRANGE) {
		err_set(&err, ERR_EXISTS,
			"there is a sandbox \"%s\", made by a server of another version; choose another sandbox_id",
			entry->record.id);
		entry_end(entry, false, &err);
	} else {
		entry_look(entry, answer->result == SHARE_STRAY);
	}
}

static void
enter_shared(struct service *service, struct json_object *env, const struct sandbox_record *record,
	sandbox_entered_f *done, void *arg)
{
	/* For whoever goes on when this server is gone. */
	const char *text = config_is_kubernetes(service->config) && env != NULL ? json_text(env, NULL) : NULL;
	struct sandbox_entry *entry = alloc_zero(1, sizeof *entry);
	struct err err;

	entry->service = service;
	entry->record = *record;
	entry->done = done;
	entry->arg = arg;
	entry->timer = service_timer(service, entry_on_time, entry);
	LIST_INSERT_HEAD(&service->entries, entry, link);
	if (sandbox_share_create(service->sandboxes, &entry->record, text,
		    (struct share_to){ .fn = entry_on_answer, .arg = entry }, &err) != 0)
		entry_end(entry, false, &err);
}

/* --- both --- */

static int
enter_check(struct service *service, struct json_object *env, struct sandbox_record *record, bool *ret_existing,
	struct err *err)
{
	struct sandbox_record there;
	char image[SANDBOX_IMAGE_SIZE];

	*ret_existing = sandbox_table_find(service_sandboxes(service), record->id, &there, NULL);
	if (*ret_existing)
		return create_again(record, &there, err);
	if (driver_image_resolve(service->config, record->image, image, sizeof image, err) != 0 ||
		check_fits(service, record, err) != 0 || check_turns(service, err) != 0)
		return -1;
	return sandbox_env_store(service, env, record, err);
}

void
sandbox_enter(struct service *service, struct json_object *env, const struct sandbox_record *draft,
	sandbox_entered_f *done, void *arg)
{
	struct sandbox_record record = *draft;
	bool existing;
	struct err err;
	int rc = enter_check(service, env, &record, &existing, &err);

	if (rc == 0 && !existing && service->sandboxes != NULL) {
		enter_shared(service, env, &record, done, arg);
		return;
	}
	if (rc == 0 && !existing)
		rc = enter_here(service, &record, &existing, &err);
	if (rc == 0)
		done(&record, existing, NULL, arg);
	else
		done(NULL, false, &err, arg);
}
