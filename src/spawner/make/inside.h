/* inside.h - the steps of a new init between its first instruction and exec; nothing here allocates. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_INSIDE_H
#define ORCHARD_SPAWNER_INSIDE_H

#include "base/cleanup.h"
#include "spawner/make/enter.h"

#include <stdbool.h>
#include <stddef.h>

/* Each returns NULL, or the step that failed in words with errno set. */

/* Mounts that are made before the root is known, and move into it. */
struct inside_ground {
	int proc, dev;
	int sys; /* -1: not allowed here */
};

/*
 * inside_root.c. First the ground: an empty read-only tree with /proc, /sys and /dev. alone: the host's mounts are gone;
 * else they hang in it until the root is built, which takes one step less.
 */
const char *inside_build_ground(const struct site *site, const int mounts[ENTER_GROUND], bool alone,
	struct inside_ground *ret_ground) MUSTCHECK;
/* Then that root becomes "/", with all of that. Once more: another one in its place. */
const char *inside_build_root(const struct inside_ground *ground, int root) MUSTCHECK;
/* Then what of it is the sandbox's alone; resolv -1: none. */
const char *inside_furnish_root(const struct enter_words *words, int resolv) MUSTCHECK;
/* Gives the image at "/" the small files that it lacks; best effort. network: resolv.conf will be mounted over. */
void inside_fill_gaps(const char *id, bool network);
/* inside_self.c: cgroups, ids, loopback, limits. */
/* With its own /proc in place, and writable: nobody inside makes a namespace any more, by whatever call. */
const char *inside_forbid_namespaces(void) MUSTCHECK;
const char *inside_join_cgroups(const struct cgroup_box *cgroup) MUSTCHECK;
const char *inside_take_ids(void) MUSTCHECK;
const char *inside_set_up(const struct site *site) MUSTCHECK;
/* Capabilities, no_new_privs, the system call filter: nothing after this but exec. */
const char *inside_drop_rights(const struct site *site) MUSTCHECK;

#endif
