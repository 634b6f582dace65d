/* check.h - what can be found wrong with a configuration on this host without starting. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_MASTER_CHECK_H
#define ORCHARD_MASTER_CHECK_H

#include "base/cleanup.h"

struct config;
struct err;
struct service_user;

/* The service user, the directories, the address, the agent. Changes nothing. */
int check_host(const struct config *config, struct service_user *ret_user, struct err *err) MUSTCHECK;

#endif
