/* job_tap_result.c - what an ended job wrote: from its result, or what that lacks from its agent, if that still keeps it. */
/* SPDX-License-Identifier: MIT */
#include "domain/job/job_priv.h"
#include "domain/job/job_tap_impl.h"
#include "domain/sandbox/sandbox_priv.h"
#include "domain/service_priv.h"
#include "base/err.h"
#include "base/text.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
job_tap_forget(struct job_tap *tap)
{
	json_object_put(STEAL_PTR(tap->result));
	for (int i = 0; i < JOB_STREAMS; i++) {
		json_object_put(STEAL_PTR(tap->raw[i]));
		free(STEAL_PTR(tap->bytes[i]));
	}
}

/* What the agent no longer has, or nobody can be asked for. */
static void
tap_mark_gone(struct job_tap *tap)
{
	for (int i = 0; i < JOB_STREAMS; i++) {
		struct job_tap_part *part = &tap->answer.parts[i];

		if (!job_tap_wants_of_agent(tap, (enum job_stream)i))
			continue;
		part->gone = true;
		part->offset = part->bytes > tap->ask.offset[i] ? part->bytes : tap->ask.offset[i];
	}
}

static void
tap_on_ended(const struct agent_answer *answer, void *arg)
{
	struct job_tap *tap = arg;
	struct sandbox_record sandbox;
	const char *id = json_object_get_string(json_object_object_get(tap->result, "sandbox_id"));
	struct err err;

	tap->call = NULL;
	if (answer->outcome == AGENT_JOB) {
		job_tap_on_body(tap, answer->body);
	} else if ((answer->outcome == AGENT_LOST || answer->outcome == AGENT_NOT_SENT) &&
		sandbox_lookup(tap->service, tap->tenant, id, &sandbox, NULL, &err) == 0 &&
		job_tap_has_agent(&sandbox)) {
		err_set(&err, ERR_AGENT_UNREACHABLE, "%s", answer->err->msg);
		job_tap_tell(tap, &err);
	} else {
		tap_mark_gone(tap);
		job_tap_tell(tap, NULL);
	}
}

static const char *
result_word(const struct job_tap *tap, const char *name)
{
	const char *word = json_object_get_string(json_object_object_get(tap->result, name));

	return word != NULL ? word : "";
}

/* Some ends are told without the agent's word: what it had written by then is not in the result. */
static bool
result_is_whole(const struct job_tap *tap, enum job_stream stream)
{
	const char *verdict = result_word(tap, "verdict");
	char name[32];

	if ((strcmp(verdict, "agent_lost") == 0 || strcmp(verdict, "sandbox_deleted") == 0) &&
		json_object_object_get(tap->result, "started_at") != NULL)
		return false;
	snprintf(name, sizeof name, "%s_truncated", job_tap_streams[stream]);
	return !json_object_get_boolean(json_object_object_get(tap->result, name));
}

/* False: it is not in the result. */
static bool
tap_find_bytes(struct job_tap *tap, enum job_stream stream, const uint8_t **ret_data, size_t *ret_len)
{
	struct json_object *text = json_object_object_get(tap->result, job_tap_streams[stream]);
	struct json_object *encoded = tap->raw[stream];

	if (!json_object_is_type(text, json_type_string) || !result_is_whole(tap, stream))
		return false;
	if (encoded == NULL && strcmp(result_word(tap, "encoding"), "base64") == 0)
		encoded = text;
	if (encoded == NULL) {
		*ret_data = (const uint8_t *)json_object_get_string(text);
		*ret_len = (size_t)json_object_get_string_len(text);
		return true;
	}
	if (tap->bytes[stream] == NULL &&
		text_base64_decode(json_object_get_string(encoded), (size_t)json_object_get_string_len(encoded),
			&tap->bytes[stream], &tap->bytes_len[stream]) != 0)
		return false;
	*ret_data = tap->bytes[stream];
	*ret_len = tap->bytes_len[stream];
	return true;
}

/* Without the outputs that are of no use here: they may be large. */
static void
tap_keep_result(struct job_tap *tap, struct json_object *result)
{
	tap->result = json_object_get(result);
	tap->result_size = 0;
	for (int i = 0; i < JOB_STREAMS; i++) {
		struct json_object *text = json_object_object_get(result, job_tap_streams[i]);

		if (!result_is_whole(tap, (enum job_stream)i))
			json_object_object_del(result, job_tap_streams[i]);
		else if (json_object_is_type(text, json_type_string))
			tap->result_size += (size_t)json_object_get_string_len(text);
	}
}

static void
tap_slice(struct job_tap *tap, enum job_stream stream)
{
	struct job_tap_part *part = &tap->answer.parts[stream];
	int64_t from = tap->ask.offset[stream];
	const uint8_t *data;
	char name[32];
	size_t len;

	if (!tap_find_bytes(tap, stream, &data, &len)) {
		snprintf(name, sizeof name, "%s_bytes", job_tap_streams[stream]);
		part->bytes = json_object_get_int64(json_object_object_get(tap->result, name));
		return;
	}
	if (from > (int64_t)len)
		from = (int64_t)len;
	part->whole = true;
	part->offset = from;
	part->bytes = (int64_t)len;
	part->data = data + from;
	part->len = len - (size_t)from < tap->ask.limit ? len - (size_t)from : tap->ask.limit;
}

void
job_tap_serve_result(struct job_tap *tap)
{
	struct sandbox_record sandbox;
	struct err err;

	tap->answer.state = JOB_TAP_ENDED;
	tap->answer.job = tap->result;
	tap->answer.status = result_word(tap, "status");
	for (int i = 0; i < JOB_STREAMS; i++)
		if (tap->ask.offset[i] >= 0)
			tap_slice(tap, (enum job_stream)i);
	if (job_tap_wants_of_agent(tap, JOB_STDOUT) || job_tap_wants_of_agent(tap, JOB_STDERR)) {
		if (sandbox_lookup(
			    tap->service, tap->tenant, result_word(tap, "sandbox_id"), &sandbox, NULL, &err) == 0 &&
			job_tap_has_agent(&sandbox) && job_tap_ask_agent(tap, &sandbox, tap_on_ended, &err) == 0)
			return;
		tap_mark_gone(tap);
	}
	job_tap_tell(tap, NULL);
}

void
job_tap_take_result(struct job_tap *tap, struct json_object *value)
{
	job_raw_outputs(value, &tap->raw[JOB_STDOUT], &tap->raw[JOB_STDERR]);
	if (!job_unseal(value, tap->tenant, NULL)) {
		job_tap_not_found(tap);
		return;
	}
	tap_keep_result(tap, value);
	job_tap_serve_result(tap);
}
