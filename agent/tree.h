/*
 * tree.h - everything that one command started, and nothing else.
 *
 * With a cgroup the kernel keeps the account: jobs/<job id>, killed by
 * cgroup.kill or, where that is missing, frozen and killed one by one. Without
 * one it is an estimate from /proc: the session, its descendants, and orphans
 * whose environment still names the job (ORCHARD_JOB_ID, set only then). A
 * process that left the session, lost its parents and changed its environment
 * escapes that; `is_exact` says which of the two it is.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_TREE_H
#define ORCHARD_AGENT_TREE_H

#include "base/cleanup.h"
#include "base/id.h"

#include <stdbool.h>
#include <sys/types.h>

struct event_base;
struct tree_keeper;

/* Makes and removes cgroups; one per process. cgroup_fd -1: none; proc_fd -1: no /proc. */
struct tree_keeper *tree_keeper_create(struct event_base *base, int cgroup_fd, int proc_fd);
void tree_keeper_free(struct tree_keeper *keeper);
/* Orphans have ended: some of the cgroups that wait for removal may be empty now. */
void tree_keeper_on_orphans(struct tree_keeper *keeper);

struct tree {
	struct tree_keeper *keeper;
	char job_id[ID_UUID_SIZE];
	int dir_fd; /* the cgroup; -1: none */
	pid_t leader; /* 0 until it is started */
};

void tree_init(struct tree *tree, struct tree_keeper *keeper, const char *job_id);
bool tree_is_exact(const struct tree *tree);
/* A descriptor to join by writing "0"; the caller closes it. -1: none. */
int tree_open_procs(const struct tree *tree) MUSTCHECK;
/* Sends sig to all of it; SIGTERM also wakes what is stopped. Returns how many are (were) alive, -1 unknown. */
int tree_signal(struct tree *tree, int sig);
/* How many live processes it has now; -1 unknown. */
int tree_count(struct tree *tree);
/* Removes the cgroup now or, while background processes live in it, when it is empty. */
void tree_fini(struct tree *tree);

#endif
