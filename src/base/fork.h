/*
 * fork.h - what belongs to one process alone.
 *
 * Things that are costly to ask the kernel for each time, and wrong when a fork copies them: a child starts with them
 * empty. And the descriptors that a child is not to keep.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_BASE_FORK_H
#define ORCHARD_BASE_FORK_H

#include <stddef.h>
#include <sys/types.h>

/* Zeroed memory that is zero again in every child; never freed, some KiB in all. NULL: there is none (left). */
void *fork_private(size_t size);
/* getpid(), asked for once in each process. */
pid_t fork_pid(void);
/* Closes every descriptor of this process but 0-2 and these; sorts them. Negative ones are none. */
void fork_keep_only(int *kept, size_t count);

#endif
