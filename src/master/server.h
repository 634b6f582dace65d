/*
 * server.h - what the master holds before there is any child, and lets go of last.
 *
 * Everything here is made once, in an order that lets a second server fail before
 * it has touched anything of the first.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_MASTER_SERVER_H
#define ORCHARD_MASTER_SERVER_H

#include "base/cleanup.h"
#include "ipc/scoreboard.h"
#include "master/child.h"
#include "master/master.h"
#include "master/service_user.h"

struct config;
struct err;

struct server {
	struct service_user user;
	int state_lock_fd;
	int run_lock_fd; /* of the pid file */
	char *pid_path;
	char *socket_path;
	struct proc_ref self; /* the master's own slot */
	bool entered; /* self is claimed */
	struct child_share share;
};

/* TERM and INT must be blocked. On failure nothing is left to free. */
int server_open(struct server *server, const struct config *config, const struct master_timing *timing,
	const struct master_options *options, struct err *err) MUSTCHECK;
/* No more clients: they are refused from now on, whoever still has the socket open. */
void server_close_listener(struct server *server);
/* After the last child is gone. Shared memory stays for the next server. */
void server_close(struct server *server);

#endif
