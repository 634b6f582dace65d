/* pty.h - a pair of pseudo terminals of the sandbox's own devpts. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_PTY_H
#define ORCHARD_AGENT_PTY_H

#include "base/cleanup.h"

#include <stdint.h>
#include <sys/types.h>

struct err;
struct user;

enum { PTY_MAX_SIDE = 65535 }; /* rows or columns; the kernel's own limit */

struct pty_size {
	uint16_t rows, cols;
};

/*
 * master is non-blocking; both are close-on-exec and nobody's controlling terminal. The size is set and the
 * slave belongs to user, before anything is started on it.
 */
int pty_open(const struct pty_size *size, const struct user *user, int *ret_master, int *ret_slave,
	struct err *err) MUSTCHECK;
int pty_resize(int master, const struct pty_size *size); /* -1 with errno */
/* Sends sig to the foreground process group; -1 with errno. */
int pty_signal(int master, int sig);

#endif
