/*
 * init.h - the duties of PID 1: every child is waited for, TERM from outside is obeyed.
 *
 * Signals are blocked (SIGPIPE too) and read as data; there are no handlers. SIGTERM counts as
 * PID 1 only when it comes from outside the sandbox's PID namespace (its sender
 * has no number here), so user code cannot stop the agent.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_INIT_H
#define ORCHARD_AGENT_INIT_H

#include "base/cleanup.h"

#include <stdint.h>
#include <sys/types.h>

struct err;
struct event_base;
struct init;
struct rusage;

struct init_options {
	struct event_base *base;
	/* A child has ended and was waited for. */
	void (*on_exit)(pid_t pid, int status, const struct rusage *usage, void *arg);
	/* All that had ended were waited for. */
	void (*on_reaped)(void *arg);
	/* First SIGTERM that counts. */
	void (*on_term)(void *arg);
	void *arg;
};

/* Before anything else: blocks signals, hides memory from other processes, adopts orphans when not PID 1. */
void init_early(void);
/* Their bounding set becomes these (a bit each), where the agent was given more; -1: stays. */
int init_limit_commands(int64_t capabilities, struct err *err) MUSTCHECK;
int init_create(const struct init_options *options, struct init **ret_init, struct err *err) MUSTCHECK;
void init_free(struct init *init);

/*
 * The end: as PID 1 TERM to all, a moment, KILL. Otherwise nothing but the caller's own children is
 * ours to end. done is called when it is time to exit.
 */
void init_shut_down(struct init *init, void (*done)(void *arg), void *arg);

#endif
