/*
 * role.h - what a child process is given, and the few words it says to the master.
 *
 * A role builds its own event base after the fork, says READY once it can do its
 * work, and leaves on SIGTERM (drain), SIGINT (at once) or when `alive_fd` reads
 * EOF (the master is gone). A gateway also hears SIGHUP: another one takes what is
 * new, and it leaves when its terminals have ended. Exit status 0: done, 1: failed (respawned, paced),
 * 2: can't work at all (not respawned; the server stops).
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_MASTER_ROLE_H
#define ORCHARD_MASTER_ROLE_H

#include "base/cleanup.h"
#include "ipc/scoreboard.h"

struct config;
struct err;
struct notify;
struct shm;

enum { ROLE_EXIT_OK = 0, ROLE_EXIT_FAILED = 1, ROLE_EXIT_HOPELESS = 2 };

struct role_env {
	const struct config *config; /* this generation's */
	struct shm *shm;
	struct notify *notify;
	struct proc_ref self;
	int listen_fd; /* worker: the REST listener; others -1 */
	int spawner_fd; /* spawner, controller: its listening SEQPACKET socket; others -1 */
	int terminal_fd; /* worker, gateway: its end of the channel of terminal_msg.h; others -1 */
	int ready_fd; /* write end; role_ready uses and closes it */
	int alive_fd; /* read end; EOF: the master has died */
};

typedef int role_main_f(struct role_env *env);

/* Tells the master that this process does its work from now on. */
void role_ready(struct role_env *env);
/* It cannot: the text reaches the master's log and, at start, the operator. */
void role_failed(struct role_env *env, const struct err *why);

#endif
