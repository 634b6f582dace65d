/*
 * supervise.c - a table of places and what is due for each.
 *
 * Only a process that we have not waited for is ever signalled, so a pid always means
 * the child it was given to.
 *
 * Repair takes the short mutexes of shared memory. A holder that was killed is no
 * problem (they are robust); one that is stopped makes us wait until it goes on or is
 * killed. In this version that wait is accepted: sections are microseconds long, and
 * nothing but an operator's SIGSTOP stops a process inside one.
 */
/* SPDX-License-Identifier: MIT */
#include "master/supervise.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "conf/config.h"
#include "ipc/exec_lock.h"
#include "ipc/scoreboard.h"
#include "ipc/shm.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* Of one place while its generation opens: so often it may be killed by somebody else. */
enum { OPENING_DEATHS = 3 };

struct place {
	const struct master_role *role; /* NULL: no place */
	uint32_t generation;
	uint32_t number; /* worker 1, worker 2... */
	struct child child;
	bool leaving;
	bool hurried; /* a gateway that was told not to wait for its terminals */
	int64_t kill_ms; /* 0: not yet */
	int64_t fill_ms; /* empty place: when to fill it */
	int64_t pause_ms; /* the last pause before filling */
	uint64_t deaths;
};

struct supervisor {
	const struct child_share *share;
	const struct master_timing *timing;
	const struct config *config;
	uint32_t opening; /* generation; 0: none */
	const struct config *opening_config;
	bool open_failed;
	struct err open_err;
	bool hopeless;
	struct err hopeless_err;
	struct place places[SHM_PROCESSES];
};

struct supervisor *
supervise_create(const struct child_share *share, const struct master_timing *timing)
{
	struct supervisor *s = alloc_zero(1, sizeof *s);

	s->share = share;
	s->timing = timing;
	for (size_t i = 0; i < SHM_PROCESSES; i++)
		s->places[i].child.ready_fd = -1;
	return s;
}

void
supervise_free(struct supervisor *s)
{
	if (s == NULL)
		return;
	for (size_t i = 0; i < SHM_PROCESSES; i++)
		child_forget(&s->places[i].child);
	free(s);
}

void
supervise_use_config(struct supervisor *s, const struct config *config)
{
	s->config = config;
}

static bool
place_outlives(const struct place *place)
{
	return child_makes_sandboxes(place->role->role);
}

static bool
place_opens(const struct supervisor *s, const struct place *place)
{
	return s->opening != 0 && place->generation == s->opening;
}

static void
place_free(struct place *place)
{
	child_forget(&place->child);
	memset(place, 0, sizeof *place);
	place->child.ready_fd = -1;
}

static int
place_fill(struct supervisor *s, struct place *place, const struct config *config, struct err *err)
{
	int foreign[SHM_PROCESSES];
	struct child_plan plan = { .share = s->share,
		.role = place->role,
		.config = config,
		.restarts = place->deaths,
		.foreign_fds = foreign };

	for (size_t i = 0; i < SHM_PROCESSES; i++)
		if (s->places[i].child.ready_fd >= 0)
			foreign[plan.foreign_count++] = s->places[i].child.ready_fd;
	if (child_start(&plan, &place->child, err) < 0)
		return -1;
	log_info("%s %" PRIu32 " started, pid %d", child_role_name(place->role->role), place->number,
		(int)place->child.pid);
	return 0;
}

static void
place_pause(const struct supervisor *s, struct place *place, int64_t lived_ms)
{
	int64_t doubled = place->pause_ms * 2;

	if (lived_ms >= s->timing->lived_well)
		place->pause_ms = 0;
	else if (place->pause_ms == 0)
		place->pause_ms = s->timing->pause_first;
	else
		place->pause_ms = doubled < s->timing->pause_most ? doubled : s->timing->pause_most;
	place->fill_ms = clock_boot_ms() + place->pause_ms;
}

/* --- opening a generation --- */

static void
open_failed(struct supervisor *s, const struct place *place, const char *why)
{
	if (s->open_failed)
		return;
	s->open_failed = true;
	err_set(&s->open_err, ERR_UNAVAILABLE, "%s %" PRIu32 " %s", child_role_name(place->role->role),
		place->number, why);
}

int
supervise_open(struct supervisor *s, uint32_t generation, const struct master_role *role, uint32_t count,
	const struct config *config, struct err *err)
{
	size_t next = 0;

	if (s->opening != generation)
		s->open_failed = false;
	s->opening = generation;
	s->opening_config = config;
	for (uint32_t n = 1; n <= count; n++) {
		while (next < SHM_PROCESSES && s->places[next].role != NULL)
			next++;
		if (next == SHM_PROCESSES)
			return err_set(err, ERR_BUSY,
				"no place for another process: those of earlier generations still drain");
		s->places[next].role = role;
		s->places[next].generation = generation;
		s->places[next].number = n;
		if (place_fill(s, &s->places[next], config, err) < 0) {
			place_free(&s->places[next]);
			return -1;
		}
	}
	return 0;
}

