/*
 * config.h - what the agent is told once, at its start.
 *
 * One JSON object, read to its end before anything else. Of the token only its
 * SHA-256 is kept, which is all that a container's environment may carry.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_CONFIG_H
#define ORCHARD_AGENT_CONFIG_H

#include "base/cleanup.h"
#include "base/text.h"

#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

struct err;

struct agent_config {
	char *sandbox_id, *sandbox_uid;
	char token_sha256[TEXT_SHA256_HEX_SIZE];
	char *listen; /* "tcp:ADDRESS:PORT", or "": not said here */
	char **env; /* NAME=value, NULL at the end */
	char *user; /* "": root */
	char *working_dir; /* never "" */
	int cgroup_fd, oom_fd, spool_fd, disk_fd; /* -1: none */
	int64_t journal_jobs, journal_bytes, spool_total_bytes;
	int64_t capabilities; /* that commands may have, a bit each; -1: whatever the agent was started with */
	bool deny_clone3; /* to commands; the agent has it */
	bool in_container; /* a container runtime started it, which may show it its own cgroups */
	int64_t request_max_bytes; /* body of an exec */
	int64_t terminal_max; /* sessions at once */
	int64_t terminal_keep_ms; /* an ended session that was detached from */
	int64_t terminal_grace_ms; /* from HUP to KILL */
	int64_t terminal_ping_ms; /* of silence, until a peer is pinged */
	int64_t terminal_replay_bytes; /* all replays together */
	int64_t terminal_input_bytes; /* all input that programs have not taken */
};

/* Reads fd to its end; the descriptor stays the caller's. */
int agent_config_read(int fd, struct agent_config *ret_config, struct err *err) MUSTCHECK;
/*
 * From the environment variable ORCHARD_AGENT_CONFIG, which is gone then. Environment, directory and user are those of
 * the agent's own process as far as it does not say them. ERR_NOT_FOUND: there is no such variable.
 */
int agent_config_take(struct agent_config *ret_config, struct err *err) MUSTCHECK;
void agent_config_fini(struct agent_config *config);

#endif
