/* listen.h - the socket that is served: inherited, or TCP bound here. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_LISTEN_H
#define ORCHARD_AGENT_LISTEN_H

#include "base/cleanup.h"

struct err;

/* fd >= 0: that one. Else address is "a.b.c.d:port" or "[v6]:port". The descriptor, non-blocking, or -1. */
int listen_open(int fd, const char *address, struct err *err) MUSTCHECK;

#endif
