/*
 * master.c - the life of the server as phases, in one loop.
 *
 *   OPENING -> SERVING <-> RELOADING
 *       \         |          /
 *        +--> DRAINING (workers, reaper) -> CLOSING (spawner) -> OVER
 *
 * All signals are blocked from the first line on and are read from a descriptor
 * beside the start reports of the children: there is no handler, and nothing
 * happens but between two steps.
 */
/* SPDX-License-Identifier: MIT */
#include "master/master.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "conf/config.h"
#include "ipc/shm.h"
#include "master/check.h"
#include "master/memory.h"
#include "master/reload.h"
#include "master/sd_notify.h"
#include "master/server.h"
#include "master/supervise.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>

enum phase { PHASE_OPENING, PHASE_SERVING, PHASE_RELOADING, PHASE_DRAINING, PHASE_CLOSING, PHASE_OVER };

enum { WORKERS_MAX = 32, POLL_MOST_MS = 3600 * 1000, LINGERING_MOST = 8 };

struct master {
	const struct master_options *options;
	struct master_timing timing;
	struct config *config; /* of the generation that serves */
	struct config *next; /* of the one that opens in a reload */
	struct server server;
	struct supervisor *supervisor;
	enum phase phase;
	uint32_t generation; /* that serves */
	uint32_t newest; /* number given last */
	bool reload_wanted;
	int stop_signal; /* what leaving children get: TERM or INT */
	int exit_status;
};

static const int heard_signals[] = { SIGCHLD, SIGHUP, SIGINT, SIGTERM, SIGUSR2 };

static void
timing_default(int64_t *value, int64_t standard)
{
	if (*value == 0)
		*value = standard;
}

static struct master_timing
timing_complete(struct master_timing timing)
{
	timing_default(&timing.lock_wait, 10 * 1000);
	timing_default(&timing.ready, 30 * 1000);
	timing_default(&timing.lived_well, 10 * 1000);
	timing_default(&timing.pause_first, 1000);
	timing_default(&timing.pause_most, 30 * 1000);
	timing_default(&timing.quick, 2000);
	timing_default(&timing.drain_extra, 5000);
	return timing;
}

/* --- signals --- */

/* Faults of our own code stay deadly; everything else waits for the loop. */
static void
block_signals(void)
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS };
	sigset_t all;

	sigfillset(&all);
	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
		sigdelset(&all, faults[i]);
	sigprocmask(SIG_SETMASK, &all, NULL);
}

static int
open_signal_fd(struct master *m, struct err *err)
{
	sigset_t heard;

	sigemptyset(&heard);
	for (size_t i = 0; i < sizeof heard_signals / sizeof *heard_signals; i++)
		sigaddset(&heard, heard_signals[i]);
	m->server.share.signal_fd = signalfd(-1, &heard, SFD_CLOEXEC | SFD_NONBLOCK);
	return m->server.share.signal_fd < 0 ? err_set_errno(err, errno, "signalfd") : 0;
}

/* --- stopping --- */

static int64_t
leave_grace(const struct master *m)
{
	if (m->stop_signal == SIGINT)
		return m->timing.quick;
	return m->config->drain_timeout_seconds * 1000 + m->timing.drain_extra;
}

static void
stop_begin(struct master *m, int sig)
{
	m->stop_signal = sig;
	m->phase = PHASE_DRAINING;
	sd_notify_stopping(leave_grace(m) + 2 * m->timing.drain_extra);
	supervise_settle(m->supervisor);
	server_close_listener(&m->server); /* first: whoever drains sees by it that nobody else serves */
	supervise_leave(m->supervisor, LEAVE_WORK, 0, sig, leave_grace(m));
}

static void
stop_failed(struct master *m, const struct err *why, int sig)
{
	log_error("the server stops: %s", why->msg);
	m->exit_status = MASTER_EXIT_FAILED;
	stop_begin(m, sig);
}

