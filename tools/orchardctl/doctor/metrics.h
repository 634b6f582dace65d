/* metrics.h - values in the text of GET /metrics. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARDCTL_DOCTOR_METRICS_H
#define ORCHARDCTL_DOCTOR_METRICS_H

#include "base/cleanup.h"

#include <stdbool.h>

/* The sum of the lines of this name, whatever their labels; false: there is none. */
bool metrics_value(const char *text, const char *name, double *ret);
/* The first such label; NULL: there is none. malloc'ed. */
char *metrics_label(const char *text, const char *name, const char *label);

#endif
