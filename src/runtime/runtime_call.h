/* runtime_call.h - one run of the runtime's program. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_RUNTIME_RUNTIME_CALL_H
#define ORCHARD_RUNTIME_RUNTIME_CALL_H

#include "base/cleanup.h"

#include <stddef.h>
#include <sys/types.h>

struct err;
struct runtime;

enum { RUNTIME_FIRST_FD = 3, RUNTIME_FDS_MAX = 16 };

/* Runs in the program's process before it is executed: its namespaces, its cgroups. */
typedef int runtime_prepare_f(void *arg, struct err *err);

struct runtime_call {
	const struct runtime *runtime;
	const char *dir; /* absolute; holds the bundle, state/, the log and the pid */
	int dir_fd; /* the same */
	const char *name; /* of the container */
	int null_fd; /* its standard streams */
	const int *fds; /* create: PID 1 finds them as 3, 4...; -1: none, then null_fd stands there */
	size_t fd_count;
	runtime_prepare_f *prepare; /* or NULL */
	void *arg;
	int patience_ms; /* how long the program may take; 0: a minute */
};

/*
 * Both wait for the program, which dies with the caller, and fail with its own words. What create leaves, a process
 * that waits in its namespaces to execute its program, is nobody's child: a subreaper's.
 */
int runtime_create(const struct runtime_call *call, pid_t *ret_pid, struct err *err) MUSTCHECK;
int runtime_start(const struct runtime_call *call, struct err *err) MUSTCHECK;

#endif
