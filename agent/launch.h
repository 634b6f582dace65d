/* launch.h - a request made into a process: user, environment, program, pipes; or the reason why not. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_LAUNCH_H
#define ORCHARD_AGENT_LAUNCH_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <sys/types.h>

struct agent_config;
struct exec_request;
struct job;
struct spawn_ground;
struct tree;
struct user_cache;

struct launch {
	const struct agent_config *config;
	const struct spawn_ground *ground;
	struct user_cache *users;
	const struct tree *tree;
	const struct exec_request *request; /* launch_again() needs none */
};

struct launch_parts;

struct launched {
	pid_t pid;
	int out_fd, err_fd; /* read ends, non-blocking, the caller's */
	int stdin_fd; /* write end, likewise; -1: the request wants no open stdin */
	/*
	 * The caller's, until the leader has ended. Holds the write ends open: so its end wakes the loop
	 * once, and not by each pipe.
	 */
	struct launch_parts *parts;
};

/* On failure the job is refused (verdict, exit code, error, stderr) and nothing runs. */
int launch_command(const struct launch *launch, struct job *job, struct launched *ret_launched) MUSTCHECK;
void launch_parts_free(struct launch_parts *parts); /* NULL is fine */
/* A login shell, or what its start files made of it, has not begun with the command. */
bool launch_is_unread(const struct launch_parts *parts);
/* After such a leader has ended: the command without start files, on the same pipes. Fails as launch_command(). */
int
launch_again(const struct launch *launch, struct launch_parts *parts, struct job *job, pid_t *ret_pid) MUSTCHECK;

#endif
