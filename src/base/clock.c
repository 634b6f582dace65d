/* clock.c - reads the clocks; see clock.h for which is for what. */
/* SPDX-License-Identifier: MIT */
#include "base/clock.h"

#include <time.h>

static int64_t steady_offset_us; /* 0: not started */

static int64_t
clock_read_us(clockid_t id)
{
	struct timespec ts = { 0 };

	clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t
clock_boot_us(void)
{
	return clock_read_us(CLOCK_BOOTTIME);
}

int64_t
clock_boot_ms(void)
{
	return clock_boot_us() / 1000;
}

int64_t
clock_wall_us(void)
{
	return clock_read_us(CLOCK_REALTIME);
}

double
clock_wall(void)
{
	return (double)clock_wall_us() / 1e6;
}

void
clock_steady_start(int64_t offset_us)
{
	steady_offset_us = offset_us;
}

double
clock_steady(void)
{
	return steady_offset_us != 0 ? (double)(steady_offset_us + clock_boot_us()) / 1e6 : clock_wall();
}

struct timeval
clock_tv(int64_t ms)
{
	if (ms < 0)
		ms = 0;
	return (struct timeval){ .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };
}
