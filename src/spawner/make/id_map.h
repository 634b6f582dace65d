/* id_map.h - which ids of the host a user namespace's ids are. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_ID_MAP_H
#define ORCHARD_SPAWNER_ID_MAP_H

#include "base/cleanup.h"

#include <sys/types.h>

struct err;

/* The namespace of pid: SITE_IDS ids from first on, users and groups. */
int id_map_write(pid_t pid, uid_t first, struct err *err) MUSTCHECK;
/* The user namespace of pid, to see mounts through. */
int id_map_open(pid_t pid, int *ret_userns, struct err *err) MUSTCHECK;

#endif
