/*
 * lock_file.h - one server for one state_dir and one run_dir.
 *
 * The lock is an flock on a descriptor that every child inherits on purpose: it is
 * free when the last process of a server is gone, not when its master is. Only then
 * may the next server touch the shared memory. Agents never have it (close-on-exec).
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_MASTER_LOCK_FILE_H
#define ORCHARD_MASTER_LOCK_FILE_H

#include "base/cleanup.h"

#include <stdint.h>

struct err;

/*
 * Takes path and writes our pid into it. Waits at most wait_ms for a server that is
 * leaving. ERR_EXISTS names its pid and `what` ("state_dir /x"). The descriptor
 * cannot write. TERM and INT must be blocked; one that arrives ends the wait.
 */
int lock_file_take(const char *path, const char *what, int64_t wait_ms, int *ret_fd, struct err *err) MUSTCHECK;

#endif
