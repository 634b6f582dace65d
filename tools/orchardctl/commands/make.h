/* make.h - sandboxes made and waited for; of create and run. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARDCTL_COMMANDS_MAKE_H
#define ORCHARDCTL_COMMANDS_MAKE_H

#include "base/cleanup.h"

struct client;
struct err;
struct json_object;

/* POST /sandboxes; the answer, owned by the caller, or NULL. */
struct json_object *make_sandbox(struct client *client, struct json_object *body, struct err *err) MUSTCHECK;
/*
 * Waits until commands can run in it; the sandbox, owned by the caller. NULL: it failed, which err tells, or it was
 * not ready after the time that it has.
 */
struct json_object *
make_wait_ready(struct client *client, const char *id, double timeout_s, struct err *err) MUSTCHECK;

#endif
