/* agent_config.h - the configuration an agent is started with, as a descriptor to read it from. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_AGENT_CONFIG_H
#define ORCHARD_SPAWNER_AGENT_CONFIG_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stdint.h>

struct err;
struct image;
struct make_order;

/* What it gets besides: descriptors, rights. */
struct agent_inherits {
	bool cgroup, oom, disk;
	bool clone3; /* commands must not have that */
	int64_t capabilities; /* that commands may have, when fewer than the agent; -1: all of them */
};

/* *ret_fd: anonymous memory, at its start. The field names are those of docs/agent-protocol.md. */
int agent_config_open(const struct make_order *order, const struct image *image,
	const struct agent_inherits *inherits, int *ret_fd, struct err *err) MUSTCHECK;

#endif
