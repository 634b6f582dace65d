/* job_json.c - a job in the shape of the REST API, live or ended, and how it is sealed in the store. */
/* SPDX-License-Identifier: MIT */
#include "domain/job_priv.h"
#include "domain/service_priv.h"
#include "base/clock.h"
#include "base/text.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEAL_TENANT "_tenant"
#define SEAL_PREV   "_prev"

static void
add_string(struct json_object *object, const char *name, const char *text)
{
	json_object_object_add(object, name, text != NULL ? json_object_new_string(text) : NULL);
}

static void
add_time(struct json_object *object, const char *name, double time)
{
	json_object_object_add(object, name, time > 0 ? json_object_new_double(time) : NULL);
}

/* The member of the agent's job, or null. */
static void
add_copy(struct json_object *object, const char *name, struct json_object *from)
{
	struct json_object *value = NULL;

	json_object_object_get_ex(from, name, &value);
	json_object_object_add(object, name, json_object_get(value));
}

/* Everything that is there in every state, in the order people read it. */
static struct json_object *
job_new(const struct job_record *record, struct json_object *command, const char *status)
{
	struct json_object *job = json_object_new_object();

	add_string(job, "job_id", record->id);
	add_string(job, "sandbox_id", record->sandbox_id);
	json_object_object_add(job, "command", json_object_get(command));
	add_string(job, "status", status);
	add_string(job, "stdout", "");
	add_string(job, "stderr", "");
	json_object_object_add(job, "exit_code", NULL);
	add_time(job, "created_at", record->created_at);
	add_time(job, "started_at", record->started_at);
	json_object_object_add(job, "completed_at", NULL);
	json_object_object_add(job, "error", NULL);
	json_object_object_add(job, "verdict", NULL);
	add_string(job, "lane", record->lane);
	json_object_object_add(job, "attempt", json_object_new_int64(record->attempt));
	json_object_object_add(job, "fence", json_object_new_int64((int64_t)record->fence));
	return job;
}

struct json_object *
job_live_json(const struct job_record *record, struct json_object *command, uint32_t queue_position)
{
	bool queued = record->state == JOB_QUEUED;
	struct json_object *job = job_new(record, command, queued ? "queued" : "running");

	if (queued && queue_position != UINT32_MAX)
		json_object_object_add(job, "queue_position", json_object_new_int64(queue_position));
	return job;
}

/* One output stream: encoded as it came, or as text that is always valid. */
static void
add_output(struct json_object *job, const char *name, struct json_object *agent_job, bool base64)
{
	AUTO_FREE uint8_t *data = NULL;
	AUTO_FREE char *text = NULL;
	struct json_object *value;
	char from[16];
	size_t len;

	snprintf(from, sizeof from, "%s_base64", name);
	if (!json_object_object_get_ex(agent_job, from, &value) || !json_object_is_type(value, json_type_string))
		return;
	if (base64) {
		json_object_object_add(job, name, json_object_get(value));
		return;
	}
	if (text_base64_decode(
		    json_object_get_string(value), (size_t)json_object_get_string_len(value), &data, &len) != 0 ||
		text_utf8_repair(data, len, &text, &len) != 0)
		return;
	json_object_object_add(job, name, json_object_new_string_len(text, (int)len));
}

/* The agent's words, except where the contract fixes them. */
static void
add_error(struct json_object *job, const struct job_record *record, const char *verdict,
	struct json_object *agent_job)
{
	char text[64];

	if (strcmp(verdict, "timed_out") != 0) {
		add_copy(job, "error", agent_job);
		return;
	}
	snprintf(text, sizeof text, "Command timed out after %.10gs", (double)record->timeout_ms / 1000);
	add_string(job, "error", text);
}

static void
add_encoding(struct json_object *job, bool base64)
{
	add_string(job, "encoding", base64 ? "base64" : "utf8");
}

struct json_object *
job_agent_json(
	const struct job_record *record, struct json_object *command, struct json_object *agent_job, bool base64)
{
	static const char *const copied[] = { "exit_code", "verdict", "signal", "stdout_bytes", "stderr_bytes",
		"stdout_truncated", "stderr_truncated", "usage" };
	struct json_object *value = NULL, *job;
	const char *verdict = "exited";
	bool succeeded;

	if (json_object_object_get_ex(agent_job, "verdict", &value) && value != NULL)
		verdict = json_object_get_string(value);
	succeeded = strcmp(verdict, "exited") == 0 && json_object_object_get_ex(agent_job, "exit_code", &value) &&
		json_object_is_type(value, json_type_int) && json_object_get_int64(value) == 0;
	job = job_new(record, command, succeeded ? "succeeded" : "failed");
	for (size_t i = 0; i < sizeof copied / sizeof *copied; i++)
		add_copy(job, copied[i], agent_job);
	add_output(job, "stdout", agent_job, base64);
	add_output(job, "stderr", agent_job, base64);
	add_error(job, record, verdict, agent_job);
	add_encoding(job, base64);
	if (json_object_object_get_ex(agent_job, "started_at", &value) && json_object_get_double(value) > 0)
		json_object_object_add(job, "started_at", json_object_get(value));
	if (json_object_object_get_ex(agent_job, "ended_at", &value) && json_object_get_double(value) > 0)
		json_object_object_add(job, "completed_at", json_object_get(value));
	else
		add_time(job, "completed_at", clock_wall());
	return job;
}

struct json_object *
job_words_json(const struct job_record *record, struct json_object *command, const char *verdict, const char *error,
	bool base64)
{
	struct json_object *job = job_new(record, command, "failed");

	add_string(job, "verdict", verdict);
	add_string(job, "error", error);
	add_time(job, "completed_at", clock_wall());
	json_object_object_add(job, "signal", NULL);
	json_object_object_add(job, "stdout_bytes", json_object_new_int(0));
	json_object_object_add(job, "stderr_bytes", json_object_new_int(0));
	json_object_object_add(job, "stdout_truncated", json_object_new_boolean(false));
	json_object_object_add(job, "stderr_truncated", json_object_new_boolean(false));
	json_object_object_add(job, "usage", NULL);
	add_encoding(job, base64);
	return job;
}

struct json_object *
job_without_outputs(struct json_object *job)
{
	struct json_object *brief = json_object_new_object();

	json_object_object_foreach(job, name, value)
	{
		if (strcmp(name, "stdout") == 0 || strcmp(name, "stderr") == 0)
			continue;
		json_object_object_add(brief, name, json_object_get(value));
	}
	return brief;
}

void
job_seal(struct json_object *job, const struct job_record *record)
{
	add_string(job, SEAL_TENANT, record->tenant);
	add_string(job, SEAL_PREV, record->prev_job);
}

bool
job_unseal(struct json_object *job, const char *tenant, char ret_prev[ID_UUID_SIZE])
{
	struct json_object *value;

	if (!json_object_object_get_ex(job, SEAL_TENANT, &value) ||
		strcmp(json_object_get_string(value), tenant) != 0)
		return false;
	if (ret_prev != NULL) {
		ret_prev[0] = '\0';
		if (json_object_object_get_ex(job, SEAL_PREV, &value))
			snprintf(ret_prev, ID_UUID_SIZE, "%s", json_object_get_string(value));
	}
	json_object_object_del(job, SEAL_TENANT);
	json_object_object_del(job, SEAL_PREV);
	return true;
}
