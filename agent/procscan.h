/* procscan.h - the processes of one command as far as /proc can tell; for hosts without a cgroup. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_PROCSCAN_H
#define ORCHARD_AGENT_PROCSCAN_H

#include <sys/types.h>

/* The environment variable by which orphans of a command are known. */
#define PROCSCAN_MARKER "ORCHARD_JOB_ID"

struct procscan;

/* All live processes of /proc as they are now, for any number of procscan_signal. NULL: no /proc. */
struct procscan *procscan_take(int proc_fd);
void procscan_free(struct procscan *scan);

/*
 * Sends sig (0: nothing) to the session of leader, to all descendants of its
 * members, and to adopted orphans whose environment names job_id. SIGTERM is
 * followed by SIGCONT, and spares the group of leader, which the caller tells. Returns how many live ones there were when scan was taken.
 */
int procscan_signal(struct procscan *scan, pid_t leader, const char *job_id, int sig);

#endif
