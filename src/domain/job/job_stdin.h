/*
 * job_stdin.h - bytes for the stdin of a command that was started with stdin_open.
 *
 * A write happens at most once: it carries one id to the agent, whatever the connection does. It is done
 * when the agent has taken all of it; a command that does not read makes its writers wait, and then fail.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_DOMAIN_JOB_STDIN_H
#define ORCHARD_DOMAIN_JOB_STDIN_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct job_stdin;
struct service;

enum { JOB_STDIN_MAX = 1024 * 1024 }; /* bytes of one write */

struct job_stdin_result {
	int64_t accepted; /* bytes of this write */
	int64_t bytes; /* of all so far */
	bool closed; /* the command sees the end behind them */
};

/*
 * Called once, unless cancelled. why: ERR_NOT_FOUND; ERR_CLOSED: not open, closed, or ended; ERR_NOT_READY:
 * still not running; ERR_BUSY: the command does not read, nothing was written; ERR_AGENT_UNREACHABLE.
 */
typedef void job_stdin_f(const struct job_stdin_result *result, const struct err *why, void *arg);

struct job_stdin_ask {
	const char *job_id;
	const void *data; /* copied */
	size_t len; /* at most JOB_STDIN_MAX */
	bool eof; /* close it behind them */
};
/* Calls nothing before it returns. ERR_BUSY: too much waits here already. */
int job_stdin_start(struct service *service, const char *tenant, const struct job_stdin_ask *ask, job_stdin_f *done,
	void *arg, struct job_stdin **ret_write, struct err *err) MUSTCHECK;
/* What the agent has not taken yet is not written. */
void job_stdin_cancel(struct job_stdin *write);

#endif
