/* terminal_request.h - what a client says in text: the first message, and those that follow. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_TERMINAL_REQUEST_H
#define ORCHARD_AGENT_TERMINAL_REQUEST_H

#include "agent/terminal/pty.h"
#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>

struct err;
struct json_object;

/* The first message. Strings and objects are body's. */
struct terminal_request {
	struct json_object *body; /* owned */
	struct json_object *cmd; /* array of strings; NULL: the user's shell */
	struct json_object *env; /* NULL: none */
	const char *cwd; /* NULL: the default directory */
	const char *user; /* NULL: the configuration's */
	struct pty_size size;
	bool login_shell;
	bool detach;
};

/* ERR_INVALID names every wrong field. */
int terminal_request_read(
	const char *text, size_t len, struct terminal_request *ret_request, struct err *err) MUSTCHECK;
void terminal_request_fini(struct terminal_request *request);

enum terminal_message_type { TERMINAL_RESIZE, TERMINAL_SIGNAL, TERMINAL_CLOSE };

struct terminal_message {
	enum terminal_message_type type;
	struct pty_size size;
	int sig;
};

int terminal_message_read(
	const char *text, size_t len, struct terminal_message *ret_message, struct err *err) MUSTCHECK;

#endif
