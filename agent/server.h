/*
 * server.h - the agent's HTTP interface: who may ask, what for, and who waits for which job.
 *
 * The routes are those of docs/agent-protocol.md. A job is in the journal and
 * its lane before its command starts, so asking twice never runs it twice.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_SERVER_H
#define ORCHARD_AGENT_SERVER_H

#include "base/cleanup.h"

struct agent_config;
struct command_set;
struct err;
struct event_base;
struct helper_set;
struct job;
struct server;
struct terminals;

/* listen_fd and config stay the caller's. */
int server_create(struct event_base *base, int listen_fd, const struct agent_config *config,
	struct server **ret_server, struct err *err) MUSTCHECK;
void server_free(struct server *server);
/* Who runs commands, and file calls; before the loop starts. */
void server_set_commands(struct server *server, struct command_set *commands, struct helper_set *helpers);
/* Who serves /pty; likewise. */
void server_set_terminals(struct server *server, struct terminals *terminals);
/* A command has ended and its job is filled in. */
void server_on_job_end(struct server *server, struct job *job);
/* From now on nothing is started any more. */
void server_stop(struct server *server);

#endif
