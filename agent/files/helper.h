/*
 * helper.h - calls that touch the sandbox's files, each in a process of its own.
 *
 * Such a call may hang (a fifo, a FUSE mount, a dead disk) and must have no more rights than the sandbox's
 * user. So the agent forks a helper for it, which becomes that user for good and does the work with plain
 * blocking calls; the agent passes on the body and the answer, message by message, and reads neither side
 * faster than the other takes it. When the connection goes, the helper finds its body cut, or its answer
 * unwanted, and has a moment to clean up before it is killed.
 *
 * At most HELPER_MAX_RUNNING run at once, HELPER_MAX_WAITING more wait for their turn with their bodies unread.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_FILES_HELPER_H
#define ORCHARD_AGENT_FILES_HELPER_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <sys/types.h>

struct agent_config;
struct event_base;
struct helper_set;
struct helper_side;
struct http_exchange;
struct spawn_ground;

enum { HELPER_MAX_RUNNING = 64, HELPER_MAX_WAITING = 512 };

struct helper_set_options {
	struct event_base *base;
	const struct agent_config *config;
	const struct spawn_ground *ground;
};

struct helper_set *helper_set_create(const struct helper_set_options *options);
/* Kills what runs; nobody is answered. */
void helper_set_free(struct helper_set *set);
/* The sandbox is being ended: nothing is started any more. */
void helper_set_stop(struct helper_set *set);
/* The sandbox takes more disk than it may: what runs is ended and answered 507. */
void helper_set_on_disk_full(struct helper_set *set);
/* A child of the agent has been waited for; true when it was a helper. */
bool helper_set_on_exit(struct helper_set *set, pid_t pid, int status);

struct helper_call {
	/*
	 * Runs in the helper: as the user, in the sandbox's working directory, with 0-2 at /dev/null, SIGPIPE ignored,
	 * no other signal blocked or ignored, umask 022; see helper_side.h. Nothing of the agent but copies of its memory.
	 */
	void (*run)(struct helper_side *side, const void *arg);
	/* For run; the set's from helper_start() on, and freed by free_arg (NULL: none). */
	void *arg;
	void (*free_arg)(void *arg);
	const char *user; /* as in the configuration; NULL: its user */
};
/* Takes the exchange over and sees to its one answer. */
void helper_start(struct helper_set *set, struct http_exchange *exchange, const struct helper_call *call);

#endif
