/*
 * spawn.h - the child's way from the agent's memory to exec.
 *
 * The child shares the agent's memory until it executes: it only makes system
 * calls and writes its own stack and the report. The agent stands still meanwhile.
 * No signal has a handler in the agent, so none can run in such a child.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_SPAWN_H
#define ORCHARD_AGENT_SPAWN_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <sys/types.h>

struct user;

enum { SPAWN_DESCRIPTORS = 7 };

/* What the process as a whole holds ready for every child. */
struct spawn_ground {
	int null_fd; /* readable, gives EOF */
	int proc_fd; /* directory of /proc; -1: none */
	int score_fd; /* the agent's own oom_score_adj; -1: none */
	bool inherits; /* has inheritable capabilities, which commands must not get */
	bool deny_clone3; /* the agent's filter lets it through, commands must not have it; set by the caller */
	bool plain_root; /* the agent's ids are all 0, and it has no other group */
	unsigned long nofile_soft, nofile_hard; /* limits as the agent found them */
};
/*
 * Opens these; nothing is fatal. Closes the gaps among descriptors 0-2, hides all others from children.
 * What every child shall have the agent takes on itself, so that no child must: default dispositions,
 * umask 022, no core dumps. Nothing may change them later.
 */
void spawn_ground_init(struct spawn_ground *ground);
/*
 * The kernel counts the agent's peak of memory as its child's, whose memory it is until exec. Afterwards
 * the peak is what the agent holds now.
 */
void spawn_ground_forget_peak(const struct spawn_ground *ground);
/* The agent's oom_score_adj is below 0 at this moment. */
bool spawn_ground_is_protected(const struct spawn_ground *ground);

/*
 * In a forked child that goes on without exec: the user's ids, groups and capabilities, his limits, no protection
 * from the memory killer; for good. 0 or -1 with errno.
 */
int spawn_become(const struct spawn_ground *ground, const struct user *user) MUSTCHECK;

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
	int cgroup_fd; /* directory of the group to be born in; -1: none */
	int cgroup_procs_fd; /* the same, to join where nobody can be born into one; -1: none */
	bool raise_score; /* an oom_score_adj below 0 becomes 0 */
	bool terminal; /* descriptor 0 becomes the controlling terminal */
	struct spawn_descriptor
		descriptors[SPAWN_DESCRIPTORS]; /* 0, 1, 2 and what the program needs besides, rising */
};

enum spawn_stage { SPAWN_STARTED, SPAWN_FORK, SPAWN_SETUP, SPAWN_CGROUP, SPAWN_USER, SPAWN_CWD, SPAWN_EXEC };

/* The pid, or -1 with where it failed and errno there. A child that failed has been waited for. */
pid_t spawn(const struct spawn_plan *plan, enum spawn_stage *ret_stage, int *ret_errno) MUSTCHECK;

#endif
