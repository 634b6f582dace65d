/* host_limits.h - limits of the kernel that many sandboxes meet before any setting does. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_MASTER_HOST_LIMITS_H
#define ORCHARD_MASTER_HOST_LIMITS_H

#include "base/cleanup.h"

struct config;

/* Logs a warning for each that is below what the settings allow; with what to do. */
void host_limits_warn(const struct config *config);

#endif
