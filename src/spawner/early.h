/*
 * early.h - children that ended before their helper had told whose they are.
 *
 * What failed leaves its entry, and another process may get its pid: hence the start time, and, since that counts in
 * hundredths of a second, when the death was seen. The oldest gives way.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_EARLY_H
#define ORCHARD_SPAWNER_EARLY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { EARLY_DEATHS = 64 };

struct early_deaths {
	struct {
		pid_t pid; /* 0: none */
		uint64_t pid_start;
		int64_t seen_us;
		int status;
	} list[EARLY_DEATHS];
	unsigned next;
};

/* Whether who died, with that start time, is the one that is known by known_start: 0 when it was gone before anybody could look. */
bool early_deaths_same(uint64_t known_start, uint64_t pid_start);
/* Microseconds are of CLOCK_BOOTTIME. */
void early_deaths_add(struct early_deaths *early, pid_t pid, uint64_t pid_start, int64_t seen_us, int status);
/* Takes out the death of a child that was not made before since_us; *ret_status as waitpid gave it. */
bool
early_deaths_take(struct early_deaths *early, pid_t pid, uint64_t known_start, int64_t since_us, int *ret_status);

#endif
