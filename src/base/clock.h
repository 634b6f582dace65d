/*
 * clock.h - two clocks. Ages and deadlines use the boot clock, which no one can
 * set; the wall clock is only for what people read.
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

/* Milliseconds as the timeval that libevent wants; negative becomes 0. */
struct timeval clock_tv(int64_t ms);

#endif
