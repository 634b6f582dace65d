/*
 * runtime.h - the OCI runtime that makes sandboxes, where local_runtime names one.
 *
 * It is used for two steps only, `create` and `start`. Killing and removing a sandbox is left to who owns its
 * cgroups, so a sandbox needs no runtime any more once it runs, and whatever the settings say later it can be removed.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_RUNTIME_RUNTIME_H
#define ORCHARD_RUNTIME_RUNTIME_H

#include "base/cleanup.h"

#include <limits.h>
#include <stddef.h>

struct config;
struct err;

enum runtime_kind { RUNTIME_BUILTIN, RUNTIME_CRUN, RUNTIME_RUNC };

struct runtime {
	enum runtime_kind kind;
	const char *name; /* as in the settings */
	char path[PATH_MAX]; /* its program; "" for RUNTIME_BUILTIN */
};

/* Finds what local_runtime means. A program that is missing or too old: ERR_INVALID, with what mends it. */
int runtime_find(const struct config *config, struct runtime *ret_runtime, struct err *err) MUSTCHECK;

#endif
