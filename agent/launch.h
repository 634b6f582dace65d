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

struct launch {
	const struct agent_config *config;
	const struct spawn_ground *ground;
	const struct tree *tree;
	const struct exec_request *request;
};

struct launched {
	pid_t pid;
	int out_fd, err_fd; /* read ends, non-blocking, the caller's */
	bool tty_noise;
};

/* On failure the job is refused (verdict, exit code, error, stderr) and nothing runs. */
int launch_command(const struct launch *launch, struct job *job, struct launched *ret_launched) MUSTCHECK;

#endif
