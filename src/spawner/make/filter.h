/* filter.h - the system calls that a sandbox does not get. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_FILTER_H
#define ORCHARD_SPAWNER_FILTER_H

#include "base/cleanup.h"

#include <linux/filter.h>
#include <stdbool.h>

struct config;
struct err;

/*
 * Compiles the table of conf/walls.h, less what the settings allow; ret_program->filter is malloc'ed, NULL with
 * sandbox_seccomp off. Loaded as it is in each sandbox. agent_clones: without the rule about clone3, which the agent
 * then loads for each command.
 */
int filter_build(
	const struct config *config, bool agent_clones, struct sock_fprog *ret_program, struct err *err) MUSTCHECK;

#endif
