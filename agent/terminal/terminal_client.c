/* terminal_client.c - the messages of docs/agent-protocol.md, "Terminals". */
/* SPDX-License-Identifier: MIT */
#include "agent/terminal/terminal_client.h"

#include "agent/terminal/terminal.h"
#include "agent/terminal/terminal_request.h"
#include "agent/terminal/terminal_set.h"
#include "agent/terminal/ws_conn.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"

#include <event2/buffer.h>
#include <event2/event.h>
#include <json-c/json.h>
#include <stdlib.h>

enum { CLIENT_INIT_MS = 10000, CLIENT_PIECE = 16 << 10, CLIENT_MAX_TEXT = 1 << 20 };
enum {
	CLIENT_CLOSE_NORMAL = 1000,
	CLIENT_CLOSE_BAD_INIT = 4400,
	CLIENT_CLOSE_TAKEN = 4409,
	CLIENT_CLOSE_INTERNAL = 4500
};

struct terminal_client {
	struct terminal_client_options options;
	struct ws_conn *ws;
	struct event *deadline; /* of the first message */
	struct terminal_viewer viewer;
	struct terminal *terminal; /* NULL: not yet, or no more */
	uint64_t offset; /* of the output, what comes next */
	uint64_t heard; /* bytes of input */
	uint64_t told; /* so many of them have been taken, as the peer knows */
	bool closed; /* our close was sent */
	bool told_exit;
};

/* Takes body. */
static void
client_send(struct terminal_client *client, struct json_object *body)
{
	size_t len;
	const char *text = json_object_to_json_string_length(body, JSON_C_TO_STRING_PLAIN, &len);

	ws_conn_send_text(client->ws, text, len);
	json_object_put(body);
}

static struct json_object *
client_message(const char *type)
{
	struct json_object *body = json_object_new_object();

	json_object_object_add(body, "type", json_object_new_string(type));
	return body;
}

static void
client_send_error(struct terminal_client *client, const char *words)
{
	struct json_object *body = client_message("error");

	json_object_object_add(body, "message", json_object_new_string(words));
	client_send(client, body);
}

static void
client_close(struct terminal_client *client, int code, const char *reason)
{
	client->closed = true;
	event_del(client->deadline);
	ws_conn_close(client->ws, code, reason);
}

static void
client_refuse(struct terminal_client *client, int code, const char *words)
{
	client_send_error(client, words);
	client_close(client, code, "");
}

static void
client_send_exit(struct terminal_client *client, int code, struct json_object *usage)
{
	struct json_object *body = client_message("exit");

	json_object_object_add(body, "code", json_object_new_int(code));
	if (usage != NULL)
		json_object_object_add(body, "usage", usage);
	client_send(client, body);
	client_close(client, CLIENT_CLOSE_NORMAL, "");
}

/* What the terminal has and the connection takes; behind the last byte the exit. */
static void
client_pump(struct terminal_client *client)
{
	struct terminal *terminal = client->terminal;
	const char *bytes;
	size_t len = 0;

	if (terminal == NULL || client->closed)
		return;
	while (ws_conn_has_room(client->ws) && (len = terminal_output(terminal, &client->offset, &bytes)) > 0) {
		len = len < CLIENT_PIECE ? len : CLIENT_PIECE;
		ws_conn_send_binary(client->ws, bytes, len);
		client->offset += len;
	}
	terminal_hold(terminal, len > 0 || !ws_conn_has_room(client->ws));
	if (len > 0 || !terminal_has_ended(terminal) || terminal_output(terminal, &client->offset, &bytes) > 0)
		return;
	client->told_exit = true;
	client_send_exit(client, terminal_exit_code(terminal), terminal_usage(terminal));
}

static void
client_on_output(void *arg)
{
	client_pump(arg);
}

static void
client_on_input_room(void *arg)
{
	struct terminal_client *client = arg;

	ws_conn_pause(client->ws, false);
}

/* Rarely: a peer that may send half of the room is never held up. */
static void
client_tell_input(struct terminal_client *client)
{
	size_t waiting = client->terminal == NULL ? 0 : terminal_waiting(client->terminal);
	uint64_t taken = client->heard > waiting ? client->heard - waiting : 0;
	struct json_object *body;

	if (!client->options.counted || client->closed || taken < client->told + TERMINAL_INPUT_SURE / 2)
		return;
	client->told = taken;
	body = client_message("taken");
	json_object_object_add(body, "bytes", json_object_new_uint64(taken));
	client_send(client, body);
}

static void
client_on_input(void *arg)
{
	client_tell_input(arg);
}

static void
client_on_taken(void *arg)
{
	struct terminal_client *client = arg;

	client->terminal = NULL;
	ws_conn_pause(client->ws, false);
	if (!client->closed)
		client_refuse(client, CLIENT_CLOSE_TAKEN, "the session was attached to from elsewhere");
}

