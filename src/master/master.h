/*
 * master.h - the parent of every process: it owns what they share and keeps them alive.
 *
 * It holds the listener, the shared memory and the state lock, forks the roles,
 * fills the places of the dead, reloads and stops. It reads nothing that a client
 * sent and runs no library that may hang or call back: no event base, no JSON.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_MASTER_MASTER_H
#define ORCHARD_MASTER_MASTER_H

#include "base/cleanup.h"
#include "master/role.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct config;
struct err;
struct shm;

struct master_role {
	enum proc_role role;
	role_main_f *main;
	uint32_t count; /* 0: as many as the setting `workers` says */
	const char *driver; /* with that one alone; NULL: with any */
};

/* What has to be done with fresh or adopted shared memory before the first fork. */
typedef int master_prepare_f(const struct config *config, struct shm *shm, bool adopted, struct err *err);

/* What else can be found wrong with settings without starting; changes nothing. */
typedef int master_check_f(const struct config *config, struct err *err);

/* Sandboxes of an earlier server that live, or may. */
typedef uint32_t master_count_f(const struct config *config);

/* Milliseconds; a 0 stands for the default. */
struct master_timing {
	int64_t lock_wait; /* for a predecessor that is still leaving: 10 s */
	int64_t ready; /* from fork to READY: 30 s */
	int64_t lived_well; /* a process that lived so long is replaced at once: 10 s */
	int64_t pause_first; /* before replacing one that did not: 1 s, then doubled */
	int64_t pause_most; /* 30 s */
	int64_t quick; /* from INT to KILL: 2 s */
	int64_t drain_extra; /* on top of drain_timeout_seconds before KILL: 5 s */
};

struct master_options {
	struct config *config; /* taken over; freed by master_run */
	const char *config_path; /* read again on HUP; NULL: environment and defaults */
	const struct master_role *roles;
	size_t role_count;
	master_check_f *check; /* of those below whom the roles need; may be NULL */
	master_prepare_f *prepare; /* may be NULL */
	master_count_f *count_living; /* may be NULL: none */
	bool discard_sandboxes; /* those that can't be taken over may go */
	struct master_timing timing;
};

enum { MASTER_EXIT_OK = 0, MASTER_EXIT_FAILED = 1 };

/*
 * Runs the server until it has stopped and returns the exit status. Every fault is
 * logged. Children never return from here: they exit with the result of their main.
 */
int master_run(const struct master_options *options);
/* What can be found wrong on this host without starting; changes nothing. */
int master_check(const struct master_options *options, struct err *err) MUSTCHECK;

#endif
