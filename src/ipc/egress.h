/* egress.h - where a sandbox with a network may connect to: as it is recorded, and handed to a driver. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_IPC_EGRESS_H
#define ORCHARD_IPC_EGRESS_H

#include "base/ip_dest.h"

#include <stdbool.h>
#include <stdint.h>

enum { EGRESS_MAX = 64 };

struct egress {
	bool limited; /* false: the internet; true: only what follows, and DNS */
	uint32_t count;
	struct ip_dest allow[EGRESS_MAX];
};

#endif
