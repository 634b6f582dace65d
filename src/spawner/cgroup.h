/*
 * cgroup.h - what limits a sandbox, and what can kill all of it at once.
 *
 * Everything lies below `orchard-<hash of state_dir>` under our own cgroup (or
 * cgroup_parent), one directory per sandbox in every hierarchy that matters:
 * the one tree of v2; cpu, memory and pids of v1; or v1 for the limits and the
 * v2 tree beside it for killing and for the agent's own groups (hybrid).
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_CGROUP_H
#define ORCHARD_SPAWNER_CGROUP_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

enum cgroup_controller { CGROUP_CPU, CGROUP_MEMORY, CGROUP_PIDS, CGROUP_CONTROLLERS };
enum { CGROUP_JOINS = CGROUP_CONTROLLERS + 1 };

struct cgroup_host {
	const char *mode; /* "v2", "v1", "hybrid", "none" */
	int v1_fd[CGROUP_CONTROLLERS]; /* our directory in that hierarchy, or -1 */
	int v2_fd; /* our directory in the v2 tree, or -1 */
	int above_fd[CGROUP_CONTROLLERS + 1]; /* where our directories lie: v1, then v2; or -1 */
	char name[32]; /* of our directory, the same everywhere */
	bool v2_limit[CGROUP_CONTROLLERS];
	char missing[128]; /* "memory, pids": controllers that nobody offers us; "" */
	char why[256]; /* what stood in the way of the missing ones */
};

struct cgroup_limits {
	int32_t cpu_milli;
	int64_t memory_bytes;
	int64_t pids_max;
};

/* Descriptors of one sandbox's groups while it is being made; -1 where there is none. */
struct cgroup_box {
	int join_fd[CGROUP_JOINS]; /* cgroup.procs files its init writes "0" to, v2 first */
	int leaf_fd; /* v2: cgroup.procs of agent/, written once the cgroup namespace is made */
	int dir_fd; /* v2: the sandbox's directory, for the agent */
	int oom_fd; /* the file with the oom_kill counter */
};

/* Finds the hierarchies and makes our directories. Fails only where nothing can be made. */
int
cgroup_host_open(struct cgroup_host *host, const char *parent, const char *state_dir, struct err *err) MUSTCHECK;
/* Removes our directories too, where no sandbox is left in them. */
void cgroup_host_close(struct cgroup_host *host);

/* Makes the groups of a sandbox with its limits; the parts that the agent manages belong to owner. */
int cgroup_box_make(const struct cgroup_host *host, const char *id, const struct cgroup_limits *limits, uid_t owner,
	struct cgroup_box *ret_box, struct err *err) MUSTCHECK;
void cgroup_box_init(struct cgroup_box *box);
void cgroup_box_close(struct cgroup_box *box);
/* Once its init is in place: a limit for the commands that leaves the agent room to work. */
void cgroup_box_seal(const struct cgroup_host *host, const char *id, int64_t pids_max);

/* SIGKILL to all that is in it; none is fine. */
void cgroup_box_kill(const struct cgroup_host *host, const char *id);
/* Removes the groups, waiting up to timeout_ms for the last process to leave them. */
int cgroup_box_remove(const struct cgroup_host *host, const char *id, int timeout_ms, struct err *err) MUSTCHECK;
/* Whether its memory limit has killed something. */
bool cgroup_box_oom_killed(const struct cgroup_host *host, const char *id);
/* The directory in which one group per sandbox lies (any hierarchy), to look for strays; -1: none. */
int cgroup_host_dir(const struct cgroup_host *host);

#endif
