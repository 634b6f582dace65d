/* fakes.h - the driver and the agent of the fixture. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_TEST_DOMAIN_FAKES_H
#define ORCHARD_TEST_DOMAIN_FAKES_H

struct driver;
struct fixture;

struct driver *fake_driver_create(struct fixture *f);

#endif
