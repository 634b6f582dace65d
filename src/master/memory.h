/* memory.h - the shared memory that a server is started with, and what would be lost with the one before. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_MASTER_MEMORY_H
#define ORCHARD_MASTER_MEMORY_H

#include "base/cleanup.h"
#include "master/master.h"

/*
 * Records in shared memory of another version or size can't be read, and a sandbox without its record is removed.
 * ERR_CONFLICT while such sandboxes live, unless options->discard_sandboxes; then, and where the shared memory is gone
 * altogether, the log says how many will go. Changes nothing.
 */
int memory_check(const struct config *config, const struct master_options *options, struct err *err) MUSTCHECK;
/* The same for `orchardd -t`, which warns: a reload keeps the sizes of the server that runs. */
void memory_warn(const struct config *config, const struct master_options *options);
/* *ret_adopted: that of the server before. */
int memory_open(const struct config *config, struct shm **ret_shm, bool *ret_adopted, struct err *err) MUSTCHECK;

#endif
