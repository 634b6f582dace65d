/*
 * group.h - one cgroup2 directory below jobs/, and those that are kept empty for the next commands.
 *
 * A group has one owner at a time: a tree, the list of those that wait for
 * their last process, or the pool. Only the kernel's word that nothing lives in
 * it (cgroup.events) brings it into the pool, and nothing but the agent can put
 * a process in: the filesystem is not mounted in a sandbox.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_GROUP_H
#define ORCHARD_AGENT_GROUP_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct group_cpu {
	int64_t user_us, sys_us;
};

struct group {
	char name[24];
	int dir_fd, procs_fd, events_fd, stat_fd; /* -1: closed */
	bool spoiled; /* its state may not be a new one's: to be removed */
	struct group_cpu seen, before; /* in all; of that, by earlier commands */
	TAILQ_ENTRY(group) link;
};

TAILQ_HEAD(group_list, group);

struct group_pool {
	int jobs_fd; /* -1: no cgroups */
	uint64_t made;
	unsigned int idle_count;
	struct group_list idle, occupied;
};

/* jobs_fd stays the caller's. */
void group_pool_init(struct group_pool *pool, int jobs_fd);
/* Forgets them all; the directories stay. */
void group_pool_fini(struct group_pool *pool);
/* An empty one; NULL with errno. */
struct group *group_take(struct group_pool *pool) MUSTCHECK;
/* Into the pool or, while something lives in it, onto the list of the occupied. */
void group_give_back(struct group_pool *pool, struct group *group);
/* Those of the occupied that are empty now go. True when some still are not. */
bool group_pool_sweep(struct group_pool *pool);
/* Since the group was taken. False: the kernel does not tell. */
bool group_read_cpu(struct group *group, struct group_cpu *ret_cpu);

#endif
