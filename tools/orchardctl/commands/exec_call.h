/* exec_call.h - a command in a sandbox, from its command line to its exit status; of exec and run. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARDCTL_COMMANDS_EXEC_CALL_H
#define ORCHARDCTL_COMMANDS_EXEC_CALL_H

#include "base/cleanup.h"

#include <stdbool.h>

struct args;
struct ctl;
struct json_object;

struct exec_call {
	struct json_object *body; /* owned: of POST .../exec */
	bool by_shell, input, detach, terminal;
	char **words; /* borrowed: the command; at a terminal there may be none: then it is the user's shell */
	int count;
};

void exec_call_init(struct exec_call *call);
void exec_call_fini(struct exec_call *call);
/* The options and words fit each other; else it has told by args_fail(). */
bool exec_call_check(const struct exec_call *call, struct args *args) MUSTCHECK;
/* As spec_take_exec(). */
int exec_call_take(struct exec_call *call, struct args *args, int code) MUSTCHECK;
/* The word that was just read and all behind it are the command. */
void exec_call_take_words(struct exec_call *call, struct args *args);
/* Runs it. ctl->signals must be caught. The exit status; CTL_NOT_RUN when it could not be run. */
int exec_call_run(struct exec_call *call, struct ctl *ctl, const char *sandbox_id) MUSTCHECK;

#endif
