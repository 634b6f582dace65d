/* replica_id.h - which of several servers at one Redis, or of one namespace, this is: a random id that stays with state_dir. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_MASTER_REPLICA_ID_H
#define ORCHARD_MASTER_REPLICA_ID_H

#include "base/cleanup.h"
#include "base/id.h"

struct config;
struct err;

/* By the master, before the others run. */
int replica_id_make(const struct config *config, struct err *err) MUSTCHECK;
int replica_id_read(const struct config *config, char ret_id[ID_UUID_SIZE], struct err *err) MUSTCHECK;

#endif
