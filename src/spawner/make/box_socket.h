/*
 * box_socket.h - run_dir/sandboxes/<name>/agent.sock: where the service reaches the agent of a sandbox.
 *
 * The agent inherits the socket; no host directory is visible inside, so user code can put nothing where the service
 * connects to. That of a blank has the blank's name first.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_BOX_SOCKET_H
#define ORCHARD_SPAWNER_BOX_SOCKET_H

#include "base/cleanup.h"

struct err;
struct site;

/* *ret_fd listens. ERR_EXISTS when the name is taken. What of it was made on failure is removed by box_socket_remove. */
int box_socket_make(const struct site *site, const char *name, int *ret_fd, struct err *err) MUSTCHECK;
/* Gives it another name, which must be free (ERR_EXISTS). */
int box_socket_rename(const struct site *site, const char *name, const char *to, struct err *err) MUSTCHECK;
/* Nothing there is fine. */
int box_socket_remove(const struct site *site, const char *name, struct err *err) MUSTCHECK;

#endif
