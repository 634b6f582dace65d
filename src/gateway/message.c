/* message.c - strict readers for each kind of message, and the few that are written. */
/* SPDX-License-Identifier: MIT */
#include "gateway/message.h"

#include "base/alloc.h"
#include "base/err.h"
#include "base/id.h"
#include "base/json.h"
#include "base/text.h"
#include "gateway/outbox.h"

#include <json-c/json.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* What an agent takes, so that it is the client who is told what is wrong. */
enum { SIZE_MAX_CELLS = 65535, CWD_MAX = 4095, USER_MAX = 511, ARGUMENTS_MAX = 65536, VARIABLES_MAX = 10000 };
enum { WORDS_MAX = 4096 };

static struct json_object *
new_message(const char *type)
{
	struct json_object *object = must_alloc(json_object_new_object());

	json_object_object_add(object, "type", json_object_new_string(type));
	return object;
}

static char *
take_text(struct json_object *object)
{
	char *text = alloc_string(json_text(object, NULL));

	json_object_put(object);
	return text;
}

/* --- init --- */

static void
read_cmd(struct json_reader *reader, struct json_object *out)
{
	struct json_object *cmd = NULL, *item;

	json_object_object_get_ex(reader->body, "cmd", &cmd);
	json_object_object_add(out, "cmd", json_object_get(cmd));
	if (cmd == NULL)
		return;
	if (!json_object_is_type(cmd, json_type_array) || json_object_array_length(cmd) == 0 ||
		json_object_array_length(cmd) > ARGUMENTS_MAX) {
		json_reader_fault(reader, "cmd", "value_error",
			"must be null for the user's shell, or a list of strings that is not empty");
		return;
	}
	for (size_t i = 0; i < json_object_array_length(cmd); i++) {
		item = json_object_array_get_idx(cmd, i);
		if (!json_object_is_type(item, json_type_string) ||
			strlen(json_object_get_string(item)) != (size_t)json_object_get_string_len(item)) {
			json_reader_fault(reader, "cmd", "value_error", "must hold strings without NUL");
			return;
		}
	}
	if (json_object_get_string_len(json_object_array_get_idx(cmd, 0)) == 0)
		json_reader_fault(reader, "cmd", "value_error", "names no program");
}

static void
read_env(struct json_reader *reader, struct json_object *out)
{
	struct json_object *env = NULL;

	if (!json_reader_string_map(reader, "env", &env))
		return;
	if (json_object_object_length(env) > VARIABLES_MAX) {
		json_reader_fault(reader, "env", "value_error", "has more than %d variables", VARIABLES_MAX);
		return;
	}
	json_object_object_foreach(env, name, value)
	{
		(void)value;
		if (*name == '\0' || strchr(name, '=') != NULL) {
			json_reader_fault(reader, "env", "value_error", "names must not be empty or hold \"=\"");
			return;
		}
	}
	json_object_object_add(out, "env", json_object_get(env));
}

static void
read_text(struct json_reader *reader, const char *name, size_t max, struct json_object *out)
{
	const char *text;

	if (json_reader_string(reader, name, max, &text))
		json_object_object_add(out, name, json_object_new_string(text));
}

static bool
read_flag(struct json_reader *reader, const char *name, struct json_object *out)
{
	bool flag = false;

	if (json_reader_bool(reader, name, &flag))
		json_object_object_add(out, name, json_object_new_boolean(flag));
	return flag;
}

static void
read_cells(struct json_reader *reader, const char *name, int64_t cells, struct json_object *out)
{
	json_reader_int(reader, name, 1, SIZE_MAX_CELLS, &cells);
	json_object_object_add(out, name, json_object_new_int64(cells));
}

static void
read_init(struct json_reader *reader, struct message *message)
{
	struct json_object *out = new_message("init");

	read_cmd(reader, out);
	read_env(reader, out);
	read_text(reader, "cwd", CWD_MAX, out);
	read_cells(reader, "rows", 24, out);
	read_cells(reader, "cols", 80, out);
	read_flag(reader, "login_shell", out);
	read_text(reader, "user", USER_MAX, out);
	message->detach = read_flag(reader, "detach", out);
	message->text = take_text(out);
}

