/*
 * ambient.h - what the agent finds itself in when a container runtime has started it: nobody else knows of the image's ENV,
 * WORKDIR and USER than the process that got them.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_AMBIENT_H
#define ORCHARD_AGENT_AMBIENT_H

#include <stddef.h>

#define AMBIENT_CONFIG "ORCHARD_AGENT_CONFIG"

/* The configuration out of the environment, where nothing of it stays, not even in /proc/PID/environ. NULL: none. */
char *ambient_take_config(void);

/*
 * The environment for commands: without the configuration, what Kubernetes says of its API server, and the HOME that the
 * runtime looked up for the agent's own user. *ret_count strings, NULL at the end, all malloc'ed.
 */
char **ambient_env(size_t *ret_count);

/* Where the agent was started. */
char *ambient_dir(void);

/* The counter of the container's own cgroup, as `oom_fd` of the configuration; -1: not seen from here. */
int ambient_oom_fd(void);

#endif
