/* sandbox_spec.c - a create request, checked as a whole before anything is touched. */
/* SPDX-License-Identifier: MIT */
#include "domain/sandbox.h"
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

	if (text != NULL && quantity_parse_memory(text, &spec->memory_bytes) != 0)
		json_reader_fault(reader, "memory", "value_error",
			"\"%.40s\" is no amount of memory above 0; write \"512Mi\", \"2Gi\" or bytes", text);
	if (text == NULL && quantity_parse_memory(config->default_memory, &spec->memory_bytes) != 0)
		json_reader_fault(
			reader, "memory", "value_error", "is needed: the server's default_memory is not valid");
}

static void
spec_read_times(const struct config *config, struct json_reader *reader, struct sandbox_spec *spec)
{
	double timeout = (double)config->default_create_timeout_seconds;
	double ttl = config->sandbox_ttl_hours * 3600, idle = 0;

	json_reader_number(reader, "timeout", 0.001, 86400, &timeout);
	json_reader_number(reader, "ttl_seconds", 0.001, spec_max_seconds, &ttl);
	json_reader_number(reader, "idle_timeout_seconds", 0, spec_max_seconds, &idle);
	spec->create_timeout_s = (int64_t)ceil(timeout);
	spec->ttl_ms = (int64_t)ceil(ttl * 1000);
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
	json_reader_bool(reader, "block_network", &ret_spec->block_network);
	spec_read_cpu(config, reader, ret_spec);
	spec_read_memory(config, reader, ret_spec);
	spec_read_times(config, reader, ret_spec);
	if (json_reader_string(reader, "working_dir", SANDBOX_DIR_SIZE - 1, &ret_spec->working_dir) &&
		ret_spec->working_dir[0] != '/')
		json_reader_fault(reader, "working_dir", "value_error", "must be an absolute path");
	spec_read_labels(reader, ret_spec);
	env_spec_read(reader, "env", SPAWN_ENV_MAX, &ret_spec->env);
}
