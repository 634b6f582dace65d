/* filter.h - the system calls that a sandbox does not get. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_FILTER_H
#define ORCHARD_SPAWNER_FILTER_H

#include "base/cleanup.h"

#include <linux/filter.h>

struct err;

/* Compiles the table; ret_program->filter is malloc'ed. Loaded as it is in each sandbox. */
int filter_build(struct sock_fprog *ret_program, struct err *err) MUSTCHECK;

#endif
