/* sandbox_spec.c - a create request, checked as a whole before anything is touched. */
/* SPDX-License-Identifier: MIT */
#include "domain/sandbox/sandbox.h"
#include "domain/sandbox/egress_spec.h"
#include "domain/env_spec.h"
#include "base/quantity.h"
#include "base/id.h"
#include "base/json.h"
#include "conf/config.h"
#include "ipc/spawn_msg.h"

#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const double spec_max_seconds = 87600.0 * 3600;

/* A quantity as text or as a number; text is NULL when the field is absent or of another type. */
static const char *
spec_quantity_text(struct json_reader *reader, const char *field, char *buf, size_t size)
{
	struct json_object *value = NULL;

	if (!json_reader_has(reader, field))
		return NULL;
	json_object_object_get_ex(reader->body, field, &value);
	switch (json_object_get_type(value)) {
	case json_type_string:
		if (strlen(json_object_get_string(value)) != (size_t)json_object_get_string_len(value))
			return "\xff";
		return json_object_get_string(value);
	case json_type_int:
		return json_object_get_string(value);
	case json_type_double:
		snprintf(buf, size, "%.15g", json_object_get_double(value));
		return buf;
	default:
		json_reader_fault(reader, field, "type_error", "must be a string or a number");
		return NULL;
	}
}

static void
spec_read_cpu(const struct config *config, struct json_reader *reader, struct sandbox_spec *spec)
{
	char buf[32];
	const char *text = spec_quantity_text(reader, "cpu", buf, sizeof buf);

	if (text != NULL && quantity_parse_cpu(text, &spec->cpu_milli) != 0)
		json_reader_fault(reader, "cpu", "value_error",
			"\"%.40s\" is no amount of cores above 0; write \"2\", \"500m\" or 0.5", text);
	if (text == NULL && quantity_parse_cpu(config->default_cpu, &spec->cpu_milli) != 0)
		json_reader_fault(reader, "cpu", "value_error", "is needed: the server's default_cpu is not valid");
}

static void
spec_read_memory(const struct config *config, struct json_reader *reader, struct sandbox_spec *spec)
{
	char buf[32];
	const char *text = spec_quantity_text(reader, "memory", buf, sizeof buf);

	if (text != NULL &&
		(quantity_parse_memory(text, &spec->memory_bytes) != 0 || spec->memory_bytes < SPAWN_MEMORY_MIN))
		json_reader_fault(reader, "memory", "value_error",
			"\"%.40s\" is no amount of memory from 8Mi up; write \"512Mi\", \"2Gi\" or bytes", text);
	if (text == NULL && quantity_parse_memory(config->default_memory, &spec->memory_bytes) != 0)
		json_reader_fault(
			reader, "memory", "value_error", "is needed: the server's default_memory is not valid");
}

/* "0": no limit, which is more than any. */
static void
spec_read_disk(const struct config *config, struct json_reader *reader, struct sandbox_spec *spec)
{
	char buf[32], most[QUANTITY_TEXT_SIZE];
	const char *text = spec_quantity_text(reader, "disk", buf, sizeof buf);

	spec->disk_bytes = config->sandbox_disk;
	if (text == NULL)
		return;
	if (strcmp(text, "0") == 0)
		spec->disk_bytes = 0;
	else if (quantity_parse_memory(text, &spec->disk_bytes) != 0 || spec->disk_bytes < SPAWN_DISK_MIN)
		json_reader_fault(reader, "disk", "value_error",
			"\"%.40s\" is no amount of disk from 1Mi up; write \"512Mi\", \"2Gi\" or bytes, or 0: no "
			"limit",
			text);
	if (config->max_sandbox_disk == 0 ||
		(spec->disk_bytes != 0 && spec->disk_bytes <= config->max_sandbox_disk))
		return;
	quantity_memory_text(config->max_sandbox_disk, most);
	json_reader_fault(reader, "disk", "value_error", "must be at most %s (max_sandbox_disk)", most);
}

static void
spec_read_times(const struct config *config, struct json_reader *reader, struct sandbox_spec *spec)
{
	double timeout = (double)config->default_create_timeout_seconds;
	double ttl, idle;

	json_reader_number(reader, "timeout", 0.001, 86400, &timeout);
	spec->create_timeout_s = (int64_t)ceil(timeout);
	spec->ttl_ms = spec->idle_timeout_ms = SANDBOX_TIME_DEFAULT;
	if (json_reader_number(reader, "ttl_seconds", 0.001, spec_max_seconds, &ttl))
		spec->ttl_ms = (int64_t)ceil(ttl * 1000);
	if (json_reader_number(reader, "idle_timeout_seconds", 0, spec_max_seconds, &idle))
		spec->idle_timeout_ms = (int64_t)ceil(idle * 1000);
}

static void
spec_read_labels(struct json_reader *reader, struct sandbox_spec *spec)
{
	struct json_object *labels = NULL;
	size_t len;

	if (!json_reader_string_map(reader, "labels", &labels) || json_object_object_length(labels) == 0)
		return;
	json_text(labels, &len);
	if (len >= SANDBOX_LABELS_SIZE)
		json_reader_fault(
			reader, "labels", "value_error", "must be less than %d bytes as JSON", SANDBOX_LABELS_SIZE);
	else
		spec->labels = labels;
}

/* Naming destinations asks for a network. */
static void
spec_read_network(const struct config *config, struct json_reader *reader, struct sandbox_spec *spec)
{
	bool said = json_reader_bool(reader, "block_network", &spec->block_network);

	egress_spec_read(reader, "egress", config_is_kubernetes(config), &spec->egress);
	if (!spec->egress.limited)
		return;
	if (said && spec->block_network)
		json_reader_fault(reader, "egress", "value_error",
			"names destinations, and block_network true forbids all: leave one of them out");
	spec->block_network = false;
}

void
sandbox_spec_read(const struct config *config, struct json_reader *reader, struct sandbox_spec *ret_spec)
{
	*ret_spec = (struct sandbox_spec){ .block_network = config->block_network_default };
	if (json_reader_require(reader, "image") &&
		json_reader_string(reader, "image", SANDBOX_IMAGE_SIZE - 1, &ret_spec->image) &&
		ret_spec->image[0] == '\0')
		json_reader_fault(reader, "image", "value_error", "must not be empty");
	if (json_reader_string(reader, "sandbox_id", 4096, &ret_spec->id) && !id_is_sandbox_id(ret_spec->id))
		json_reader_fault(reader, "sandbox_id", "value_error",
			"must be 1 to 54 characters of a-z, 0-9 and '-', with no '-' first or last");
	spec_read_network(config, reader, ret_spec);
	spec_read_cpu(config, reader, ret_spec);
	spec_read_memory(config, reader, ret_spec);
	spec_read_disk(config, reader, ret_spec);
	spec_read_times(config, reader, ret_spec);
	if (json_reader_string(reader, "working_dir", SANDBOX_DIR_SIZE - 1, &ret_spec->working_dir) &&
		ret_spec->working_dir[0] != '/')
		json_reader_fault(reader, "working_dir", "value_error", "must be an absolute path");
	spec_read_labels(reader, ret_spec);
	env_spec_read(reader, "env", SPAWN_ENV_MAX, &ret_spec->env);
}
