/*
 * usage.h - what the container takes, as its own cgroups have counted it.
 *
 * They are looked for once, before anything of the sandbox runs and could put something else in their place. Only groups
 * that the agent itself is in are its container's: what is mounted there may as well be the node's, or another's.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_USAGE_H
#define ORCHARD_AGENT_USAGE_H

struct json_object;
struct usage;

#define USAGE_ROOT "/sys/fs/cgroup"

/* root: where cgroups are mounted, of version 2 or, each controller in a directory of its own, of version 1. */
struct usage *usage_open(const char *root);
void usage_close(struct usage *usage);

/* The answer of GET /usage: what is not counted is not in it. NULL: nothing is. */
struct json_object *usage_json(const struct usage *usage);

#endif
