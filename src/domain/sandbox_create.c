/*
 * sandbox_create.c - from a request to a record, and who makes what it describes.
 *
 * The record comes first, with everything that making it needs, so that another
 * process can go on when this one dies (sandbox_resume). sandbox_make.c does the
 * making.
 */
/* SPDX-License-Identifier: MIT */
#include "domain/sandbox.h"
#include "domain/resources.h"
#include "domain/sandbox_priv.h"
#include "domain/service_priv.h"
#include "backend/driver.h"
#include "backend/record_log.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"
#include "base/json.h"
#include "base/text.h"
#include "conf/config.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A string map with its names in order, so that equal maps are equal text. */
struct map_entry {
	const char *name;
	struct json_object *value;
};

static int
map_entry_compare(const void *a, const void *b)
{
	return strcmp(((const struct map_entry *)a)->name, ((const struct map_entry *)b)->name);
}

static struct json_object *
map_sorted(struct json_object *map)
{
	size_t n = map != NULL ? (size_t)json_object_object_length(map) : 0, i = 0;
	AUTO_FREE struct map_entry *entries = alloc_zero(1, (n + 1) * sizeof *entries);
	struct json_object *sorted = json_object_new_object();

	if (n > 0) {
		json_object_object_foreach(map, name, value) entries[i++] = (struct map_entry){ name, value };
	}
	qsort(entries, n, sizeof *entries, map_entry_compare);
	for (i = 0; i < n; i++)
		json_object_object_add(sorted, entries[i].name, json_object_get(entries[i].value));
	return sorted;
}

/* "The same create again?" is answered by this digest of everything that was asked. */
static void
spec_digest(const struct sandbox_spec *spec, char ret_hex[TEXT_SHA256_HEX_SIZE])
{
	AUTO_JSON struct json_object *object = json_object_new_object();
	const char *text;
	size_t len;

	json_object_object_add(object, "image", json_object_new_string(spec->image));
	json_object_object_add(object, "block_network", json_object_new_boolean(spec->block_network));
	json_object_object_add(object, "cpu_milli", json_object_new_int(spec->cpu_milli));
	json_object_object_add(object, "memory_bytes", json_object_new_int64(spec->memory_bytes));
	json_object_object_add(object, "timeout_s", json_object_new_int64(spec->create_timeout_s));
	json_object_object_add(object, "ttl_ms", json_object_new_int64(spec->ttl_ms));
	json_object_object_add(object, "idle_ms", json_object_new_int64(spec->idle_timeout_ms));
	if (spec->working_dir != NULL)
		json_object_object_add(object, "working_dir", json_object_new_string(spec->working_dir));
	json_object_object_add(object, "labels", map_sorted(spec->labels));
	json_object_object_add(object, "env", map_sorted(spec->env));
	text = json_text(object, &len);
	text_sha256_hex(text, len, ret_hex);
}

static int
record_fill(struct service *service, const char *tenant, const struct sandbox_spec *spec,
	struct sandbox_record *record, struct err *err)
{
	const char *labels = spec->labels != NULL ? json_text(spec->labels, NULL) : "";
	const char *dir = spec->working_dir != NULL ? spec->working_dir : "";

	*record = (struct sandbox_record){
		.status = SANDBOX_PENDING,
		.block_network = spec->block_network,
		.cpu_milli = spec->cpu_milli,
		.memory_bytes = spec->memory_bytes,
		.create_timeout_s = spec->create_timeout_s,
		.ttl_ms = spec->ttl_ms,
		.idle_timeout_ms = spec->idle_timeout_ms,
		.created_at = clock_wall(),
		.created_ms = clock_boot_ms(),
		.owner = service->self,
	};
	record->ttl_from_ms = record->activity_ms = record->status_ms = record->created_ms;
	if (spec->id == NULL)
		id_sandbox(record->id);
	else if (!text_copy(record->id, sizeof record->id, spec->id))
		return err_set(err, ERR_INVALID, "the sandbox id is too long");
	if (!text_copy(record->tenant, sizeof record->tenant, tenant) ||
		!text_copy(record->image, sizeof record->image, spec->image) ||
		!text_copy(record->labels, sizeof record->labels, labels) ||
		!text_copy(record->working_dir, sizeof record->working_dir, dir))
		return err_set(err, ERR_INVALID, "image, labels or working_dir is too long");
	id_uuid4(record->uid);
	id_token(record->agent_token);
	spec_digest(spec, record->spec_digest);
	return 0;
}

