/* job_json.c - a job in the shape of the REST API, live or ended, and how it is sealed in the store. */
/* SPDX-License-Identifier: MIT */
#include "domain/job/job_priv.h"
#include "domain/service_priv.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/text.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <json-c/linkhash.h>
#include <json-c/printbuf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEAL_TENANT "_tenant"
#define SEAL_PREV   "_prev"
#define SEAL_KEEP   "_keep_until"
#define RAW_STDOUT  "_stdout_base64"
#define RAW_STDERR  "_stderr_base64"

/* More members than an ended job has: its table need not grow. */
enum { JOB_ROOM = 64 };

/* Takes value. All names here are literals, so they are not copied. */
static void
add(struct json_object *object, const char *name, struct json_object *value)
{
	json_object_object_add_ex(object, name, value, JSON_C_OBJECT_ADD_CONSTANT_KEY);
}

static void
add_string(struct json_object *object, const char *name, const char *text)
{
	add(object, name, text != NULL ? json_object_new_string(text) : NULL);
}

/* Written here once: to the microsecond, as the clock gives it, and cheaper than any double. */
static void
add_time(struct json_object *object, const char *name, double time)
{
	int64_t us = (int64_t)(time * 1e6 + 0.5);
	char text[48];

	if (time <= 0) {
		add(object, name, NULL);
		return;
	}
	snprintf(text, sizeof text, "%" PRId64 ".%06d", us / 1000000, (int)(us % 1000000));
	add(object, name, json_object_new_double_s(time, text));
}

/* The member of the agent's job, or null. */
static void
add_copy(struct json_object *object, const char *name, struct json_object *from)
{
	struct json_object *value = NULL;

	json_object_object_get_ex(from, name, &value);
	add(object, name, json_object_get(value));
}

/* As a shell would read it: one word. */
static void
quote_word(struct printbuf *text, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./_-";

	if (*word != '\0' && word[strspn(word, plain)] == '\0') {
		printbuf_memappend(text, word, (int)strlen(word));
		return;
	}
	printbuf_strappend(text, "'");
	for (size_t len; *word != '\0'; word += len) {
		len = strcspn(word, "'");
		printbuf_memappend(text, word, (int)len);
		if (word[len] == '\'') {
			printbuf_strappend(text, "'\"'\"'");
			len++;
		}
	}
	printbuf_strappend(text, "'");
}

/* The command is text in every job: a list is shown as a shell's words. A new reference. */
static struct json_object *
job_command_text(struct json_object *command)
{
	struct printbuf *text;
	struct json_object *shown;

	if (!json_object_is_type(command, json_type_array))
		return json_object_get(command);
	text = must_alloc(printbuf_new());
	for (size_t i = 0; i < json_object_array_length(command); i++) {
		if (i > 0)
			printbuf_strappend(text, " ");
		quote_word(text, json_object_get_string(json_object_array_get_idx(command, i)));
	}
	shown = json_object_new_string_len(text->buf, text->bpos);
	printbuf_free(text);
	return shown;
}

/* From its creation to its start, or, if it has none, to now. */
static double
job_queue_seconds(const struct job_record *record)
{
	int64_t until_ms = record->started_ms > 0 ? record->started_ms : clock_boot_ms();

	return (double)(until_ms - record->created_ms) / 1000;
}

/* Everything that is there in every state, in the order people read it. */
static struct json_object *
job_new(const struct job_record *record, struct json_object *command, const char *status)
{
	struct json_object *job = json_object_new_object();

	lh_table_resize(json_object_get_object(job), JOB_ROOM);
	add_string(job, "job_id", record->id);
	add_string(job, "sandbox_id", record->sandbox_id);
	add(job, "command", job_command_text(command));
	add_string(job, "status", status);
	add_string(job, "stdout", "");
	add_string(job, "stderr", "");
	add(job, "exit_code", NULL);
	add_time(job, "created_at", record->created_at);
	add_time(job, "started_at", record->started_at);
	add(job, "completed_at", NULL);
	add(job, "error", NULL);
	add(job, "verdict", NULL);
	add_string(job, "lane", record->lane);
	add(job, "queue_s", json_object_new_double(job_queue_seconds(record)));
	add(job, "attempt", json_object_new_int64(record->attempt));
	add(job, "fence",
		json_object_new_int64((int64_t)(record->lane_fence != 0 ? record->lane_fence : record->fence)));
	return job;
}

