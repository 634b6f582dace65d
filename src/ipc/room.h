/*
 * room.h - memory of the mapping that is taken when it is needed.
 *
 * What grows with use (records, entries) is a hole in the file at first. Whoever touched a hole on a full file
 * system would die of SIGBUS; so before anything there is touched the kernel is asked for it, and may say no. Each
 * structure keeps in shared memory how far it has asked (`ready`), and touches nothing beyond. That word is raised
 * after the memory is there and never lowered, without a lock: killed before, somebody asks once more.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_IPC_ROOM_H
#define ORCHARD_IPC_ROOM_H

#include "base/cleanup.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct room {
	char *first; /* entry 0 */
	size_t stride;
	uint32_t total; /* entries there are places for */
	_Atomic uint32_t *ready; /* entries whose memory is there */
};

/* Some more entries than `ready`, which the caller has found used up; also when another process makes the room. False: no memory. */
bool room_grow(const struct room *room, uint32_t ready) MUSTCHECK;
/* Whether this kernel can be asked; else all has to be taken at the start. `page` is a page of a shared mapping. */
bool room_can_grow(void *page);

#endif