/* The spawner goes last: those that drain may need it. */
static void
stop_step(struct master *m)
{
	if (m->phase == PHASE_DRAINING && supervise_count(m->supervisor, LEAVE_WORK, 0) == 0) {
		m->phase = PHASE_CLOSING;
		supervise_leave(m->supervisor, LEAVE_ALL, 0, m->stop_signal,
			m->stop_signal == SIGINT ? m->timing.quick : m->timing.drain_extra);
	}
	if (m->phase == PHASE_CLOSING && supervise_count(m->supervisor, LEAVE_ALL, 0) == 0)
		m->phase = PHASE_OVER;
}

static void
stop_asked(struct master *m, int sig)
{
	if (m->phase < PHASE_DRAINING) {
		log_info(sig == SIGTERM ? "TERM: finishing what is open, then leaving" : "INT: leaving at once");
		stop_begin(m, sig);
	} else if (sig == SIGINT && m->stop_signal != SIGINT) {
		log_info("INT: not waiting any longer");
		m->stop_signal = SIGINT;
		supervise_leave(m->supervisor, m->phase == PHASE_DRAINING ? LEAVE_WORK : LEAVE_ALL, 0, SIGINT,
			m->timing.quick);
	}
}

/* --- generations --- */

static uint32_t
worker_count(const struct config *config)
{
	cpu_set_t cpus;
	int count = 1;

	if (config->workers > 0)
		return (uint32_t)config->workers;
	if (sched_getaffinity(0, sizeof cpus, &cpus) == 0)
		count = CPU_COUNT(&cpus);
	return (uint32_t)(count < 1 ? 1 : count > WORKERS_MAX ? WORKERS_MAX : count);
}

static int
generation_open(struct master *m, const struct config *config, bool first, struct err *err)
{
	m->newest++;
	for (size_t i = 0; i < m->options->role_count; i++) {
		const struct master_role *role = &m->options->roles[i];
		uint32_t count = role->count != 0 ? role->count : worker_count(config);

		if (role->driver != NULL && strcmp(role->driver, config->driver) != 0)
			continue;
		if ((first || !child_makes_sandboxes(role->role)) &&
			supervise_open(m->supervisor, m->newest, role, count, config, err) < 0)
			return -1;
	}
	return 0;
}

static void
announce(const struct master *m, const char *what)
{
	char text[400];

	snprintf(text, sizeof text, "%s: %s:%" PRId64 ", %" PRIu32 " workers", what, m->config->listen_host,
		m->config->port, worker_count(m->config));
	log_info("%s", text);
	sd_notify_ready(text);
}

static void
log_level_follow(const struct config *config)
{
	enum log_level level;

	if (log_level_parse(config->log_level, &level) == 0)
		log_set_level(level);
}

/* --- reload --- */

static void
reload_failed(struct master *m, const struct err *why)
{
	log_error("reload failed, the old processes go on: %s", why->msg);
	supervise_settle(m->supervisor);
	if (m->newest != m->generation) {
		supervise_leave(m->supervisor, LEAVE_GENERATION, m->newest, SIGINT, m->timing.quick);
		supervise_leave(m->supervisor, LEAVE_TERMINALS, m->newest, SIGINT, m->timing.quick);
	}
	config_free(m->next);
	m->next = NULL;
	m->phase = PHASE_SERVING;
	announce(m, "ready, a reload failed");
}

static void
reload_begin(struct master *m)
{
	struct err err;

	m->reload_wanted = false;
	log_info("HUP: reading the configuration again");
	sd_notify_reloading();
	m->phase = PHASE_RELOADING;
	if (reload_config(m->options->config_path, m->config, &m->next, &err) < 0 ||
		generation_open(m, m->next, false, &err) < 0)
		reload_failed(m, &err);
}

static void
reload_done(struct master *m)
{
	uint32_t old = m->generation;

	m->stop_signal = SIGTERM;
	supervise_settle(m->supervisor);
	supervise_leave(m->supervisor, LEAVE_GENERATION, old, SIGTERM, leave_grace(m));
	supervise_leave(m->supervisor, LEAVE_TERMINALS, old, SIGHUP,
		m->config->terminal_drain_seconds * 1000 + m->timing.drain_extra);
	supervise_hurry_terminals(m->supervisor, LINGERING_MOST, SIGTERM, m->timing.drain_extra);
	supervise_use_config(m->supervisor, m->next);
	config_free(m->config);
	m->config = m->next;
	m->next = NULL;
	m->generation = m->newest;
	m->phase = PHASE_SERVING;
	log_level_follow(m->config);
	announce(m, "ready, reloaded");
}

