/*
 * privileges.h - a worker or reaper gives up everything it does not need, for good.
 *
 * Order matters: the bounding set while we still may, then groups, gid, uid, then the
 * capability sets, no_new_privs, and last the system call filter.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_MASTER_PRIVILEGES_H
#define ORCHARD_MASTER_PRIVILEGES_H

#include "base/cleanup.h"

struct err;
struct service_user;

enum privileges_keep {
	PRIVILEGES_RUN_PROGRAMS = 1 /* execve stays: what it starts has no more rights than it has itself */
};

/*
 * Irreversible; the process is of no use when it fails. keep: enum privileges_keep or 0. In a server that was not started
 * as root, user is who we are already, and only the rest is given up.
 */
int privileges_drop(const struct service_user *user, unsigned keep, struct err *err) MUSTCHECK;

#endif
