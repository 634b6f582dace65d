/* hold.c - a time since when, and how long that counts. */
/* SPDX-License-Identifier: MIT */
#include "agent/hold.h"

#include "base/clock.h"

void
hold_init(struct hold *hold, int64_t grace_ms)
{
	*hold = (struct hold){ .grace_ms = grace_ms, .heard_ms = clock_boot_ms() };
}

void
hold_hear(struct hold *hold)
{
	hold->heard_ms = clock_boot_ms();
}

int64_t
hold_left_ms(const struct hold *hold)
{
	int64_t left = hold->heard_ms + hold->grace_ms - clock_boot_ms();

	return hold->grace_ms > 0 && left > 0 ? left : 0;
}
