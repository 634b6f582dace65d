/* request.c - field by field; nothing of a request with a fault is run. */
/* SPDX-License-Identifier: MIT */
#include "agent/request.h"

#include "agent/env.h"
#include "agent/lane.h"
#include "agent/user.h"
#include "base/err.h"
#include "base/id.h"
#include "base/json.h"
#include "base/text.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

enum {
	REQUEST_MAX_TEXT = 64 << 20,
	REQUEST_MAX_PATH = 4095,
	REQUEST_MAX_USER = 511,
	REQUEST_MAX_ENV = 10000,
	REQUEST_MAX_OUTPUT = 256 << 20,
	REQUEST_OUTPUT = 1 << 20
};
#define REQUEST_MAX_SPOOL ((int64_t)1 << 50)
#define REQUEST_MAX_MS    ((int64_t)8640000 * 1000)

static bool
request_is_text(struct json_object *value)
{
	return json_object_is_type(value, json_type_string) &&
		strlen(json_object_get_string(value)) == (size_t)json_object_get_string_len(value);
}

void
request_check_list(struct json_reader *reader, const char *field, struct json_object *list)
{
	bool is_list = json_object_is_type(list, json_type_array);
	size_t count = is_list ? json_object_array_length(list) : 0;

	if (count == 0)
		json_reader_fault(reader, field, "type_error", "must be an array of at least one string");
	for (size_t i = 0; i < count; i++)
		if (!request_is_text(json_object_array_get_idx(list, i))) {
			json_reader_fault(reader, field, "type_error", "item %zu must be a string without NUL", i);
			return;
		}
}

static void
request_command(struct json_reader *reader, struct exec_request *request)
{
	struct json_object *command = NULL;

	if (!json_reader_require(reader, "command"))
		return;
	json_object_object_get_ex(reader->body, "command", &command);
	request->command = command;
	if (json_object_is_type(command, json_type_array))
		request_check_list(reader, "command", command);
	else if (!json_object_is_type(command, json_type_string))
		json_reader_fault(
			reader, "command", "type_error", "must be a string or an array of at least one string");
	else if (!request_is_text(command))
		json_reader_fault(reader, "command", "value_error", "must not contain NUL");
}

void
request_read_env(struct json_reader *reader, struct json_object **ret_env)
{
	if (!json_reader_string_map(reader, "env", ret_env))
		return;
	if (json_object_object_length(*ret_env) > REQUEST_MAX_ENV) {
		json_reader_fault(reader, "env", "value_error", "has more than %d variables", REQUEST_MAX_ENV);
		return;
	}
	json_object_object_foreach(*ret_env, name, value)
	{
		if (!env_is_name(name, strlen(name)))
			json_reader_fault(
				reader, "env", "value_error", "a name must not be empty or contain '=' or NUL");
		if (!request_is_text(value))
			json_reader_fault(reader, "env", "value_error", "%.64s must be a string without NUL", name);
	}
}

void
request_read_user(struct json_reader *reader, size_t max_len, const char **ret_user)
{
	struct err err;

	if (json_reader_string(reader, "user", max_len, ret_user) && user_check(*ret_user, &err) < 0)
		json_reader_fault(reader, "user", "value_error", "%s", err.msg);
}

static void
request_stdin(struct json_reader *reader, struct exec_request *request)
{
	const char *text = NULL;

	if (!json_reader_string(reader, "stdin_base64", 2 * (size_t)REQUEST_MAX_TEXT, &text))
		return;
	if (text_base64_decode(text, strlen(text), &request->stdin_data, &request->stdin_len) < 0)
		json_reader_fault(reader, "stdin_base64", "value_error", "is not base64");
}

static void
request_identity(struct json_reader *reader, struct exec_request *request)
{
	if (json_reader_require(reader, "job_id") &&
		json_reader_string(reader, "job_id", ID_UUID_SIZE - 1, &request->job_id) &&
		!id_is_uuid(request->job_id))
		json_reader_fault(reader, "job_id", "value_error", "must be a UUID in lower case");
	if (json_reader_require(reader, "fence"))
		json_reader_int(reader, "fence", 1, INT64_MAX, &request->fence);
	json_reader_string(reader, "lane", LANE_NAME_MAX, &request->lane);
}

static void
request_fill(struct json_reader *reader, struct exec_request *request)
{
	request_identity(reader, request);
	request_command(reader, request);
	request_read_env(reader, &request->env);
	request_stdin(reader, request);
	json_reader_bool(reader, "stdin_open", &request->stdin_open);
	json_reader_string(reader, "cwd", REQUEST_MAX_PATH, &request->cwd);
	json_reader_bool(reader, "login_shell", &request->login_shell);
	json_reader_bool(reader, "apply_patch", &request->apply_patch);
	request_read_user(reader, REQUEST_MAX_USER, &request->user);
	if (json_reader_require(reader, "timeout_ms"))
		json_reader_int(reader, "timeout_ms", 1, REQUEST_MAX_MS, &request->timeout_ms);
	json_reader_int(reader, "kill_grace_ms", 0, REQUEST_MAX_MS, &request->kill_grace_ms);
	json_reader_int(reader, "max_output_bytes", 0, REQUEST_MAX_OUTPUT, &request->max_output_bytes);
	json_reader_int(reader, "spool_bytes", 0, REQUEST_MAX_SPOOL, &request->spool_bytes);
	json_reader_int(reader, "hold_ms", 0, REQUEST_MAX_MS, &request->hold_ms);
	if (request->cwd != NULL && request->cwd[0] == '\0')
		request->cwd = NULL;
}

int
exec_request_read(struct json_object *body, struct exec_request *ret_request, struct err *err)
{
	struct exec_request request = { .lane = "", .max_output_bytes = REQUEST_OUTPUT };
	struct json_reader reader;
	int rc = 0;

	json_reader_init(&reader, body);
	request_fill(&reader, &request);
	if (reader.faults != NULL) {
		rc = err_set(err, ERR_INVALID, "%s", json_text(reader.faults, NULL));
		exec_request_fini(&request);
	} else {
		*ret_request = request;
	}
	json_reader_fini(&reader);
	return rc;
}

void
exec_request_fini(struct exec_request *request)
{
	free(request->stdin_data);
	request->stdin_data = NULL;
}
