/* workdir.h - the default directory of commands exists and belongs to their user. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_WORKDIR_H
#define ORCHARD_AGENT_WORKDIR_H

#include "base/cleanup.h"

struct err;

/* Makes path with its parents when missing; only the last directory, if made here, is given to the user. */
int workdir_make(const char *path, const char *user, struct err *err) MUSTCHECK;

#endif
