/*
 * enter.h - the process that becomes the init of a sandbox, from clone to exec.
 *
 * It shares the memory of the helper that made it (no page is copied), so the
 * two take turns: while one works the other waits on the channel. What it needs
 * is prepared before; what needs its user namespace comes in one message with
 * descriptors. It answers by its exec (the channel closes) or by a failure.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_ENTER_H
#define ORCHARD_SPAWNER_ENTER_H

#include "base/cleanup.h"
#include "spawner/cgroup.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct site;

enum enter_mount { ENTER_ROOT, ENTER_DEV, ENTER_MOUNTS };

struct enter_plan {
	const struct site *site;
	const char *id; /* host name */
	const struct cgroup_box *cgroup;
	int listen_fd; /* becomes 3 */
	int config_fd; /* becomes 4 */
	int64_t shm_bytes;
	bool rehearsal; /* ends where it would execute the agent */
};

struct enter_child {
	pid_t pid;
	int pidfd;
	int channel; /* our end */
};

/*
 * Starts the child in namespaces of its own; the caller's parent becomes its
 * parent. plan must live until enter_finish or enter_abort.
 */
int enter_start(const struct enter_plan *plan, struct enter_child *ret_child, struct err *err) MUSTCHECK;
/* Lets it go on, with the mounts; returns once it has executed the agent, or failed. */
int enter_finish(struct enter_child *child, const int mounts[ENTER_MOUNTS], struct err *err) MUSTCHECK;
/* SIGKILL and wait until it is gone; also after enter_finish has failed. */
void enter_abort(struct enter_child *child);

#endif
