/*
 * tree.h - everything that one command started, and nothing else.
 *
 * With a cgroup the kernel keeps the account: jobs/<number>, killed by
 * cgroup.kill or, where that is missing, frozen and killed one by one. Making
 * and removing one costs more than all the rest of a start, so a few are kept
 * for the next commands; one in which a process lives is never given away. Without
 * one it is an estimate from /proc: the session, its descendants, and orphans
 * whose environment still names the job (ORCHARD_JOB_ID, set only then). A
 * process that left the session, lost its parents and changed its environment
 * escapes that; `is_exact` says which of the two it is. All who ask in one turn
 * of the event loop share one pass over /proc.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_TREE_H
#define ORCHARD_AGENT_TREE_H

#include "base/cleanup.h"
#include "base/id.h"

#include <stdbool.h>
#include <sys/types.h>

struct event_base;
struct group;
struct tree_keeper;

/* Makes and removes cgroups; one per process. cgroup_fd -1: none; proc_fd -1: no /proc. */
struct tree_keeper *tree_keeper_create(struct event_base *base, int cgroup_fd, int proc_fd);
void tree_keeper_free(struct tree_keeper *keeper);
/* Orphans have ended: some of the cgroups that wait for their last process may be empty now. */
void tree_keeper_on_orphans(struct tree_keeper *keeper);

struct tree {
	struct tree_keeper *keeper;
	char job_id[ID_UUID_SIZE];
	struct group *group; /* the cgroup; NULL: none */
	pid_t leader; /* 0 until it is started */
};

void tree_init(struct tree *tree, struct tree_keeper *keeper, const char *job_id);
bool tree_is_exact(const struct tree *tree);
/* Descriptors to be born in it by, and to join it by writing "0"; the tree's. -1: none. */
int tree_group_fd(const struct tree *tree);
int tree_procs_fd(const struct tree *tree);
/*
 * Sends sig to all of it; SIGTERM also wakes what is stopped. Returns how many are (were) alive, -1 unknown.
 * The estimate misses what was started in this turn of the loop: who wants the end of all asks again later.
 */
int tree_signal(struct tree *tree, int sig);
/* SIGKILL by whoever can't ask again: with a look at /proc of its own. Returns the same. */
int tree_kill_rest(struct tree *tree);
/* How many live processes it has now; -1 unknown. */
int tree_count(struct tree *tree);
/* Processor time of all that ever was in it, ended or not. False: unknown. */
bool tree_read_cpu(struct tree *tree, double *ret_user_s, double *ret_sys_s);
/* Gives the cgroup back now or, while background processes live in it, when it is empty. */
void tree_fini(struct tree *tree);

#endif
