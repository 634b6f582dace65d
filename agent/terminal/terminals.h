/* terminals.h - the routes below /pty, and what the rest of the agent tells the sessions. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_TERMINALS_H
#define ORCHARD_AGENT_TERMINALS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct http_exchange;
struct rusage;
struct terminal_set_options;
struct terminals;

struct terminals *terminals_create(const struct terminal_set_options *options);
/* What still runs is killed; connections are closed. */
void terminals_free(struct terminals *terminals);
/* path: behind "/pty". Answers, or takes the connection. */
void terminals_serve(struct terminals *terminals, struct http_exchange *exchange, const char *path);
/* The sandbox is being ended: no session is opened any more. */
void terminals_stop(struct terminals *terminals);
/* More was written than the sandbox may: ends all that runs. */
void terminals_on_disk_full(struct terminals *terminals);
/* A child of ours has been waited for; true when it was the leader of a session. */
bool terminals_on_exit(struct terminals *terminals, pid_t pid, int status, const struct rusage *usage);
size_t terminals_count(const struct terminals *terminals); /* sessions */

#endif
