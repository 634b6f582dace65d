/* inside.h - the steps of a new init between its first instruction and exec; nothing here allocates. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_INSIDE_H
#define ORCHARD_SPAWNER_INSIDE_H

#include "base/cleanup.h"
#include "spawner/enter.h"

#include <stddef.h>

/* Each returns NULL, or the step that failed in words with errno set. */

/* inside_root.c: the sandbox's root becomes "/", with /proc, /sys and /dev; the host's mounts are gone. */
const char *inside_build_root(const struct enter_plan *plan, const int mounts[ENTER_MOUNTS]) MUSTCHECK;
/* inside_self.c: cgroups, ids, name, loopback, limits. */
const char *inside_join_cgroups(const struct cgroup_box *cgroup) MUSTCHECK;
const char *inside_take_ids(void) MUSTCHECK;
const char *inside_set_up(const struct enter_plan *plan) MUSTCHECK;
/* Capabilities, no_new_privs, the system call filter: nothing after this but exec. */
const char *inside_drop_rights(const struct site *site) MUSTCHECK;

#endif
