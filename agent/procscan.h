/* procscan.h - the processes of one command as far as /proc can tell; for hosts without a cgroup. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_PROCSCAN_H
#define ORCHARD_AGENT_PROCSCAN_H

#include <sys/types.h>

/* The environment variable by which orphans of a command are known. */
#define PROCSCAN_MARKER "ORCHARD_JOB_ID"

/*
 * Sends sig (0: nothing) to the session of leader, to all descendants of its
 * members, and to adopted orphans whose environment names job_id. SIGTERM is
 * followed by SIGCONT. Returns how many live ones there were; -1: no /proc, only the group was reached.
 */
int procscan_signal(int proc_fd, pid_t leader, const char *job_id, int sig);

#endif
