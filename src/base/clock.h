/*
 * clock.h - three clocks. Ages and deadlines use the boot clock, which no one can
 * set; what is kept beyond a boot ages by the steady clock; the wall clock is
 * only for what people read.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_BASE_CLOCK_H
#define ORCHARD_BASE_CLOCK_H

#include <stdint.h>
#include <sys/time.h>

int64_t clock_boot_ms(void); /* CLOCK_BOOTTIME */
int64_t clock_boot_us(void);
double clock_wall(void); /* Unix seconds with fraction */
int64_t clock_wall_us(void);

/*
 * Unix seconds as the wall clock would say if nobody had set it since the offset (wall less boot clock, microseconds)
 * was taken. Set before the first fork, for this process and its children; until then it is the wall clock.
 */
double clock_steady(void);
void clock_steady_start(int64_t offset_us);

/* Milliseconds as the timeval that libevent wants; negative becomes 0. */
struct timeval clock_tv(int64_t ms);

#endif