enum supervise_opening
supervise_opening(struct supervisor *s, struct err *err)
{
	if (s->opening == 0)
		return OPENING_NONE;
	if (s->open_failed) {
		*err = s->open_err;
		return OPENING_FAILED;
	}
	for (size_t i = 0; i < SHM_PROCESSES; i++)
		if (s->places[i].role != NULL && place_opens(s, &s->places[i]) && !s->places[i].child.ready)
			return OPENING_WAITS;
	return OPENING_DONE;
}

void
supervise_settle(struct supervisor *s)
{
	s->opening = 0;
	s->opening_config = NULL;
	s->open_failed = false;
}

/* --- leaving --- */

static bool
place_chosen(const struct place *place, enum supervise_which which, uint32_t generation)
{
	if (place->role == NULL)
		return false;
	switch (which) {
	case LEAVE_ALL:
		return true;
	case LEAVE_WORK:
		return !place_outlives(place);
	case LEAVE_GENERATION:
		return !place_outlives(place) && place->role->role != PROC_GATEWAY &&
			place->generation == generation;
	case LEAVE_TERMINALS:
		return place->role->role == PROC_GATEWAY && place->generation == generation;
	}
	return false;
}

void
supervise_leave(struct supervisor *s, enum supervise_which which, uint32_t generation, int sig, int64_t grace_ms)
{
	int64_t kill_ms = clock_boot_ms() + grace_ms;

	for (size_t i = 0; i < SHM_PROCESSES; i++) {
		struct place *place = &s->places[i];

		if (!place_chosen(place, which, generation))
			continue;
		place->leaving = true;
		if (place->child.pid == 0) {
			place_free(place);
			continue;
		}
		scoreboard_set_state(shm_scoreboard(s->share->shm), place->child.ref, PROC_DRAINING);
		kill(place->child.pid, sig);
		if (place->kill_ms == 0 || kill_ms < place->kill_ms)
			place->kill_ms = kill_ms;
	}
}

static bool
place_lingers(const struct place *place)
{
	return place->role != NULL && place->role->role == PROC_GATEWAY && place->leaving && place->child.pid != 0;
}

void
supervise_hurry_terminals(struct supervisor *s, uint32_t most, int sig, int64_t grace_ms)
{
	for (;;) {
		struct place *oldest = NULL;
		uint32_t count = 0;

		for (size_t i = 0; i < SHM_PROCESSES; i++) {
			struct place *place = &s->places[i];

			if (!place_lingers(place) || place->hurried)
				continue;
			count++;
			if (oldest == NULL || place->generation < oldest->generation)
				oldest = place;
		}
		if (count <= most)
			return;
		oldest->hurried = true;
		oldest->kill_ms = clock_boot_ms() + grace_ms;
		kill(oldest->child.pid, sig);
	}
}

uint32_t
supervise_count(const struct supervisor *s, enum supervise_which which, uint32_t generation)
{
	uint32_t count = 0;

	for (size_t i = 0; i < SHM_PROCESSES; i++)
		if (place_chosen(&s->places[i], which, generation) && s->places[i].child.pid != 0)
			count++;
	return count;
}

/* --- deaths --- */

static void
cause_of_death(int status, char *buf, size_t size)
{
	if (WIFSIGNALED(status))
		snprintf(buf, size, "was killed by signal %d (%s)%s", WTERMSIG(status), strsignal(WTERMSIG(status)),
			WCOREDUMP(status) ? ", core dumped" : "");
	else
		snprintf(buf, size, "ended with status %d", WEXITSTATUS(status));
}

static void
log_death(const struct place *place, pid_t pid, const char *cause)
{
	const char *name = child_role_name(place->role->role);

	if (place->leaving)
		log_info("%s %" PRIu32 " (pid %d) left: it %s", name, place->number, (int)pid, cause);
	else
		log_error("%s %" PRIu32 " (pid %d) %s", name, place->number, (int)pid, cause);
}

/* What the dead process owned in shared memory goes to others. */
static void
bury(struct supervisor *s, struct proc_ref ref)
{
	struct shm *shm = s->share->shm;
	struct exec_lock_limits limits = {
		.running = (uint32_t)s->config->max_concurrent_execs,
		.per_sandbox = (uint32_t)s->config->sandbox_exec_queue_limit,
	};

	scoreboard_retire(shm_scoreboard(shm), ref);
	exec_lock_repair(shm_exec_lock(shm), s->share->notify, shm_scoreboard(shm), &limits);
}

static void
give_up_hope(struct supervisor *s, const struct place *place, const char *why)
{
	if (s->hopeless)
		return;
	s->hopeless = true;
	err_set(&s->hopeless_err, ERR_UNAVAILABLE, "%s %" PRIu32 " cannot work at all: %s",
		child_role_name(place->role->role), place->number, why);
}

/* A generation that opens does not fail for one that somebody killed; one that does so itself says it before long. */
static bool
place_may_open_still(const struct supervisor *s, struct place *place, int status)
{
	return place_opens(s, place) && !s->open_failed && WIFSIGNALED(status) && place->kill_ms == 0 &&
		child_complaint(&place->child) == NULL && place->deaths + 1 < OPENING_DEATHS;
}

