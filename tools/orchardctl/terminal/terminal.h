/*
 * terminal.h - a program at a terminal of the sandbox, shown in ours.
 *
 * The session is opened so that it outlives its connection: one that breaks is made anew, and the output goes on at
 * the byte where it was. It is hung up when orchardctl leaves, but for "~d" and SIGKILL.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARDCTL_TERMINAL_TERMINAL_H
#define ORCHARDCTL_TERMINAL_TERMINAL_H

#include "base/cleanup.h"

#include <stdbool.h>

struct ctl;
struct json_object;

/* All of it is borrowed; NULL where nothing is asked for. */
struct terminal_spec {
	const char *sandbox;
	struct json_object *cmd; /* list of strings; NULL: the user's shell */
	struct json_object *env; /* of strings */
	const char *cwd, *user;
	bool login_shell;
	const char *session; /* attach to this one instead */
	double reconnect_seconds; /* how long to try when the connection breaks */
};

enum { TERMINAL_RECONNECT_SECONDS = 300 };

/*
 * Until the program ends, or somebody ends it; the exit status: the program's, 128 + N for signal N,
 * CTL_NOT_RUN when it could not be started. Catches signals (ctl->signals) if that was not done before.
 */
int terminal_run(struct ctl *ctl, const struct terminal_spec *spec) MUSTCHECK;

/*
 * What a body of POST .../exec asks for: command, env, cwd, user, login_shell. A command that is a string becomes one of
 * the sandbox's sh; TERM and COLORTERM are ours unless env says otherwise. The spec borrows from the body.
 */
void terminal_spec_read(struct terminal_spec *spec, struct json_object *body);

#endif
