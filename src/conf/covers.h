/* covers.h - what of /proc and /sys a sandbox finds read-only or covered. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CONF_COVERS_H
#define ORCHARD_CONF_COVERS_H

#include <stddef.h>

/* Ended by NULL. What a kernel lacks of them is fine. */
extern const char *const covers_readonly[];
extern const char *const covers_files[];
extern const char *const covers_dirs[];

/*
 * Also where sandbox_mask_paths is off: root of the sandbox owns the agent's files in /proc, and could make it the
 * first that goes when memory is short.
 */
extern const char *const covers_agent_readonly[];
extern const char *const covers_agent_files[];

/*
 * How hot processor number cpu runs, which tells what the neighbours do. One that is off has no such directory; most
 * hosts have none.
 */
void covers_processor(int cpu, char *buf, size_t size);

#endif