/* The first byte that follows is at the offset that is told. */
static void
client_attach(struct terminal_client *client, struct terminal *terminal)
{
	struct json_object *body = client_message("ready");
	const char *bytes;

	event_del(client->deadline);
	client->terminal = terminal;
	terminal_attach(terminal, &client->viewer);
	terminal_output(terminal, &client->offset, &bytes);
	json_object_object_add(body, "pid", json_object_new_int64(terminal_pid(terminal)));
	json_object_object_add(body, "session", json_object_new_string(terminal_id(terminal)));
	json_object_object_add(body, "offset", json_object_new_uint64(client->offset));
	if (client->options.counted)
		json_object_object_add(body, "window", json_object_new_int(TERMINAL_INPUT_SURE));
	client_send(client, body);
	client_pump(client);
}

static void
client_open(struct terminal_client *client, const char *text, size_t len)
{
	struct terminal_request request;
	struct terminal *terminal;
	int exit_code = 0;
	struct err err;

	if (terminal_request_read(text, len, &request, &err) < 0) {
		client_refuse(client, CLIENT_CLOSE_BAD_INIT, err.msg);
		return;
	}
	if (terminal_set_start(client->options.set, &request, &terminal, &exit_code, &err) == 0) {
		client_attach(client, terminal);
	} else if (exit_code == 0) {
		client_refuse(client, CLIENT_CLOSE_INTERNAL, err.msg);
	} else {
		client_send_error(client, err.msg);
		client_send_exit(client, exit_code, NULL);
	}
	terminal_request_fini(&request);
}

static void
client_obey(struct terminal_client *client, const struct terminal_message *message)
{
	switch (message->type) {
	case TERMINAL_RESIZE:
		terminal_resize(client->terminal, &message->size);
		break;
	case TERMINAL_SIGNAL:
		terminal_signal(client->terminal, message->sig);
		break;
	case TERMINAL_CLOSE:
		terminal_hang_up(client->terminal);
		break;
	}
}

static void
client_on_text(const char *text, size_t len, void *arg)
{
	struct terminal_client *client = arg;
	struct terminal_message message;
	struct err err;

	if (client->terminal == NULL)
		client_open(client, text, len);
	else if (terminal_message_read(text, len, &message, &err) == 0)
		client_obey(client, &message);
	else
		client_send_error(client, err.msg);
}

static void
client_on_binary(struct evbuffer *piece, void *arg)
{
	struct terminal_client *client = arg;

	if (client->terminal == NULL) {
		client_refuse(client, CLIENT_CLOSE_BAD_INIT, "the first message must be init");
		return;
	}
	client->heard += evbuffer_get_length(piece);
	if (!terminal_input(client->terminal, piece))
		ws_conn_pause(client->ws, true);
	client_tell_input(client);
}

static void
client_on_room(void *arg)
{
	client_pump(arg);
}

static void
client_leave(struct terminal_client *client, bool delivered)
{
	struct terminal *terminal = client->terminal;

	client->terminal = NULL;
	if (terminal != NULL)
		terminal_leave(terminal, &client->viewer, delivered);
}

static void
client_on_left(void *arg)
{
	struct terminal_client *client = arg;

	event_del(client->deadline);
	client_leave(client, false);
	client->closed = true;
}

static void
client_fini(struct terminal_client *client)
{
	event_free(client->deadline);
	free(client);
}

static void
client_on_gone(bool answered, void *arg)
{
	struct terminal_client *client = arg;

	client_leave(client, answered && client->told_exit);
	client->options.on_gone(client, client->options.arg);
	client_fini(client);
}

static void
client_on_deadline(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	client_refuse(arg, CLIENT_CLOSE_BAD_INIT, "no init message came in time");
}

static void
client_connect(struct terminal_client *client)
{
	const struct terminal_client_options *options = &client->options;
	struct ws_conn_options ws = {
		.base = options->base,
		.fd = options->fd,
		.read = options->read,
		.first = options->first,
		.max_text = CLIENT_MAX_TEXT,
		.ping_ms = options->ping_ms,
		.on_text = client_on_text,
		.on_binary = client_on_binary,
		.on_room = client_on_room,
		.on_left = client_on_left,
		.on_gone = client_on_gone,
		.arg = client,
	};

	client->ws = ws_conn_create(&ws);
}

struct terminal_client *
terminal_client_create(const struct terminal_client_options *options)
{
	struct terminal_client *client = alloc_zero(1, sizeof *client);
	struct timeval deadline = clock_tv(CLIENT_INIT_MS);

	client->options = *options;
	client->offset = options->offset;
	client->viewer = (struct terminal_viewer){
		.on_output = client_on_output,
		.on_room = client_on_input_room,
		.on_input = client_on_input,
		.on_taken = client_on_taken,
		.arg = client,
	};
	client->deadline = evtimer_new(options->base, client_on_deadline, client);
	if (client->deadline == NULL || event_add(client->deadline, &deadline) < 0)
		abort();
	client_connect(client);
	if (options->terminal != NULL)
		client_attach(client, options->terminal);
	return client;
}

void
terminal_client_free(struct terminal_client *client)
{
	client_leave(client, false);
	ws_conn_free(client->ws);
	client_fini(client);
}
