/* cgroup_find.h - where the cgroup hierarchies are mounted, and where in them we are. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_CGROUP_FIND_H
#define ORCHARD_SPAWNER_CGROUP_FIND_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>

/* Where the processes of the server stand when they had to leave a v2 group for its children's sake. */
#define CGROUP_LEAF "orchard-server"

/*
 * The directory of our own cgroup in the v1 hierarchy of controller, or in the
 * v2 tree (controller NULL; from CGROUP_LEAF one level up); parent, unless "", takes the place of our own path.
 * false when there is no such hierarchy or it does not show our place.
 */
bool cgroup_find_dir(const char *controller, const char *parent, char *ret_path, size_t size) MUSTCHECK;

/* The same over given texts of /proc/self/cgroup and /proc/self/mountinfo. */
bool cgroup_find_in(const char *cgroups, const char *mounts, const char *controller, const char *parent,
	char *ret_path, size_t size) MUSTCHECK;

#endif
