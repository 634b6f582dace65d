/* cgroup_io.h - the share of a sandbox where its disk is short of time. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_CGROUP_IO_H
#define ORCHARD_SPAWNER_CGROUP_IO_H

#include "spawner/cgroup/cgroup.h"

/* Warns if the host was opened for this and can't do it. */
void cgroup_io_warn(const struct cgroup_host *host);
/*
 * Writes weight to the group at dir, as each file there takes it: a scheduler
 * that takes no more than 1000 gets 1000. Without such a file it does nothing.
 */
int cgroup_io_limit(int dir, int64_t weight, struct err *err) MUSTCHECK;

#endif
