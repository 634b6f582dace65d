/* agent_config.h - the configuration an agent is started with, as a descriptor to read it from. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_AGENT_CONFIG_H
#define ORCHARD_SPAWNER_AGENT_CONFIG_H

#include "base/cleanup.h"

#include <stdbool.h>

struct err;
struct image;
struct make_order;

/* *ret_fd: anonymous memory, at its start. The field names are those of docs/agent-protocol.md. */
int agent_config_open(const struct make_order *order, const struct image *image, bool has_cgroup, bool has_oom,
	int *ret_fd, struct err *err) MUSTCHECK;

#endif