/* --- the others --- */

static void
read_stdin(struct json_reader *reader, struct message *message)
{
	const char *text;
	size_t len;

	if (!json_reader_require(reader, "data") || !json_reader_bytes(reader, "data", SIZE_MAX, &text, &len))
		return;
	if (text_base64_decode(text, len, &message->data, &message->len) < 0)
		json_reader_fault(reader, "data", "value_error", "must be base64 with its padding");
}

static void
read_signal(struct json_reader *reader, struct message *message)
{
	static const char *const signals[] = { "TERM", "KILL", "INT", "HUP", "QUIT" };
	struct json_object *out;
	const char *sig = NULL;
	size_t i = 0;

	if (!json_reader_require(reader, "sig") || !json_reader_string(reader, "sig", 16, &sig))
		return;
	while (i < sizeof signals / sizeof *signals && strcmp(signals[i], sig) != 0)
		i++;
	if (i == sizeof signals / sizeof *signals) {
		json_reader_fault(reader, "sig", "value_error", "must be one of TERM, KILL, INT, HUP, QUIT");
		return;
	}
	out = new_message("signal");
	json_object_object_add(out, "sig", json_object_new_string(sig));
	message->text = take_text(out);
}

static void
read_resize(struct json_reader *reader, struct message *message)
{
	struct json_object *out = new_message("resize");

	if (json_reader_require(reader, "rows"))
		read_cells(reader, "rows", 1, out);
	if (json_reader_require(reader, "cols"))
		read_cells(reader, "cols", 1, out);
	message->text = take_text(out);
}

static void
read_close(struct json_reader *reader, struct message *message)
{
	(void)reader;
	message->text = take_text(new_message("close"));
}

static const struct {
	const char *type;
	enum message_kind kind;
	void (*read)(struct json_reader *reader, struct message *message);
} kinds[] = {
	{ "init", MESSAGE_INIT, read_init },
	{ "stdin", MESSAGE_STDIN, read_stdin },
	{ "signal", MESSAGE_SIGNAL, read_signal },
	{ "resize", MESSAGE_RESIZE, read_resize },
	{ "close", MESSAGE_CLOSE, read_close },
};

/* The first fault in words: "rows: must be...". */
static int
fail_with_fault(struct json_reader *reader, const char *type, struct err *err)
{
	struct json_object *fault = json_object_array_get_idx(reader->faults, 0);
	struct json_object *loc = json_object_object_get(fault, "loc"), *field = json_object_array_get_idx(loc, 1);

	return err_set(err, ERR_INVALID, "%s: %s%s%s", type, field != NULL ? json_object_get_string(field) : "",
		field != NULL ? ": " : "", json_object_get_string(json_object_object_get(fault, "msg")));
}

static int
read_kind(struct json_object *body, struct message *message, struct err *err)
{
	struct json_reader reader;
	const char *type = NULL;
	int rc = 0;

	json_reader_init(&reader, body);
	if (!json_reader_string(&reader, "type", 64, &type)) {
		json_reader_fini(&reader);
		return err_set(err, ERR_INVALID, "a message has a \"type\", which is a string");
	}
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		if (strcmp(kinds[i].type, type) != 0)
			continue;
		message->kind = kinds[i].kind;
		kinds[i].read(&reader, message);
		if (reader.faults != NULL)
			rc = fail_with_fault(&reader, type, err);
		json_reader_fini(&reader);
		return rc;
	}
	json_reader_fini(&reader);
	return err_set(err, ERR_INVALID, "there is no message of type \"%s\"", type);
}