/* --- the loop --- */

static void
opening_step(struct master *m)
{
	struct err err;

	switch (supervise_opening(m->supervisor, &err)) {
	case OPENING_FAILED:
		if (m->phase == PHASE_OPENING)
			stop_failed(m, &err, SIGINT);
		else
			reload_failed(m, &err);
		break;
	case OPENING_DONE:
		if (m->phase == PHASE_RELOADING) {
			reload_done(m);
			break;
		}
		supervise_settle(m->supervisor);
		m->generation = m->newest;
		m->phase = PHASE_SERVING;
		announce(m, "ready");
		break;
	case OPENING_WAITS:
	case OPENING_NONE:
		break;
	}
}

static void
step(struct master *m)
{
	struct err err;

	supervise_run(m->supervisor);
	if (m->phase < PHASE_DRAINING && supervise_hopeless(m->supervisor, &err))
		stop_failed(m, &err, SIGTERM);
	if (m->phase == PHASE_OPENING || m->phase == PHASE_RELOADING)
		opening_step(m);
	if (m->phase == PHASE_SERVING && m->reload_wanted)
		reload_begin(m);
	stop_step(m);
}

static void
on_signal(struct master *m, int sig)
{
	switch (sig) {
	case SIGTERM:
	case SIGINT:
		stop_asked(m, sig);
		break;
	case SIGHUP:
		m->reload_wanted = true;
		break;
	case SIGUSR2:
		log_warn("USR2: this version cannot replace its own program while it runs; restart it instead, "
			 "sandboxes and jobs outlive a restart");
		break;
	default:
		break;
	}
}

static void
wait_and_hear(struct master *m)
{
	struct pollfd fds[1 + SHM_PROCESSES] = { { .fd = m->server.share.signal_fd, .events = POLLIN } };
	nfds_t count = 1 + supervise_fds(m->supervisor, fds + 1);
	int64_t due = supervise_due(m->supervisor);
	int64_t now = clock_boot_ms();
	int64_t wait_ms = due <= now ? 0 : due - now < POLL_MOST_MS ? due - now : POLL_MOST_MS;
	struct signalfd_siginfo info;

	if (poll(fds, count, (int)wait_ms) < 0 && errno != EINTR)
		log_error("poll: %s", strerror(errno));
	while (read(m->server.share.signal_fd, &info, sizeof info) == (ssize_t)sizeof info)
		on_signal(m, (int)info.ssi_signo);
}

static void
serve(struct master *m)
{
	struct err err;

	m->supervisor = supervise_create(&m->server.share, &m->timing);
	supervise_use_config(m->supervisor, m->config);
	if (generation_open(m, m->config, true, &err) < 0)
		stop_failed(m, &err, SIGINT);
	while (m->phase != PHASE_OVER) {
		step(m);
		if (m->phase != PHASE_OVER)
			wait_and_hear(m);
	}
	supervise_free(m->supervisor);
}

int
master_check(const struct master_options *options, struct err *err)
{
	struct service_user user;

	memory_warn(options->config, options);
	return check_host(options->config, options, &user, err);
}

int
master_run(const struct master_options *options)
{
	struct master m = {
		.options = options,
		.timing = timing_complete(options->timing),
		.config = options->config,
		.stop_signal = SIGTERM,
	};
	struct err err;

	block_signals();
	log_level_follow(m.config);
	sd_notify_init();
	if (server_open(&m.server, m.config, &m.timing, options, &err) < 0) {
		log_error("cannot start: %s", err.msg);
		config_free(m.config);
		return MASTER_EXIT_FAILED;
	}
	if (open_signal_fd(&m, &err) < 0) {
		log_error("cannot start: %s", err.msg);
		m.exit_status = MASTER_EXIT_FAILED;
	} else {
		serve(&m);
	}
	server_close(&m.server);
	config_free(m.next);
	config_free(m.config);
	log_info("stopped");
	return m.exit_status;
}