struct json_object *
job_live_json(const struct job_record *record, struct json_object *command, uint32_t queue_position)
{
	bool queued = record->state == JOB_QUEUED;
	struct json_object *job = job_new(record, command, queued ? "queued" : "running");

	if (queued && queue_position != UINT32_MAX)
		add(job, "queue_position", json_object_new_int64(queue_position));
	return job;
}

/* One output stream: encoded as it came, or as text that is always valid. */
static void
add_output(struct json_object *job, const char *name, struct json_object *agent_job, bool base64)
{
	AUTO_FREE uint8_t *data = NULL;
	AUTO_FREE char *text = NULL;
	struct json_object *value;
	char from[24];
	size_t len;
	bool valid;

	snprintf(from, sizeof from, "%s_base64", name);
	if (!json_object_object_get_ex(agent_job, from, &value) || !json_object_is_type(value, json_type_string))
		return;
	if (base64) {
		add(job, name, json_object_get(value));
		return;
	}
	if (text_base64_decode(
		    json_object_get_string(value), (size_t)json_object_get_string_len(value), &data, &len) != 0)
		return;
	valid = text_is_utf8(data, len);
	if (text_utf8_repair(data, len, &text, &len) != 0)
		return;
	add(job, name, json_object_new_string_len(text, (int)len));
	snprintf(from, sizeof from, "%s_truncated", name);
	if (!valid && !json_object_get_boolean(json_object_object_get(agent_job, from)))
		add(job, strcmp(name, "stdout") == 0 ? RAW_STDOUT : RAW_STDERR, json_object_get(value));
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
	if (strcmp(verdict, "never_started") == 0)
		add(job, "usage", NULL);
	add_output(job, "stdout", agent_job, base64);
	add_output(job, "stderr", agent_job, base64);
	add_error(job, record, verdict, agent_job);
	add_encoding(job, base64);
	if (json_object_object_get_ex(agent_job, "started_at", &value) && json_object_get_double(value) > 0)
		add(job, "started_at", json_object_get(value));
	if (json_object_object_get_ex(agent_job, "ended_at", &value) && json_object_get_double(value) > 0)
		add(job, "completed_at", json_object_get(value));
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
	add(job, "signal", NULL);
	/* Nothing is known of what it wrote, unless it never ran. */
	add(job, "stdout_bytes", record->started_at > 0 ? NULL : json_object_new_int(0));
	add(job, "stderr_bytes", record->started_at > 0 ? NULL : json_object_new_int(0));
	add(job, "stdout_truncated", json_object_new_boolean(false));
	add(job, "stderr_truncated", json_object_new_boolean(false));
	add(job, "usage", NULL);
	add_encoding(job, base64);
	return job;
}

struct json_object *
job_cut_json(const struct job_record *record, struct json_object *command, const char *verdict, const char *error,
	struct json_object *agent_job, bool base64)
{
	static const char *const copied[] = { "stdout_bytes", "stderr_bytes", "stdout_truncated",
		"stderr_truncated" };
	struct json_object *job = job_words_json(record, command, verdict, error, base64);

	for (size_t i = 0; i < sizeof copied / sizeof *copied; i++)
		add_copy(job, copied[i], agent_job);
	add_output(job, "stdout", agent_job, base64);
	add_output(job, "stderr", agent_job, base64);
	return job;
}

struct json_object *
job_without_outputs(struct json_object *job)
{
	struct json_object *brief = json_object_new_object();

	json_object_object_foreach(job, name, value)
	{
		if (strcmp(name, "stdout") == 0 || strcmp(name, "stderr") == 0 || strcmp(name, RAW_STDOUT) == 0 ||
			strcmp(name, RAW_STDERR) == 0)
			continue;
		json_object_object_add(brief, name, json_object_get(value));
	}
	return brief;
}

