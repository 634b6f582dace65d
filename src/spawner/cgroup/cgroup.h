/*
 * cgroup.h - what limits a sandbox, and what can kill all of it at once.
 *
 * Everything lies below `orchard-<hash of state_dir>` under our own cgroup (or
 * cgroup_parent), one directory per sandbox in every hierarchy that matters:
 * the one tree of v2; cpu, memory, pids and perhaps blkio of v1; or v1 for the limits and the
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

/* Without those before CGROUP_NEEDED no sandbox is made. */
enum cgroup_controller { CGROUP_CPU, CGROUP_MEMORY, CGROUP_PIDS, CGROUP_IO, CGROUP_CONTROLLERS };
enum { CGROUP_NEEDED = CGROUP_IO, CGROUP_JOINS = CGROUP_CONTROLLERS + 1, CGROUP_USUAL_WEIGHT = 100 };
/* The v1 hierarchies by their controller, and then the v2 tree. */
enum { CGROUP_V2 = CGROUP_CONTROLLERS, CGROUP_HIERARCHIES, CGROUP_EARLIER_MAX = 8 };

/* Where sandboxes of an earlier start are, see cgroup_earlier.h; -1: not there. */
struct cgroup_place {
	int fd[CGROUP_HIERARCHIES]; /* our directory in that hierarchy */
	int above_fd[CGROUP_HIERARCHIES];
};

struct cgroup_host {
	const char *mode; /* "v2", "v1", "hybrid", "none" */
	bool share_io; /* CGROUP_IO is wanted */
	int v1_fd[CGROUP_CONTROLLERS]; /* our directory in that hierarchy, or -1 */
	int v2_fd; /* our directory in the v2 tree, or -1 */
	int above_fd[CGROUP_HIERARCHIES]; /* where our directories lie; or -1 */
	char name[32]; /* of our directory, the same everywhere */
	bool v2_limit[CGROUP_CONTROLLERS];
	struct cgroup_place earlier[CGROUP_EARLIER_MAX];
	unsigned earlier_count;
	char missing[128]; /* "memory, pids": controllers that nobody offers us; "" */
	char why[256]; /* what stood in the way of the missing ones */
};

struct cgroup_limits {
	int32_t cpu_milli;
	int64_t memory_bytes;
	int64_t pids_max;
	int64_t cpu_weight; /* 1 to 10000; 0 or CGROUP_USUAL_WEIGHT: the kernel's default */
	int64_t io_weight; /* the same */
};

/* Descriptors of one sandbox's groups while it is being made; -1 where there is none. */
struct cgroup_box {
	int join_fd
		[CGROUP_JOINS]; /* files its init writes "0" to; [0] is v2, for an init that was not cloned into it */
	int dir_fd; /* v2: the sandbox's directory, for the agent */
	int oom_fd; /* the file with the oom_kill counter */
};

/* Holds nothing yet; may be closed. */
void cgroup_host_init(struct cgroup_host *host);
/* What is asked of the host. */
struct cgroup_wish {
	const char *parent; /* "": our own group */
	const char *state_dir;
	bool share_io; /* weights of io, where the host has them; a warning where not */
};

/* Finds the hierarchies and makes our directories. Fails only where nothing can be made. */
int cgroup_host_open(struct cgroup_host *host, const struct cgroup_wish *wish, struct err *err) MUSTCHECK;
/* Removes our directories too, where no sandbox is left in them. */
void cgroup_host_close(struct cgroup_host *host);

/*
 * Makes the groups of a sandbox with its limits (NULL: none yet, see cgroup_box_limit); the parts that the agent manages
 * belong to owner. id is their name here and below.
 */
int cgroup_box_make(const struct cgroup_host *host, const char *id, const struct cgroup_limits *limits, uid_t owner,
	struct cgroup_box *ret_box, struct err *err) MUSTCHECK;
void cgroup_box_init(struct cgroup_box *box);
void cgroup_box_close(struct cgroup_box *box);
/*
 * Once its agent runs: moves that into a group of its own, and gives the commands a limit that leaves it room to work.
 * Waits for the kernel, so nobody should wait for this. Harmless when the sandbox has gone meanwhile, and once more.
 */
void cgroup_box_settle(const struct cgroup_host *host, const char *id, pid_t agent);

/* Changes the limits of groups that are there. Memory may have to be freed first: then it fails, and can be tried again. */
int cgroup_box_limit(const struct cgroup_host *host, const char *id, const struct cgroup_limits *limits,
	struct err *err) MUSTCHECK;

/* SIGKILL to all that is in it; none is fine. */
void cgroup_box_kill(const struct cgroup_host *host, const char *id);
/* Removes the groups, waiting up to timeout_ms for the last process to leave them. */
int cgroup_box_remove(const struct cgroup_host *host, const char *id, int timeout_ms, struct err *err) MUSTCHECK;
/* Whether its memory limit has killed something. */
bool cgroup_box_oom_killed(const struct cgroup_host *host, const char *id);
/* -1: not counted here. */
struct cgroup_stat {
	int64_t cpu_us;
	int64_t memory_bytes, memory_peak_bytes; /* as the limit counts */
	int64_t pids;
};
void cgroup_box_stat(const struct cgroup_host *host, const char *id, struct cgroup_stat *ret_stat);
/*
 * A directory in which one group per sandbox lies (in any hierarchy), to look for strays: of place 0 on, where new ones are,
 * until false. -1: nothing is left there.
 */
bool cgroup_host_dir(const struct cgroup_host *host, unsigned place, int *ret_dir);

#endif
