/*
 * spawn.h - vfork, the child's side of it, exec.
 *
 * The child shares the agent's memory until it executes: it only makes system
 * calls and writes its own stack and the report. The agent stands still meanwhile.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_SPAWN_H
#define ORCHARD_AGENT_SPAWN_H

#include "base/cleanup.h"

#include <sys/types.h>

struct user;

/* What the process as a whole holds ready for every child. */
struct spawn_ground {
	int null_fd; /* readable, gives EOF */
	int proc_fd; /* directory of /proc; -1: none */
	unsigned long nofile_soft, nofile_hard; /* limits as the agent found them */
};
/* Opens these; nothing is fatal. Closes the gaps among descriptors 0-2, hides all others from children. */
void spawn_ground_init(struct spawn_ground *ground);

struct spawn_descriptor {
	int from; /* -1: unused */
	int to;
};

struct spawn_plan {
	const struct spawn_ground *ground;
	char *const *paths; /* tried in turn */
	char *const *argv;
	char *const *envp;
	const char *base_dir; /* absolute */
	const char *cwd; /* relative to base_dir, or absolute; NULL: base_dir */
	const struct user *user;
	int cgroup_procs_fd; /* -1: none */
	struct spawn_descriptor descriptors[5]; /* 0, 1, 2 and what the program needs besides */
};

enum spawn_stage { SPAWN_STARTED, SPAWN_FORK, SPAWN_SETUP, SPAWN_CGROUP, SPAWN_USER, SPAWN_CWD, SPAWN_EXEC };

/* The pid, or -1 with where it failed and errno there. A child that failed has been waited for. */
pid_t spawn(const struct spawn_plan *plan, enum spawn_stage *ret_stage, int *ret_errno) MUSTCHECK;

#endif
