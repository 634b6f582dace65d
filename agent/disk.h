/* disk.h - whether the sandbox's files have any room left. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_DISK_H
#define ORCHARD_AGENT_DISK_H

#include <stdbool.h>

struct event_base;

/* Nothing can be written to its root: a quota, or the disk below it, is used up. */
bool disk_is_full(void);

/* Calls on_over whenever the other end of fd says that the sandbox takes more than it may; -1: never. For good. */
void disk_listen(struct event_base *base, int fd, void (*on_over)(void *arg), void *arg);

#endif
