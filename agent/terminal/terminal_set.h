/* terminal_set.h - all sessions of a sandbox: who they are, how many there may be. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_TERMINAL_SET_H
#define ORCHARD_AGENT_TERMINAL_SET_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct agent_config;
struct err;
struct event_base;
struct json_object;
struct rusage;
struct spawn_ground;
struct terminal;
struct terminal_request;
struct terminal_set;
struct tree_keeper;

struct terminal_set_options {
	struct event_base *base;
	const struct agent_config *config;
	const struct spawn_ground *ground;
	struct tree_keeper *keeper;
};

struct terminal_set *terminal_set_create(const struct terminal_set_options *options);
/* What still runs is killed. No viewer may be left that wants to be told. */
void terminal_set_free(struct terminal_set *set);
/* Fails as terminal_start(), and with ERR_BUSY when there are too many. The session is the set's. */
int terminal_set_start(struct terminal_set *set, const struct terminal_request *request,
	struct terminal **ret_terminal, int *ret_exit_code, struct err *err) MUSTCHECK;
struct terminal *terminal_set_find(struct terminal_set *set, const char *id); /* NULL: none */
size_t terminal_set_count(const struct terminal_set *set);
struct json_object *terminal_set_describe(const struct terminal_set *set); /* an array */
/* Ends all of them at once. */
void terminal_set_kill(struct terminal_set *set);
/* A child was waited for; true when it was the leader of a session. */
bool terminal_set_on_exit(struct terminal_set *set, pid_t pid, int status, const struct rusage *usage);

#endif