/* What can never fit is told at once, not by a timeout. */
static int
check_fits(struct service *service, const struct sandbox_spec *spec, struct err *err)
{
	if (service->host_memory_bytes == 0)
		service_learn_host(service); /* the driver did not answer so far: for the next one */
	if (service->host_memory_bytes > 0 && spec->memory_bytes > service->host_memory_bytes)
		return err_set(err, ERR_NO_CAPACITY,
			"%" PRId64 " bytes of memory were asked for, this host has %" PRId64 "; ask for less",
			spec->memory_bytes, service->host_memory_bytes);
	if (service->host_cpu_milli > 0 && spec->cpu_milli > service->host_cpu_milli)
		return err_set(err, ERR_NO_CAPACITY,
			"%" PRId32 " thousandths of a core were asked for, this host has %" PRId64 "; ask for less",
			spec->cpu_milli, service->host_cpu_milli);
	return 0;
}

/* The id is there already: is it the same create asked again? */
static int
create_again(const struct sandbox_record *there, const struct sandbox_record *wanted,
	struct sandbox_record *ret_record, struct err *err)
{
	if (there->status == SANDBOX_DELETING || there->status == SANDBOX_DOUBTFUL)
		return err_set(
			err, ERR_CONFLICT, "the sandbox \"%s\" is being deleted; try again soon", wanted->id);
	if (strcmp(there->tenant, wanted->tenant) != 0 || strcmp(there->spec_digest, wanted->spec_digest) != 0)
		return err_set(err, ERR_EXISTS,
			"there is a sandbox \"%s\" that was made otherwise; choose another sandbox_id or delete it",
			wanted->id);
	*ret_record = *there;
	return 0;
}

/* The default environment is big, so it stands in the record log. */
static int
env_store(struct service *service, struct json_object *env, struct sandbox_record *record, struct err *err)
{
	double expires_at = clock_wall() + (double)record->create_timeout_s +
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

int
sandbox_create(struct service *service, const char *tenant, const struct sandbox_spec *spec,
	struct sandbox_record *ret_record, bool *ret_existing, struct err *err)
{
	struct sandbox_record record, there;
	char image[SANDBOX_IMAGE_SIZE];
	uint32_t slot;

	if (record_fill(service, tenant, spec, &record, err) != 0)
		return -1;
	if (sandbox_table_find(service_sandboxes(service), record.id, &there, NULL)) {
		*ret_existing = true;
		return create_again(&there, &record, ret_record, err);
	}
	if (driver_image_resolve(service->config, spec->image, image, sizeof image, err) != 0 ||
		check_fits(service, spec, err) != 0 || env_store(service, spec->env, &record, err) != 0)
		return -1;
	if (sandbox_table_insert(service_sandboxes(service), &record, &slot, err) != 0) {
		if (err->code != ERR_EXISTS ||
			!sandbox_table_find(service_sandboxes(service), record.id, &there, NULL))
			return -1;
		*ret_existing = true;
		return create_again(&there, &record, ret_record, err);
	}
	service_count(service, METRIC_SANDBOXES_CREATED, 1);
	*ret_record = record;
	*ret_existing = false;
	sandbox_make_start(service, slot, &record);
	return 0;
}

/* --- taking over --- */

struct claim {
	struct service *service;
	struct proc_ref dead;
	struct sandbox_record record;
};

static int
change_owner(struct sandbox_record *record, void *arg, struct err *err)
{
	struct claim *claim = arg;

	if (record->owner.slot != claim->dead.slot || record->owner.generation != claim->dead.generation)
		return err_set(err, ERR_CONFLICT, "somebody else took it over");
	record->owner = claim->service->self;
	claim->record = *record;
	return 0;
}

void
sandbox_resume(struct service *service, uint32_t slot)
{
	struct claim claim = { .service = service };
	struct err err;

	if (!sandbox_table_read(service_sandboxes(service), slot, &claim.record))
		return;
	claim.dead = claim.record.owner;
	if (sandbox_table_change(service_sandboxes(service), slot, claim.record.uid, change_owner, &claim, &err) !=
		0)
		return;
	if (claim.record.status == SANDBOX_PENDING)
		sandbox_make_start(service, slot, &claim.record);
	else if (claim.record.status == SANDBOX_DELETING)
		sandbox_removal_start(service, slot, &claim.record);
}