int
message_read(const char *text, size_t len, struct message *ret_message, struct err *err)
{
	struct message message = { 0 };
	AUTO_JSON struct json_object *body = json_parse(text, len, err);

	if (body == NULL)
		return -1;
	if (!json_object_is_type(body, json_type_object))
		return err_set(err, ERR_INVALID, "a message is a JSON object");
	if (read_kind(body, &message, err) < 0) {
		message_fini(&message);
		return -1;
	}
	*ret_message = message;
	return 0;
}

void
message_fini(struct message *message)
{
	free(message->text);
	free(message->data);
}

/* --- to the client --- */

struct frame *
message_text(const char *text)
{
	size_t len = strlen(text);
	struct frame *frame = frame_create(false, len);

	memcpy(frame_body(frame), text, len);
	return frame;
}

static struct frame *
take_frame(struct json_object *object)
{
	struct frame *frame = message_text(json_text(object, NULL));

	json_object_put(object);
	return frame;
}

struct frame *
message_output(const void *data, size_t len)
{
	static const char before[] = "{\"type\":\"stdout\",\"data\":\"", after[] = "\"}";
	size_t size = text_base64_size(len);
	struct frame *frame = frame_create(false, sizeof before - 1 + size + sizeof after - 1);
	char *p = (char *)frame_body(frame);

	memcpy(p, before, sizeof before - 1);
	p += sizeof before - 1;
	text_base64_encode(data, len, p);
	memcpy(p + size, after, sizeof after - 1);
	return frame;
}

struct frame *
message_error(const char *words)
{
	struct json_object *object = new_message("error");

	json_object_object_add(object, "message", json_object_new_string(words));
	return take_frame(object);
}

static void
add_int(struct json_reader *reader, const char *name, struct json_object *out)
{
	int64_t value;

	if (json_reader_int(reader, name, INT64_MIN, INT64_MAX, &value))
		json_object_object_add(out, name, json_object_new_int64(value));
}

static void
add_session(struct json_reader *reader, struct json_object *out)
{
	const char *session;

	if (json_reader_string(reader, "session", ID_UUID_SIZE - 1, &session) && id_is_uuid(session))
		json_object_object_add(out, "session", json_object_new_string(session));
}

static void
add_words(struct json_reader *reader, const char *name, struct json_object *out)
{
	const char *words;

	if (json_reader_string(reader, name, WORDS_MAX, &words))
		json_object_object_add(out, name, json_object_new_string(words));
}

static struct frame *
frame_for_client(struct json_reader *reader, const char *type)
{
	struct json_object *out = new_message(type);

	add_int(reader, "pid", out);
	add_session(reader, out);
	add_int(reader, "offset", out);
	add_int(reader, "code", out);
	add_words(reader, "message", out);
	return take_frame(out);
}

int
message_from_agent(const char *text, size_t len, struct agent_said *ret_said, struct err *err)
{
	static const char *const types[] = {
		[AGENT_WORD_READY] = "ready",
		[AGENT_WORD_EXIT] = "exit",
		[AGENT_WORD_ERROR] = "error",
		[AGENT_WORD_TAKEN] = "taken",
	};
	static const size_t count = sizeof types / sizeof *types;
	AUTO_JSON struct json_object *body = json_parse(text, len, err);
	struct json_reader reader;
	const char *type = "";
	size_t word = 0;

	if (body == NULL || !json_object_is_type(body, json_type_object))
		return err_set(err, ERR_INVALID, "the agent sent what is no message");
	json_reader_init(&reader, body);
	json_reader_string(&reader, "type", 64, &type);
	while (word < count && strcmp(types[word], type) != 0)
		word++;
	if (word < count) {
		*ret_said = (struct agent_said){ .word = (enum agent_word)word };
		json_reader_int(&reader, "window", 0, INT32_MAX, &ret_said->window);
		json_reader_int(&reader, "bytes", 0, INT64_MAX, &ret_said->taken);
		if (word != AGENT_WORD_TAKEN)
			ret_said->frame = frame_for_client(&reader, type);
	}
	json_reader_fini(&reader);
	return word < count ? 0 : err_set(err, ERR_INVALID, "the agent sent an unknown message");
}
