/* frame.c - messages written and read, as docs/rest-api.md has them. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/terminal/frame.h"

#include "base/alloc.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text.h"
#include "orchardctl/terminal/terminal.h"

#include <json-c/json.h>
#include <limits.h>
#include <stdio.h>

static struct json_object *
new_frame(const char *type)
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

static void
add_text(struct json_object *object, const char *name, const char *value)
{
	if (value != NULL)
		json_object_object_add(object, name, json_object_new_string(value));
}

static void
add_size(struct json_object *object, unsigned rows, unsigned cols)
{
	json_object_object_add(object, "rows", json_object_new_int64(rows));
	json_object_object_add(object, "cols", json_object_new_int64(cols));
}

char *
frame_init(const struct terminal_spec *spec, unsigned rows, unsigned cols)
{
	struct json_object *object = new_frame("init");

	json_object_object_add(object, "cmd", json_object_get(spec->cmd));
	json_object_object_add(object, "env", json_object_get(spec->env));
	add_text(object, "cwd", spec->cwd);
	add_text(object, "user", spec->user);
	add_size(object, rows, cols);
	json_object_object_add(object, "login_shell", json_object_new_boolean(spec->login_shell));
	json_object_object_add(object, "detach", json_object_new_boolean(true));
	return take_text(object);
}

char *
frame_stdin(const void *data, size_t len)
{
	AUTO_FREE char *text = alloc_bytes(text_base64_size(len) + 1);

	text_base64_encode(data, len, text);
	return alloc_format("{\"type\":\"stdin\",\"data\":\"%s\"}", text);
}

char *
frame_resize(unsigned rows, unsigned cols)
{
	struct json_object *object = new_frame("resize");

	add_size(object, rows, cols);
	return take_text(object);
}

char *
frame_close(void)
{
	return take_text(new_frame("close"));
}

static void
read_ready(struct json_reader *reader, struct heard *heard)
{
	const char *session;

	heard->kind = HEARD_READY;
	if (json_reader_string(reader, "session", ID_UUID_SIZE - 1, &session))
		snprintf(heard->session, sizeof heard->session, "%s", session);
	json_reader_int(reader, "offset", 0, INT64_MAX, &heard->offset);
}

static void
read_output(struct json_reader *reader, struct heard *heard)
{
	const char *data;
	size_t len;

	heard->kind = HEARD_OUTPUT;
	if (json_reader_require(reader, "data") && json_reader_bytes(reader, "data", SIZE_MAX, &data, &len) &&
		text_base64_decode(data, len, &heard->data, &heard->len) != 0)
		json_reader_fault(reader, "data", "value_error", "is no base64");
}

static void
read_exit(struct json_reader *reader, struct heard *heard)
{
	int64_t code;

	heard->kind = HEARD_EXIT;
	if (json_reader_require(reader, "code") && json_reader_int(reader, "code", INT_MIN, INT_MAX, &code))
		heard->code = (int)code;
}

static void
read_error(struct json_reader *reader, struct heard *heard)
{
	const char *words = "no reason was given";

	heard->kind = HEARD_ERROR;
	json_reader_string(reader, "message", 65536, &words);
	snprintf(heard->words, sizeof heard->words, "%s", words);
	text_utf8_mend(heard->words);
}

static void
read_other(struct json_reader *reader, struct heard *heard)
{
	(void)reader;
	heard->kind = HEARD_OTHER;
}

static const struct {
	const char *type;
	void (*read)(struct json_reader *reader, struct heard *heard);
} kinds[] = {
	{ "ready", read_ready },
	{ "stdout", read_output },
	{ "exit", read_exit },
	{ "error", read_error },
	{ "", read_other },
};

int
frame_read(const char *text, size_t len, struct heard *ret_heard, struct err *err)
{
	enum { OTHER = sizeof kinds / sizeof *kinds - 1 };
	AUTO_JSON struct json_object *body = json_parse(text, len, err);
	struct heard heard = { 0 };
	struct json_reader reader;
	const char *type = "";
	size_t kind = 0;
	bool right;

	if (body == NULL || !json_object_is_type(body, json_type_object))
		return err_set(err, ERR_INVALID, "the server sent what is no message of a terminal");
	json_reader_init(&reader, body);
	json_reader_string(&reader, "type", 64, &type);
	while (kind < OTHER && strcmp(kinds[kind].type, type) != 0)
		kind++;
	kinds[kind].read(&reader, &heard);
	right = reader.faults == NULL;
	json_reader_fini(&reader);
	if (!right) {
		free(heard.data);
		return err_set(err, ERR_INVALID, "the server sent a wrong message \"%.32s\"", type);
	}
	*ret_heard = heard;
	return 0;
}
