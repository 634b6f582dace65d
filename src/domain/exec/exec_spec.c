/* exec_spec.c - an exec request, checked as a whole before anything is recorded. */
/* SPDX-License-Identifier: MIT */
#include "domain/exec/exec.h"
#include "domain/env_spec.h"
#include "domain/service_priv.h"
#include "base/alloc.h"
#include "base/json.h"
#include "base/text.h"
#include "conf/config.h"
#include "ipc/job_table.h"

#include <ctype.h>
#include <json-c/json.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SPEC_MAX_PATH = 4095, SPEC_MAX_USER = 255, SPEC_MAX_ENV = 1024 * 1024, SPEC_MAX_HOLD = 3600 };

static bool
has_nul(struct json_object *string)
{
	return memchr(json_object_get_string(string), '\0', (size_t)json_object_get_string_len(string)) != NULL;
}

/* A string for the shell, or a list of strings: that very argv. */
static void
spec_read_command(struct json_reader *reader, struct exec_spec *spec)
{
	struct json_object *command = NULL, *item;
	size_t n;

	if (!json_reader_require(reader, "command"))
		return;
	json_object_object_get_ex(reader->body, "command", &command);
	if (json_object_is_type(command, json_type_string)) {
		if (has_nul(command))
			json_reader_fault(reader, "command", "value_error", "must not hold NUL");
		else
			spec->command = command;
		return;
	}
	n = json_object_is_type(command, json_type_array) ? json_object_array_length(command) : 0;
	if (n == 0) {
		json_reader_fault(reader, "command", "type_error", "must be a string or a list of strings");
		return;
	}
	for (size_t i = 0; i < n; i++) {
		item = json_object_array_get_idx(command, i);
		if (!json_object_is_type(item, json_type_string) || has_nul(item)) {
			json_reader_fault(reader, "command", "type_error", "must be a list of strings without NUL");
			return;
		}
	}
	if (json_object_get_string_len(json_object_array_get_idx(command, 0)) == 0)
		json_reader_fault(reader, "command", "value_error", "names no program: its first string is empty");
	else
		spec->command = command;
}

static void
spec_read_times(const struct config *config, struct json_reader *reader, struct exec_spec *spec)
{
	double timeout = 0, wait = 0;

	json_reader_number(reader, "timeout_seconds", 0, config->max_exec_timeout_seconds, &timeout);
	if (timeout <= 0)
		timeout = config->default_exec_timeout_seconds;
	spec->timeout_ms = (int64_t)ceil(timeout * 1000);
	if (!json_reader_number(reader, "wait_timeout", 0, 1e12, &wait))
		return;
	if (wait > (double)config->max_wait_seconds)
		wait = (double)config->max_wait_seconds;
	/* 0 means "not given" here; a client's 0 is as short as it gets. */
	spec->wait_timeout_ms = wait > 0 ? (int64_t)ceil(wait * 1000) : 1;
}

static void
spec_read_stdin(struct json_reader *reader, struct exec_spec *spec)
{
	const char *text;
	size_t len;

	if (json_reader_has(reader, "stdin") && json_reader_has(reader, "stdin_base64")) {
		json_reader_fault(reader, "stdin", "value_error", "must not be given together with stdin_base64");
	} else if (json_reader_bytes(reader, "stdin", SIZE_MAX, &text, &len)) {
		spec->owned = alloc_zero(1, text_base64_size(len) + 1);
		text_base64_encode(text, len, spec->owned);
		spec->stdin_base64 = spec->owned;
	} else if (json_reader_string(reader, "stdin_base64", SIZE_MAX, &text)) {
		AUTO_FREE uint8_t *data = NULL;

		if (text_base64_decode(text, strlen(text), &data, &len) != 0)
			json_reader_fault(reader, "stdin_base64", "value_error", "is not base64");
		else
			spec->stdin_base64 = text;
	}
}

void
exec_spec_read_lane(struct json_reader *reader, struct exec_spec *spec)
{
	enum { LANE_MAX = sizeof((struct job_record *)NULL)->lane - 1 };

	spec->lane = "";
	if (!json_reader_string(reader, "lane", LANE_MAX, &spec->lane))
		return;
	for (const char *p = spec->lane; *p != '\0'; p++) {
		if (!isprint((unsigned char)*p)) {
			json_reader_fault(reader, "lane", "value_error", "must be printable ASCII");
			return;
		}
	}
}

static void
spec_read_output(const struct config *config, struct json_reader *reader, struct exec_spec *spec)
{
	const char *encoding = "utf8";
	double hold = 0;

	spec->spool_bytes = config->spool_limit_bytes;
	spec->max_output_bytes = config->max_output_bytes;
	json_reader_int(reader, "max_output_bytes", 0, config->max_output_bytes, &spec->max_output_bytes);
	json_reader_number(reader, "hold_output_seconds", 0, SPEC_MAX_HOLD, &hold);
	spec->hold_ms = (int64_t)ceil(hold * 1000);
	json_reader_string(reader, "encoding", 16, &encoding);
	spec->base64 = strcmp(encoding, "base64") == 0;
	if (!spec->base64 && strcmp(encoding, "utf8") != 0)
		json_reader_fault(reader, "encoding", "value_error", "must be \"utf8\" or \"base64\"");
}

void
exec_spec_read(const struct config *config, struct json_reader *reader, struct exec_spec *ret_spec)
{
	*ret_spec = (struct exec_spec){ .wait = true };
	spec_read_command(reader, ret_spec);
	if (json_reader_string(reader, "cwd", SPEC_MAX_PATH, &ret_spec->cwd) && ret_spec->cwd[0] == '\0')
		ret_spec->cwd = NULL;
	env_spec_read(reader, "env", SPEC_MAX_ENV, &ret_spec->env);
	json_reader_bool(reader, "login_shell", &ret_spec->login_shell);
	json_reader_bool(reader, "wait", &ret_spec->wait);
	if (json_reader_string(reader, "user", SPEC_MAX_USER, &ret_spec->user) && ret_spec->user[0] == '\0')
		ret_spec->user = NULL;
	spec_read_stdin(reader, ret_spec);
	json_reader_bool(reader, "stdin_open", &ret_spec->stdin_open);
	exec_spec_read_lane(reader, ret_spec);
	spec_read_output(config, reader, ret_spec);
	spec_read_times(config, reader, ret_spec);
}

void
exec_spec_fini(struct exec_spec *spec)
{
	free(spec->owned);
	spec->owned = NULL;
	json_object_put(spec->owned_command);
	spec->owned_command = NULL;
}
