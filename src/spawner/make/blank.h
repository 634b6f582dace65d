/*
 * blank.h - an init that stands in its groups and namespaces before anybody has asked for it.
 *
 * It has a socket, and lacks only what depends on the sandbox: limits, files, network, the agent. It may stand on the root of an image.
 * It ends with its helper.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_BLANK_H
#define ORCHARD_SPAWNER_BLANK_H

#include "base/cleanup.h"
#include "spawner/make/blank_root.h"
#include "spawner/cgroup/cgroup.h"
#include "spawner/make/enter.h"
#include "spawner/make/make.h"

#include <stdbool.h>

struct err;
struct site;

struct blank {
	struct blank_order order;
	struct cgroup_box cgroup;
	struct enter_child child;
	int userns;
	int listen_fd;
	struct blank_root root;
};

/* On failure everything is taken back, as far as it can be: a later sweep of strays finds the rest by its name. */
int blank_make(const struct site *site, const struct blank_order *order, struct blank *ret_blank,
	struct err *err) MUSTCHECK;
/* Its directories are there. */
bool blank_is_whole(const struct site *site, const struct blank *blank);
void blank_discard(const struct site *site, struct blank *blank);

/* Steps that one which is made at once needs, too. After enter_start: */
int blank_take_ids(const struct site *site, uint32_t slot, const struct enter_child *child, int *ret_userns,
	struct err *err) MUSTCHECK;
/* root -1: none yet. wait: as of enter_stand. */
int blank_stand(const struct site *site, struct enter_child *child, int userns, int root, bool wait,
	struct err *err) MUSTCHECK;

#endif
