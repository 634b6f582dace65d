/* check.h - what can be found wrong with a configuration on this host without starting. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_MASTER_CHECK_H
#define ORCHARD_MASTER_CHECK_H

#include "base/cleanup.h"

struct config;
struct master_options;
struct err;
struct service_user;

/* The service user, the directories, the address, the agent, the runtime, and what options have checked. Changes nothing. */
int check_host(const struct config *config, const struct master_options *options, struct service_user *ret_user,
	struct err *err) MUSTCHECK;

#endif
