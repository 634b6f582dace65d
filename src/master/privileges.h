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

/* Irreversible; the process is of no use when it fails. */
int privileges_drop(const struct service_user *user, struct err *err) MUSTCHECK;

#endif