static void
place_died(struct supervisor *s, struct place *place, int status)
{
	int64_t lived_ms = clock_boot_ms() - place->child.started_ms;
	char cause[128];
	const char *why;

	cause_of_death(status, cause, sizeof cause);
	log_death(place, place->child.pid, cause);
	child_listen(&place->child);
	why = child_complaint(&place->child) != NULL ? child_complaint(&place->child) : cause;
	bury(s, place->child.ref);
	if (place->leaving || (place_opens(s, place) && !place_may_open_still(s, place, status))) {
		if (!place->leaving)
			open_failed(s, place, why);
		place_free(place);
		return;
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == ROLE_EXIT_HOPELESS)
		give_up_hope(s, place, why);
	else if (why != cause)
		log_error("%s %" PRIu32 ": %s", child_role_name(place->role->role), place->number, why);
	child_forget(&place->child);
	place->deaths++;
	place->kill_ms = 0;
	place_pause(s, place, lived_ms);
}

static void
reap(struct supervisor *s)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (size_t i = 0; i < SHM_PROCESSES; i++)
			if (s->places[i].role != NULL && s->places[i].child.pid == pid) {
				place_died(s, &s->places[i], status);
				break;
			}
}

/* --- the loop --- */

static void
place_listen(struct supervisor *s, struct place *place)
{
	if (child_listen(&place->child))
		scoreboard_set_state(shm_scoreboard(s->share->shm), place->child.ref, PROC_READY);
	if (place_opens(s, place) && !place->leaving && child_complaint(&place->child) != NULL)
		open_failed(s, place, child_complaint(&place->child));
}

/* A process that is late with READY has until then; 0: it is in time. */
static int64_t
place_ready_due(const struct supervisor *s, const struct place *place)
{
	if (place->child.ready || place->leaving || place->kill_ms != 0)
		return 0;
	return place->child.started_ms + s->timing->ready;
}

static void
place_late(struct supervisor *s, struct place *place)
{
	char why[128];

	snprintf(why, sizeof why, "was not ready after %" PRId64 " s", s->timing->ready / 1000);
	log_error("%s %" PRIu32 " (pid %d) %s: killed", child_role_name(place->role->role), place->number,
		(int)place->child.pid, why);
	if (place_opens(s, place))
		open_failed(s, place, why);
	place->kill_ms = clock_boot_ms();
}

static void
place_run(struct supervisor *s, struct place *place, int64_t now)
{
	int64_t ready_due = place_ready_due(s, place);
	struct err err;

	if (place->child.pid == 0) {
		if (now < place->fill_ms || s->hopeless)
			return;
		if (place_fill(s, place, place_opens(s, place) ? s->opening_config : s->config, &err) < 0) {
			log_error("%s", err.msg);
			place_pause(s, place, 0);
		}
		return;
	}
	if (ready_due != 0 && now >= ready_due)
		place_late(s, place);
	if (place->kill_ms == 0 || now < place->kill_ms)
		return;
	if (place->leaving)
		log_warn("%s %" PRIu32 " (pid %d) did not leave in time: killed",
			child_role_name(place->role->role), place->number, (int)place->child.pid);
	kill(place->child.pid, SIGKILL);
	place->kill_ms = INT64_MAX;
}

void
supervise_run(struct supervisor *s)
{
	int64_t now;

	for (size_t i = 0; i < SHM_PROCESSES; i++)
		if (s->places[i].role != NULL && s->places[i].child.ready_fd >= 0)
			place_listen(s, &s->places[i]);
	reap(s);
	now = clock_boot_ms();
	for (size_t i = 0; i < SHM_PROCESSES; i++)
		if (s->places[i].role != NULL)
			place_run(s, &s->places[i], now);
}

nfds_t
supervise_fds(const struct supervisor *s, struct pollfd *fds)
{
	nfds_t count = 0;

	for (size_t i = 0; i < SHM_PROCESSES; i++)
		if (s->places[i].child.ready_fd >= 0)
			fds[count++] = (struct pollfd){ .fd = s->places[i].child.ready_fd, .events = POLLIN };
	return count;
}

static int64_t
place_due(const struct supervisor *s, const struct place *place)
{
	int64_t ready_due;

	if (place->child.pid == 0)
		return s->hopeless ? INT64_MAX : place->fill_ms;
	if (place->kill_ms != 0)
		return place->kill_ms;
	ready_due = place_ready_due(s, place);
	return ready_due != 0 ? ready_due : INT64_MAX;
}

int64_t
supervise_due(const struct supervisor *s)
{
	int64_t due = INT64_MAX;

	for (size_t i = 0; i < SHM_PROCESSES; i++)
		if (s->places[i].role != NULL && place_due(s, &s->places[i]) < due)
			due = place_due(s, &s->places[i]);
	return due;
}

bool
supervise_hopeless(const struct supervisor *s, struct err *err)
{
	if (s->hopeless)
		*err = s->hopeless_err;
	return s->hopeless;
}
