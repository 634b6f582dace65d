/* sandbox_json.c - a sandbox record in the shapes of the REST API. */
/* SPDX-License-Identifier: MIT */
#include "domain/sandbox/sandbox.h"
#include "domain/sandbox/egress_spec.h"
#include "domain/sandbox/expiry.h"
#include "domain/service_priv.h"
#include "base/quantity.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"

#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void
add_string(struct json_object *object, const char *name, const char *text)
{
	json_object_object_add(object, name, json_object_new_string(text));
}

/* What both shapes have. */
static struct json_object *
sandbox_json_common(const struct service *service, const struct sandbox_record *record)
{
	struct json_object *object = json_object_new_object();
	char text[QUANTITY_TEXT_SIZE];

	add_string(object, "sandbox_id", record->id);
	add_string(object, "namespace", service_namespace(service));
	add_string(object, "image", record->image);
	json_object_object_add(object, "block_network", json_object_new_boolean(record->block_network));
	json_object_object_add(object, "egress", egress_json(&record->egress));
	quantity_cpu_text(record->cpu_milli, text);
	add_string(object, "cpu", text);
	quantity_memory_text(record->memory_bytes, text);
	add_string(object, "memory", text);
	quantity_memory_text(record->disk_bytes, text);
	json_object_object_add(object, "disk", record->disk_bytes > 0 ? json_object_new_string(text) : NULL);
	add_string(object, "status", sandbox_status_name((enum sandbox_status)record->status));
	return object;
}

/*
 * A moment of the boot clock as people read it. Counted from the creation, so that it reads the same each time, and
 * from now when somebody has set the wall clock since.
 */
static double
wall_of_boot(const struct sandbox_record *record, int64_t boot_ms)
{
	double since = (double)(clock_boot_ms() - record->created_ms) / 1000;
	double set_by = rint(clock_wall() - record->created_at - since);

	return record->created_at + set_by + (double)(boot_ms - record->created_ms) / 1000;
}

static struct json_object *
sandbox_labels(const struct sandbox_record *record)
{
	struct json_object *labels = NULL;
	struct err err;

	if (record->labels[0] != '\0')
		labels = json_parse(record->labels, strlen(record->labels), &err);
	return labels != NULL ? labels : json_object_new_object();
}

static bool
is_busy(const struct service *service, const struct sandbox_record *record)
{
	struct sandbox_record there;
	uint32_t slot;

	return sandbox_table_find(service_sandboxes(service), record->id, &there, &slot) &&
		sandbox_is_busy(service, slot, record);
}

/* How long it may live, and what ends it if nothing happens till then. */
static void
add_life(const struct service *service, const struct sandbox_record *record, struct json_object *object)
{
	struct expiry_limits limits = service_expiry_limits(service);
	struct expiry expiry = expiry_of(record, &limits, is_busy(service, record));
	double ttl = (double)expiry_ttl_ms(record, &limits) / 1000;
	double idle = (double)expiry_idle_ms(record, &limits) / 1000;
	bool ends = expiry.rule != EXPIRY_NEVER && expiry.rule != EXPIRY_DOUBTFUL;

	json_object_object_add(object, "ttl_seconds", json_object_new_double(ttl));
	json_object_object_add(object, "idle_timeout_seconds", json_object_new_double(idle));
	json_object_object_add(
		object, "expires_at", ends ? json_object_new_double(wall_of_boot(record, expiry.at_ms)) : NULL);
	json_object_object_add(
		object, "expires_by", ends ? json_object_new_string(expiry_rule_name(expiry.rule)) : NULL);
	json_object_object_add(object, "last_heartbeat",
		record->heartbeat_ms > 0 ? json_object_new_double(wall_of_boot(record, record->heartbeat_ms))
					 : NULL);
}

struct json_object *
sandbox_json(const struct service *service, const struct sandbox_record *record)
{
	struct json_object *object = sandbox_json_common(service, record);
	char pod_name[sizeof "sandbox-" + SANDBOX_ID_SIZE];

	snprintf(pod_name, sizeof pod_name, "sandbox-%s", record->id);
	add_string(object, "pod_name", pod_name);
	json_object_object_add(object, "created_at", json_object_new_double(record->created_at));
	json_object_object_add(
		object, "ready", json_object_new_boolean(record->status == SANDBOX_READY && record->ready));
	json_object_object_add(object, "status_message",
		record->message[0] != '\0' ? json_object_new_string(record->message) : NULL);
	json_object_object_add(object, "labels", sandbox_labels(record));
	json_object_object_add(object, "timeout", json_object_new_int64(record->create_timeout_s));
	add_life(service, record, object);
	return object;
}

struct json_object *
sandbox_created_json(const struct service *service, const struct sandbox_record *record)
{
	struct json_object *object = sandbox_json_common(service, record);

	json_object_object_add(object, "timeout", json_object_new_int64(record->create_timeout_s));
	json_object_object_add(object, "created_at", json_object_new_double(record->created_at));
	json_object_object_add(object, "labels", sandbox_labels(record));
	return object;
}
