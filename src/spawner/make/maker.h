/*
 * maker.h - how the first process of a sandbox comes to be: by our own code, or by an OCI runtime.
 *
 * make.c prepares the same for all of them (record, writable layer, socket, cgroups, configuration)
 * and takes the same back; a maker stands between.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_MAKER_H
#define ORCHARD_SPAWNER_MAKER_H

#include "base/cleanup.h"
#include "image/image.h"
#include "spawner/box_state.h"
#include "spawner/cgroup/cgroup.h"
#include "spawner/make/enter.h"
#include "spawner/make/make.h"

struct blank;
struct err;
struct site;

/* What one sandbox needs while it is made. */
struct making {
	const struct site *site;
	const struct make_order *order;
	struct box_state state;
	struct image image;
	struct blank *blank; /* what it is made of, while that is untouched; NULL: of nothing */
	bool has_root; /* its init stands on it already */
	struct enter_child child; /* of the builtin maker */
	struct cgroup_box cgroup;
	int box_fd, listen_fd, config_fd, spool_fd, disk_fd; /* disk_fd -1: none */
	make_started_f *started;
	void *started_arg;
	int64_t step_began, step_us[MAKE_STEPS];
};

struct maker {
	/* What the making itself needs beyond the sandbox's own limits. NULL: nothing. */
	void (*widen)(struct cgroup_limits *limits);
	/*
	 * Starts the init in its namespaces and cgroups, wired to its network, with the agent's descriptors; a
	 * rehearsal ends before the agent. Calls making_is_started() as soon as there is a process. On failure the
	 * caller kills what there is.
	 */
	int (*start)(struct making *m, struct err *err) MUSTCHECK;
};

extern const struct maker maker_builtin, maker_oci;

/* make.c: notes the process, and tells whoever must know of it. */
void making_is_started(struct making *m, pid_t pid);

/* make.c: what has passed since the last call was that step. */
void making_step_done(struct making *m, enum make_step step);

/* Size of /dev/shm. What lies there counts as memory, and no kill frees it: the rest is for processes, and the agent. */
static inline int64_t
making_shm_bytes(const struct making *m)
{
	return m->order->spec.memory_bytes / 2;
}

#endif
