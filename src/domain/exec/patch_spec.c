/* patch_spec.c - from {"patch"} to a command, and from its job to an answer. */
/* SPDX-License-Identifier: MIT */
#include "domain/exec/patch_spec.h"

#include "domain/exec/exec.h"
#include "domain/exec/patch_words.h"
#include "base/alloc.h"
#include "base/json.h"
#include "base/text.h"
#include "conf/config.h"

#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATCH_TIMEOUT_S = 30, PATCH_MAX_PATH = 4095, PATCH_MAX_USER = 255, PATCH_NO_TOOL = 127 };

static void
patch_read_text(struct json_reader *reader, struct exec_spec *spec)
{
	AUTO_FREE uint8_t *data = NULL;
	const char *text;
	size_t len;

	if (json_reader_has(reader, "patch") && json_reader_has(reader, "patch_base64")) {
		json_reader_fault(reader, "patch", "value_error", "must not be given together with patch_base64");
	} else if (json_reader_bytes(reader, "patch", SIZE_MAX, &text, &len)) {
		spec->owned = alloc_zero(1, text_base64_size(len) + 1);
		text_base64_encode(text, len, spec->owned);
		spec->stdin_base64 = spec->owned;
	} else if (json_reader_string(reader, "patch_base64", SIZE_MAX, &text)) {
		if (text_base64_decode(text, strlen(text), &data, &len) != 0)
			json_reader_fault(reader, "patch_base64", "value_error", "is not base64");
		else
			spec->stdin_base64 = text;
	} else if (reader->faults == NULL) {
		json_reader_require(reader, "patch");
	}
}

void
patch_spec_read(const struct config *config, struct json_reader *reader, struct exec_spec *ret_spec)
{
	double timeout = 0;

	*ret_spec = (struct exec_spec){
		.apply_patch = true,
		.wait = true,
		.lane = "",
		.max_output_bytes = config->max_output_bytes,
		.spool_bytes = config->spool_limit_bytes,
	};
	patch_read_text(reader, ret_spec);
	if (json_reader_string(reader, "cwd", PATCH_MAX_PATH, &ret_spec->cwd) && ret_spec->cwd[0] == '\0')
		ret_spec->cwd = NULL;
	if (json_reader_string(reader, "user", PATCH_MAX_USER, &ret_spec->user) && ret_spec->user[0] == '\0')
		ret_spec->user = NULL;
	exec_spec_read_lane(reader, ret_spec);
	json_reader_number(reader, "timeout_seconds", 0, config->max_exec_timeout_seconds, &timeout);
	if (timeout <= 0)
		timeout = PATCH_TIMEOUT_S;
	ret_spec->timeout_ms = (int64_t)ceil(timeout * 1000);
	ret_spec->owned_command = json_object_new_string("apply_patch");
	ret_spec->command = ret_spec->owned_command;
}

static const char *
patch_said(struct json_object *job, const char *stream)
{
	return json_object_get_string(json_object_object_get(job, stream));
}

/* What the exit code does not say in words. */
static struct json_object *
patch_error(struct json_object *job, bool success)
{
	struct json_object *error = json_object_object_get(job, "error");
	struct json_object *exit_code = json_object_object_get(job, "exit_code");
	AUTO_FREE char *words = NULL;
	char text[96];

	if (success || error != NULL)
		return json_object_get(error);
	if (json_object_get_int(exit_code) == PATCH_NO_TOOL)
		return json_object_new_string("git not found: the image has neither git nor patch");
	words = patch_words(patch_said(job, "stdout"), patch_said(job, "stderr"));
	if (words != NULL)
		return json_object_new_string(words);
	snprintf(text, sizeof text, "the patch was not applied (exit code %d); stderr says why",
		json_object_get_int(exit_code));
	return json_object_new_string(text);
}

struct json_object *
patch_answer(struct json_object *job)
{
	static const char *const copied[] = { "stdout", "stderr", "exit_code" };
	const char *status = json_object_get_string(json_object_object_get(job, "status"));
	bool success = status != NULL && strcmp(status, "succeeded") == 0;
	struct json_object *answer = json_object_new_object();

	json_object_object_add(answer, "success", json_object_new_boolean(success));
	for (size_t i = 0; i < sizeof copied / sizeof copied[0]; i++)
		json_object_object_add(answer, copied[i], json_object_get(json_object_object_get(job, copied[i])));
	json_object_object_add(answer, "error", patch_error(job, success));
	json_object_object_add(answer, "job_id", json_object_get(json_object_object_get(job, "job_id")));
	return answer;
}
