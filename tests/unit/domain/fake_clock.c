/* fake_clock.c - the clocks, in the place of base/clock.c at link time: the real ones, set by the test. */
/* SPDX-License-Identifier: MIT */
#include "fakes.h"
#include "base/clock.h"

#include <time.h>

static int64_t boot_shift_ms, wall_shift_ms, steady_offset_us;

void
fake_clock_reset(void)
{
	boot_shift_ms = wall_shift_ms = 0;
}

void
fake_clock_pass(int64_t ms)
{
	boot_shift_ms += ms;
	wall_shift_ms += ms;
}

void
fake_clock_set_wall(int64_t by_ms)
{
	wall_shift_ms += by_ms;
}

static int64_t
read_us(clockid_t id)
{
	struct timespec ts = { 0 };

	clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t
clock_boot_us(void)
{
	return read_us(CLOCK_BOOTTIME) + boot_shift_ms * 1000;
}

int64_t
clock_boot_ms(void)
{
	return clock_boot_us() / 1000;
}

int64_t
clock_wall_us(void)
{
	return read_us(CLOCK_REALTIME) + wall_shift_ms * 1000;
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
	return (double)(steady_offset_us + clock_boot_us()) / 1e6;
}

struct timeval
clock_tv(int64_t ms)
{
	if (ms < 0)
		ms = 0;
	return (struct timeval){ .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };
}