/* Both ends, as an agent cuts what is too long: between characters, with a line that says how much is missing. */
static struct json_object *
shortened(const char *data, size_t len, size_t bytes, int64_t total)
{
	size_t head = text_utf8_whole(data, bytes / 2), tail = bytes / 2;
	struct json_object *text;
	char line[64];
	char *whole;

	while (tail > 0 && ((uint8_t)data[len - tail] & 0xc0) == 0x80)
		tail--;
	if (total < (int64_t)len)
		total = (int64_t)len;
	snprintf(line, sizeof line, "\n...[%" PRId64 " bytes omitted]...\n", total - (int64_t)(head + tail));
	whole = alloc_bytes(head + strlen(line) + tail);
	memcpy(whole, data, head);
	memcpy(whole + head, line, strlen(line));
	memcpy(whole + head + strlen(line), data + len - tail, tail);
	text = json_object_new_string_len(whole, (int)(head + strlen(line) + tail));
	free(whole);
	return text;
}

static struct json_object *
encoded(struct json_object *text)
{
	size_t len = (size_t)json_object_get_string_len(text);
	AUTO_FREE char *out = alloc_bytes(text_base64_size(len) + 1);
	struct json_object *value;

	text_base64_encode(json_object_get_string(text), len, out);
	value = json_object_new_string(out);
	json_object_put(text);
	return value;
}

static void
bound_output(struct json_object *job, const char *name, const char *raw, size_t bytes)
{
	struct json_object *text = json_object_object_get(job, name);
	const char *encoding = json_object_get_string(json_object_object_get(job, "encoding"));
	bool base64 = encoding != NULL && strcmp(encoding, "base64") == 0;
	AUTO_FREE uint8_t *data = NULL;
	char other[32];
	int64_t total;
	size_t len;

	if (!json_object_is_type(text, json_type_string))
		return;
	len = (size_t)json_object_get_string_len(text);
	if (len <= (base64 ? text_base64_size(bytes) : bytes) ||
		(base64 && text_base64_decode(json_object_get_string(text), len, &data, &len) != 0))
		return;
	snprintf(other, sizeof other, "%s_bytes", name);
	total = json_object_get_int64(json_object_object_get(job, other));
	text = shortened(data != NULL ? (char *)data : json_object_get_string(text), len, bytes, total);
	json_object_object_add(job, name, base64 ? encoded(text) : text);
	json_object_object_del(job, raw);
	snprintf(other, sizeof other, "%s_truncated", name);
	json_object_object_add(job, other, json_object_new_boolean(true));
}

struct json_object *
job_bounded(struct json_object *job, size_t bytes)
{
	struct json_object *copy = json_object_new_object();

	json_object_object_foreach(job, name, value) json_object_object_add(copy, name, json_object_get(value));
	bound_output(copy, "stdout", RAW_STDOUT, bytes);
	bound_output(copy, "stderr", RAW_STDERR, bytes);
	return copy;
}

void
job_raw_outputs(struct json_object *job, struct json_object **ret_stdout, struct json_object **ret_stderr)
{
	*ret_stdout = json_object_get(json_object_object_get(job, RAW_STDOUT));
	*ret_stderr = json_object_get(json_object_object_get(job, RAW_STDERR));
}

const char *
job_seal_tenant(struct json_object *job)
{
	const char *tenant = json_object_get_string(json_object_object_get(job, SEAL_TENANT));

	return tenant != NULL ? tenant : "";
}

void
job_seal(struct json_object *job, const struct job_record *record)
{
	add_string(job, SEAL_TENANT, record->tenant);
	add_string(job, SEAL_PREV, record->prev_job);
	if (record->keep_until > 0)
		add(job, SEAL_KEEP, json_object_new_double(record->keep_until));
}

double
job_seal_keep(struct json_object *job)
{
	return json_object_get_double(json_object_object_get(job, SEAL_KEEP));
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
	json_object_object_del(job, SEAL_KEEP);
	json_object_object_del(job, RAW_STDOUT);
	json_object_object_del(job, RAW_STDERR);
	return true;
}
