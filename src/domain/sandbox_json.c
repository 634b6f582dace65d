/* sandbox_json.c - a sandbox record in the shapes of the REST API. */
/* SPDX-License-Identifier: MIT */
#include "domain/sandbox.h"
#include "base/quantity.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

static void
add_string(struct json_object *object, const char *name, const char *text)
{
	json_object_object_add(object, name, json_object_new_string(text));
}

/* What both shapes have. */
static struct json_object *
sandbox_json_common(const struct sandbox_record *record)
{
	struct json_object *object = json_object_new_object();
	char text[QUANTITY_TEXT_SIZE];

	add_string(object, "sandbox_id", record->id);
	add_string(object, "namespace", "local");
	add_string(object, "image", record->image);
	json_object_object_add(object, "block_network", json_object_new_boolean(record->block_network));
	quantity_cpu_text(record->cpu_milli, text);
	add_string(object, "cpu", text);
	quantity_memory_text(record->memory_bytes, text);
	add_string(object, "memory", text);
	add_string(object, "status", sandbox_status_name((enum sandbox_status)record->status));
	return object;
}

/* A moment of the boot clock as people read it: counted from the creation, so that it reads the same each time. */
static double
wall_of_boot(const struct sandbox_record *record, int64_t boot_ms)
{
	return record->created_at + (double)(boot_ms - record->created_ms) / 1000;
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

struct json_object *
sandbox_json(const struct sandbox_record *record)
{
	struct json_object *object = sandbox_json_common(record);
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
	json_object_object_add(object, "ttl_seconds", json_object_new_double((double)record->ttl_ms / 1000));
	json_object_object_add(
		object, "idle_timeout_seconds", json_object_new_double((double)record->idle_timeout_ms / 1000));
	json_object_object_add(object, "expires_at",
		json_object_new_double(wall_of_boot(record, record->ttl_from_ms + record->ttl_ms)));
	json_object_object_add(object, "last_heartbeat",
		record->heartbeat_ms > 0 ? json_object_new_double(wall_of_boot(record, record->heartbeat_ms))
					 : NULL);
	return object;
}

struct json_object *
sandbox_created_json(const struct sandbox_record *record)
{
	struct json_object *object = sandbox_json_common(record);

	json_object_object_add(object, "timeout", json_object_new_int64(record->create_timeout_s));
	json_object_object_add(object, "created_at", json_object_new_double(record->created_at));
	json_object_object_add(object, "labels", sandbox_labels(record));
	return object;
}
