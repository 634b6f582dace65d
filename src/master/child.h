/* child.h - one forked process: how it begins, and what it says before it is ready. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_MASTER_CHILD_H
#define ORCHARD_MASTER_CHILD_H

#include "base/cleanup.h"
#include "base/err.h"
#include "master/master.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct service_user;

/* What the master owns and every child is given or must not keep. */
struct child_share {
	struct shm *shm;
	struct notify *notify;
	const struct service_user *user;
	int listen_fd; /* for workers; -1 once the server stops */
	int spawner_fd; /* for the one that makes sandboxes */
	int terminal_fds[2]; /* terminal_msg.h: for workers, for gateways */
	int signal_fd; /* the master's own */
	int alive_read_fd; /* for all */
	int alive_write_fd; /* the master's own: its end is the sign of its life */
};

struct child {
	pid_t pid; /* 0: no process */
	struct proc_ref ref;
	int ready_fd; /* read end, non-blocking; -1 when there is no more to come */
	bool ready;
	int64_t started_ms;
	size_t said_len;
	char said[1 + sizeof(((struct err *)NULL)->msg)]; /* "R", or "E" and why not */
};

/*
 * Forks. The child resets its signals, drops its privileges, runs role->main and
 * exits; it never returns. foreign_fds are the master's ends of other children's pipes.
 */
struct child_plan {
	const struct child_share *share;
	const struct master_role *role;
	const struct config *config;
	uint64_t restarts; /* how many died at its place before */
	const int *foreign_fds;
	size_t foreign_count;
};
int child_start(const struct child_plan *plan, struct child *ret_child, struct err *err) MUSTCHECK;

/* Takes in what the child has said so far. True when that made it ready. */
bool child_listen(struct child *child);
/* Why it cannot work, in its own words, or NULL. */
const char *child_complaint(struct child *child);
/* After waitpid(): closes what is left and forgets the process. */
void child_forget(struct child *child);

/* The one that makes sandboxes serves its socket through every reload. */
bool child_makes_sandboxes(enum proc_role role);
/* "worker", "reaper"...: literals. */
const char *child_role_name(enum proc_role role);

#endif
