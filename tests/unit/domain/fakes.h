/* fakes.h - the driver, the agent and the clocks of the fixture. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_TEST_DOMAIN_FAKES_H
#define ORCHARD_TEST_DOMAIN_FAKES_H

#include <stdbool.h>
#include <stdint.h>

struct driver;
struct fake_job;
struct fixture;
struct http_exchange;

struct driver *fake_driver_create(struct fixture *f);

/* fake_agent_io.c: what commands write and read. False: not one of its routes. */
bool fake_agent_io(struct fixture *f, struct http_exchange *exchange, struct fake_job *job, const char *path,
	const char *query);
/* Reads that wait are answered. */
void fake_agent_polls(struct fixture *f);

/* fake_clock.c: time passes on all clocks at once; somebody sets the wall clock. Timers go by the real time. */
void fake_clock_reset(void);
void fake_clock_pass(int64_t ms);
void fake_clock_set_wall(int64_t by_ms);

#endif
