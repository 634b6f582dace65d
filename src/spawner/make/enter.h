/*
 * enter.h - the process that becomes the init of a sandbox, from clone to exec.
 *
 * It shares the memory of the helper that made it (no page is copied), so the
 * two take turns: while one works the other waits on the channel. It is given
 * its ground first (namespaces, ids, /proc, /sys, /dev: all that is the same for
 * every sandbox; a root, too, where one is likely) and may then wait for as long as its helper lives; the sandbox
 * itself comes in a second message. It answers by its exec (the channel closes)
 * or by a failure.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_ENTER_H
#define ORCHARD_SPAWNER_ENTER_H

#include "base/cleanup.h"
#include "spawner/cgroup/cgroup.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct site;

/* Detached mounts, see pieces.h. The root is the sandbox's as far as anybody knows, or -1. */
enum enter_ground { ENTER_BASE, ENTER_DEV, ENTER_FIRST_ROOT, ENTER_GROUND };

struct enter_words {
	char id[64]; /* host name */
	int64_t shm_bytes;
	bool rehearsal; /* ends where it would execute the agent */
};

/* Of the sandbox; -1: none. */
enum enter_fd {
	ENTER_ROOT, /* a detached mount; -1: it stands on the first one */
	ENTER_RESOLV, /* likewise; may be -1 */
	ENTER_LISTEN, /* becomes 3 */
	ENTER_CONFIG, /* 4 */
	ENTER_GROUP, /* 5; may be -1 */
	ENTER_OOM, /* 6; may be -1 */
	ENTER_SPOOL, /* 7 */
	ENTER_DISK, /* 8; may be -1 */
	ENTER_FDS
};

struct enter_child {
	pid_t pid;
	int pidfd;
	int channel; /* our end */
	char *stack;
};

/*
 * Turns a directory of the host into a mount of its own that hangs nowhere: the agent may hold it, and whatever
 * path leads through /proc/self/fd, ".." ends at its top. It is O_PATH then. -1 (none) stays.
 */
int enter_cut_loose(int *dir, struct err *err) MUSTCHECK;
/* Starts the child in namespaces of its own; the caller's parent becomes its parent. cgroup must live until it has its ground. */
int enter_start(const struct site *site, const struct cgroup_box *cgroup, struct enter_child *ret_child,
	struct err *err) MUSTCHECK;
/*
 * After its ids are written. wait: returns when it stands there; without, enter_finish must follow at once, and tells
 * what went wrong.
 */
int enter_stand(struct enter_child *child, const int ground[ENTER_GROUND], bool wait, struct err *err) MUSTCHECK;
/* Whether it is still there, waiting. */
bool enter_is_standing(const struct enter_child *child);
/* Lets it become that sandbox; returns once it has executed the agent, or failed. */
int enter_finish(struct enter_child *child, const struct enter_words *words, const int fds[ENTER_FDS],
	struct err *err) MUSTCHECK;
/* After enter_finish went well: what is left here of it. */
void enter_leave(struct enter_child *child);
/* SIGKILL and wait until it is gone; at any time, also after enter_finish has failed. */
void enter_abort(struct enter_child *child);

#endif
