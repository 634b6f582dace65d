/* terminal_request.c - field by field; nothing of a message with a fault is done. */
/* SPDX-License-Identifier: MIT */
#include "agent/terminal/terminal_request.h"

#include "agent/request.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text.h"

#include <json-c/json.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { TERMINAL_MAX_PATH = 4095, TERMINAL_MAX_USER = 511, TERMINAL_ROWS = 24, TERMINAL_COLS = 80 };

static const struct {
	const char *name;
	int sig;
} terminal_signals[] = {
	{ "HUP", SIGHUP },
	{ "INT", SIGINT },
	{ "QUIT", SIGQUIT },
	{ "KILL", SIGKILL },
	{ "USR1", SIGUSR1 },
	{ "USR2", SIGUSR2 },
	{ "TERM", SIGTERM },
	{ "CONT", SIGCONT },
	{ "STOP", SIGSTOP },
	{ "TSTP", SIGTSTP },
	{ "WINCH", SIGWINCH },
};

static struct json_object *
message_parse(const char *text, size_t len, struct err *err)
{
	struct json_object *body = json_parse(text, len, err);

	if (body == NULL || json_object_is_type(body, json_type_object))
		return body;
	json_object_put(body);
	err_set(err, ERR_INVALID, "a message must be a JSON object");
	return NULL;
}

static void
message_size(struct json_reader *reader, struct pty_size *size)
{
	int64_t rows = size->rows, cols = size->cols;

	json_reader_int(reader, "rows", 1, PTY_MAX_SIDE, &rows);
	json_reader_int(reader, "cols", 1, PTY_MAX_SIDE, &cols);
	*size = (struct pty_size){ .rows = (uint16_t)rows, .cols = (uint16_t)cols };
}

/* "rows: must be ...; env: ..." */
static int
message_faults(struct json_object *faults, struct err *err)
{
	struct json_object *loc, *msg;
	size_t len = 0;

	err_set(err, ERR_INVALID, "%s", "");
	for (size_t i = 0; i < json_object_array_length(faults) && len < sizeof err->msg; i++) {
		struct json_object *fault = json_object_array_get_idx(faults, i);

		json_object_object_get_ex(fault, "loc", &loc);
		json_object_object_get_ex(fault, "msg", &msg);
		len += (size_t)snprintf(err->msg + len, sizeof err->msg - len, "%s%s: %s", i == 0 ? "" : "; ",
			json_object_get_string(json_object_array_get_idx(loc, 1)), json_object_get_string(msg));
	}
	text_utf8_mend(err->msg);
	return -1;
}

/* Takes the reader's faults. */
static int
message_judge(struct json_reader *reader, struct err *err)
{
	int rc = reader->faults == NULL ? 0 : message_faults(reader->faults, err);

	json_reader_fini(reader);
	return rc;
}

static void
request_cmd(struct json_reader *reader, struct terminal_request *request)
{
	if (!json_reader_has(reader, "cmd"))
		return;
	json_object_object_get_ex(reader->body, "cmd", &request->cmd);
	request_check_list(reader, "cmd", request->cmd);
}

static void
request_fill(struct json_reader *reader, struct terminal_request *request)
{
	request_cmd(reader, request);
	request_read_env(reader, &request->env);
	json_reader_string(reader, "cwd", TERMINAL_MAX_PATH, &request->cwd);
	request_read_user(reader, TERMINAL_MAX_USER, &request->user);
	json_reader_bool(reader, "login_shell", &request->login_shell);
	json_reader_bool(reader, "detach", &request->detach);
	message_size(reader, &request->size);
	if (request->cwd != NULL && request->cwd[0] == '\0')
		request->cwd = NULL;
}

int
terminal_request_read(const char *text, size_t len, struct terminal_request *ret_request, struct err *err)
{
	AUTO_JSON struct json_object *body = message_parse(text, len, err);
	struct terminal_request request = { .size = { TERMINAL_ROWS, TERMINAL_COLS } };
	struct json_reader reader;
	const char *type = "";

	if (body == NULL)
		return -1;
	json_reader_init(&reader, body);
	json_reader_string(&reader, "type", TERMINAL_MAX_USER, &type);
	if (strcmp(type, "init") == 0)
		request_fill(&reader, &request);
	else
		json_reader_fault(&reader, "type", "value_error", "the first message must be init");
	if (message_judge(&reader, err) < 0)
		return -1;
	request.body = STEAL_PTR(body);
	*ret_request = request;
	return 0;
}

void
terminal_request_fini(struct terminal_request *request)
{
	json_object_put(request->body);
	*request = (struct terminal_request){ 0 };
}

static void
message_signal(struct json_reader *reader, struct terminal_message *message)
{
	const char *name = "";

	if (!json_reader_require(reader, "sig") || !json_reader_string(reader, "sig", TERMINAL_MAX_USER, &name))
		return;
	if (strncmp(name, "SIG", 3) == 0)
		name += 3;
	for (size_t i = 0; i < sizeof terminal_signals / sizeof terminal_signals[0]; i++)
		if (strcmp(name, terminal_signals[i].name) == 0)
			message->sig = terminal_signals[i].sig;
	if (message->sig == 0)
		json_reader_fault(reader, "sig", "value_error",
			"is none of HUP INT QUIT KILL USR1 USR2 TERM CONT STOP TSTP WINCH");
}

static void
message_fill(struct json_reader *reader, struct terminal_message *message)
{
	const char *type = "";

	json_reader_string(reader, "type", TERMINAL_MAX_USER, &type);
	if (strcmp(type, "resize") == 0) {
		message->type = TERMINAL_RESIZE;
		if (json_reader_require(reader, "rows") && json_reader_require(reader, "cols"))
			message_size(reader, &message->size);
	} else if (strcmp(type, "signal") == 0) {
		message->type = TERMINAL_SIGNAL;
		message_signal(reader, message);
	} else if (strcmp(type, "close") == 0) {
		message->type = TERMINAL_CLOSE;
	} else {
		json_reader_fault(reader, "type", "value_error", "is none of resize, signal and close");
	}
}

int
terminal_message_read(const char *text, size_t len, struct terminal_message *ret_message, struct err *err)
{
	AUTO_JSON struct json_object *body = message_parse(text, len, err);
	struct terminal_message message = { 0 };
	struct json_reader reader;

	if (body == NULL)
		return -1;
	json_reader_init(&reader, body);
	message_fill(&reader, &message);
	if (message_judge(&reader, err) < 0)
		return -1;
	*ret_message = message;
	return 0;
}
