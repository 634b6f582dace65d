/*
 * supervise.h - the places of the server's processes, each filled by one process at a time.
 *
 * A place belongs to a generation (one configuration). Its process dies: the others
 * are told through the scoreboard, its locks pass on, and another one is started,
 * after a pause if it did not live long. A generation opens as a whole: until all
 * its processes have said READY, the fault of one is the failure of all. One that a
 * signal killed is no fault yet: it is replaced, but only so often. The spawner's
 * place outlives generations.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_MASTER_SUPERVISE_H
#define ORCHARD_MASTER_SUPERVISE_H

#include "base/cleanup.h"
#include "master/child.h"
#include "master/master.h"

#include <poll.h>
#include <stdint.h>

struct err;
struct supervisor;

/* share and timing are the caller's and outlive the supervisor; a timing of 0 is not understood here. */
struct supervisor *supervise_create(const struct child_share *share, const struct master_timing *timing);
void supervise_free(struct supervisor *supervisor);

/* The configuration for places that are filled from now on, and for lock repair. Borrowed. */
void supervise_use_config(struct supervisor *supervisor, const struct config *config);

/* --- opening a generation --- */
enum supervise_opening { OPENING_NONE, OPENING_WAITS, OPENING_DONE, OPENING_FAILED };
/* Starts count processes of a role as part of `generation`, which opens. */
int supervise_open(struct supervisor *supervisor, uint32_t generation, const struct master_role *role,
	uint32_t count, const struct config *config, struct err *err) MUSTCHECK;
/* OPENING_FAILED fills *err. */
enum supervise_opening supervise_opening(struct supervisor *supervisor, struct err *err);
/* The opening generation is on its own now: its dead are replaced. */
void supervise_settle(struct supervisor *supervisor);

/* --- leaving --- */
enum supervise_which {
	LEAVE_GENERATION, /* all of one generation but the spawner and the gateway */
	LEAVE_TERMINALS, /* the gateway of one generation */
	LEAVE_WORK, /* all but the spawner */
	LEAVE_ALL
};
/* Nobody there is replaced any more; each gets sig now and KILL after grace_ms (or earlier, if so told before). */
void supervise_leave(
	struct supervisor *supervisor, enum supervise_which which, uint32_t generation, int sig, int64_t grace_ms);
/*
 * Of gateways that wait for their terminals' end at most `most` go on with that, the newest: the others get sig, and
 * KILL after grace_ms.
 */
void supervise_hurry_terminals(struct supervisor *supervisor, uint32_t most, int sig, int64_t grace_ms);
/* Processes that live, by the same choice. */
uint32_t supervise_count(const struct supervisor *supervisor, enum supervise_which which, uint32_t generation);

/* --- the loop --- */
/* Descriptors to wait for; fds holds SHM_PROCESSES. */
nfds_t supervise_fds(const struct supervisor *supervisor, struct pollfd *fds);
/* Reads start reports, reaps, replaces, kills what is late. Call whenever something happened or was due. */
void supervise_run(struct supervisor *supervisor);
/* Boot-clock milliseconds of the next thing due; INT64_MAX: none. */
int64_t supervise_due(const struct supervisor *supervisor);
/* A process said it can't work at all: the server has to stop. True once it happened; fills *err. */
bool supervise_hopeless(const struct supervisor *supervisor, struct err *err);

#endif
