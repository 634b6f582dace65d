/*
 * birth.h - a child that shares the agent's memory until it executes or ends, and the wait for that.
 *
 * In vfork the parent can do nothing but wait, not even for a child that user code has stopped, and would stand
 * still with it: so this waits by itself. A stopped child is told to go on, and killed when it is stopped over and
 * over. Not for several threads.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_BIRTH_H
#define ORCHARD_AGENT_BIRTH_H

#include <sys/types.h>

/* The child calls entry, which must execute or _exit. The pid, or -1 with errno. */
pid_t birth(int (*entry)(void *arg), void *arg);
/* The same, into the cgroup whose directory this is, with its first breath; -1 where that is not to be had. */
pid_t birth_in_group(int (*entry)(void *arg), void *arg, int cgroup_fd);

#endif
