/*
 * sandbox_create.c - from a request to a record, and who makes what it describes.
 *
 * The record comes first, with everything that making it needs, so that another
 * process can go on when this one dies (sandbox_resume). sandbox_enter.c enters it,
 * sandbox_make.c does the making.
 */
/* SPDX-License-Identifier: MIT */
#include "domain/sandbox/sandbox.h"
#include "domain/sandbox/egress_spec.h"
#include "domain/sandbox/sandbox_priv.h"
#include "domain/service_priv.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"
#include "base/json.h"
#include "base/text.h"
#include "conf/config.h"

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
	json_object_object_add(object, "disk_bytes", json_object_new_int64(spec->disk_bytes));
	json_object_object_add(object, "timeout_s", json_object_new_int64(spec->create_timeout_s));
	json_object_object_add(object, "ttl_ms", json_object_new_int64(spec->ttl_ms));
	json_object_object_add(object, "idle_ms", json_object_new_int64(spec->idle_timeout_ms));
	if (spec->egress.limited)
		json_object_object_add(object, "egress", egress_json(&spec->egress));
	if (spec->working_dir != NULL)
		json_object_object_add(object, "working_dir", json_object_new_string(spec->working_dir));
	json_object_object_add(object, "labels", map_sorted(spec->labels));
	json_object_object_add(object, "env", map_sorted(spec->env));
	text = json_text(object, &len);
	text_sha256_hex(text, len, ret_hex);
}

/* Derived, so that whoever has the secret can reach the agent; one that nobody else is to reach gets a random one. */
static void
make_token(const struct config *config, struct sandbox_record *record)
{
	const char *secret = config->agent_secret;

	if (config_is_kubernetes(config) && secret != NULL && secret[0] != '\0')
		text_hmac_sha256_hex(secret, strlen(secret), record->uid, strlen(record->uid), record->agent_token);
	else
		id_token(record->agent_token);
}

int
sandbox_draft(struct service *service, const char *tenant, const struct sandbox_spec *spec,
	struct sandbox_record *record, struct err *err)
{
	const char *labels = spec->labels != NULL ? json_text(spec->labels, NULL) : "";
	const char *dir = spec->working_dir != NULL ? spec->working_dir : "";

	*record = (struct sandbox_record){
		.status = SANDBOX_PENDING,
		.block_network = spec->block_network,
		.egress = spec->egress,
		.cpu_milli = spec->cpu_milli,
		.memory_bytes = spec->memory_bytes,
		.disk_bytes = spec->disk_bytes,
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
	make_token(service->config, record);
	spec_digest(spec, record->spec_digest);
	return 0;
}

void
sandbox_create(struct service *service, const char *tenant, const struct sandbox_spec *spec,
	sandbox_entered_f *done, void *arg)
{
	struct sandbox_record record;
	struct err err;

	if (sandbox_draft(service, tenant, spec, &record, &err) != 0)
		done(NULL, false, &err, arg);
	else
		sandbox_enter(service, spec->env, &record, done, arg);
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
	if (sandbox_is_being_made(&claim.record))
		sandbox_make_start(service, slot, &claim.record);
	else if (claim.record.status == SANDBOX_DELETING)
		sandbox_removal_start(service, slot, &claim.record);
}
