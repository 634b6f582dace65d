/*
 * terminal_launch.h - a first message made into a process on a terminal, or into the reason why not.
 *
 * User, environment, directory and the search for the program are those of a
 * command (launch.h). TERM is xterm-256color unless the environment has one.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_TERMINAL_LAUNCH_H
#define ORCHARD_AGENT_TERMINAL_LAUNCH_H

#include "base/cleanup.h"

#include <sys/types.h>

struct agent_config;
struct err;
struct spawn_ground;
struct terminal_request;
struct tree;
struct user_cache;

struct terminal_launch {
	const struct agent_config *config;
	const struct spawn_ground *ground;
	struct user_cache *users;
	const struct tree *tree;
	const struct terminal_request *request;
	const char *session;
};

struct terminal_launched {
	pid_t pid;
	int master, slave; /* the caller's; see pty.h */
};

/* -1: *ret_exit_code stands for it as for a command, and nothing runs. */
int terminal_launch(const struct terminal_launch *launch, struct terminal_launched *ret_launched,
	int *ret_exit_code, struct err *err) MUSTCHECK;

#endif
