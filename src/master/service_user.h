/* service_user.h - the account that every process but the master and the spawner drops to. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_MASTER_SERVICE_USER_H
#define ORCHARD_MASTER_SERVICE_USER_H

#include "base/cleanup.h"

#include <sys/types.h>

struct err;

enum { SERVICE_USER_GROUPS = 64 };

struct service_user {
	uid_t uid;
	gid_t gid;
	int group_count;
	gid_t groups[SERVICE_USER_GROUPS];
};

/* Looked up once, before the first fork: children never ask the name service. */
int service_user_find(const char *name, struct service_user *ret_user, struct err *err) MUSTCHECK;
/* Who we are, in a server that was not started as root. */
int service_user_self(struct service_user *ret_user, struct err *err) MUSTCHECK;

#endif
