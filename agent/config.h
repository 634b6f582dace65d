/*
 * config.h - what the agent is told once, at its start.
 *
 * One JSON object, read to its end before anything else: the token must not
 * stay readable in a descriptor, an argument or the environment.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_CONFIG_H
#define ORCHARD_AGENT_CONFIG_H

#include "base/cleanup.h"

#include <stddef.h>
#include <stdint.h>

struct err;

struct agent_config {
	char *sandbox_id, *sandbox_uid, *token;
	char **env; /* NAME=value, NULL at the end */
	char *user; /* "": root */
	char *working_dir; /* never "" */
	int cgroup_fd, oom_fd; /* -1: none */
	int64_t journal_jobs, journal_bytes;
};

/* Reads fd to its end; the descriptor stays the caller's. */
int agent_config_read(int fd, struct agent_config *ret_config, struct err *err) MUSTCHECK;
void agent_config_fini(struct agent_config *config);

#endif
