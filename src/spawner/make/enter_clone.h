/* enter_clone.h - a child on a stack of its own that begins its life in a given v2 cgroup. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_ENTER_CLONE_H
#define ORCHARD_SPAWNER_ENTER_CLONE_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

struct clone_plan {
	uint64_t flags; /* CLONE_PARENT and CLONE_PIDFD are always among them */
	char *stack;
	size_t stack_size;
	int (*run)(void *arg); /* must not return */
	void *arg;
	int cgroup_fd; /* directory of the group; -1: the caller's own */
};

/* Whether it does, or the child has to join by itself: not every architecture's way to call it is here. */
bool enter_clone_takes_cgroup(void);
pid_t enter_clone(const struct clone_plan *plan, int *ret_pidfd, struct err *err) MUSTCHECK;

#endif
