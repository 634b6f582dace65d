/* oom.h - how often the kernel killed for memory in this sandbox. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_OOM_H
#define ORCHARD_AGENT_OOM_H

#include <stdint.h>

/* oom_kill of memory.events (v2) or memory.oom_control (v1); 0 when fd is -1 or has none. */
uint64_t oom_count(int fd);

#endif
