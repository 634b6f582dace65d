/* init.c - a signalfd in the event loop; children are reaped in bounded rounds. */
/* SPDX-License-Identifier: MIT */
#include "agent/init.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef MCL_ONFAULT
#define MCL_ONFAULT 4
#endif

/* Only two signals are read, and each is pending once at most: a third place tells that there are no more. */
enum { INIT_SIGNALS = 3, INIT_REAP_ROUND = 256, INIT_TERM_MS = 1000 };

struct init {
	struct init_options options;
	int fd;
	struct event *readable, *grace;
	bool terminating;
	void (*done)(void *arg);
	void *done_arg;
};

void
init_early(void)
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS };
	sigset_t set;

	sigfillset(&set);
	for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
		sigdelset(&set, faults[i]);
	sigprocmask(SIG_SETMASK, &set, NULL);
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	/* Started from a descriptor it would be called after that. */
	prctl(PR_SET_NAME, "orchard-agent", 0, 0, 0);
	if (getpid() != 1)
		prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	mlockall(MCL_CURRENT | MCL_ONFAULT);
}

int
init_limit_commands(int64_t capabilities, struct err *err)
{
	for (int number = 0; capabilities >= 0 && number < 63; number++) {
		if ((capabilities >> number & 1) != 0 || prctl(PR_CAPBSET_DROP, number, 0, 0, 0) == 0)
			continue;
		if (errno == EINVAL) /* beyond the last that this kernel knows */
			return 0;
		return err_set_errno(err, errno, "take capability %d from commands", number);
	}
	return 0;
}

static void
init_end(struct init *init)
{
	void (*done)(void *arg) = init->done;

	init->done = NULL;
	event_del(init->grace);
	if (done != NULL)
		done(init->done_arg);
}

/* One round; what is left waits for the next turn of the loop. */
static void
init_reap(struct init *init)
{
	struct rusage usage;
	int status;
	pid_t pid;

	for (int i = 0; i < INIT_REAP_ROUND; i++) {
		pid = wait4(-1, &status, WNOHANG, &usage);
		if (pid <= 0) {
			bool childless = pid < 0 && errno == ECHILD;

			init->options.on_reaped(init->options.arg);
			if (childless && init->done != NULL)
				init_end(init);
			return;
		}
		init->options.on_exit(pid, status, &usage, init->options.arg);
	}
	event_active(init->readable, EV_TIMEOUT, 0);
}

static void
init_on_term(struct init *init, const struct signalfd_siginfo *info)
{
	bool outside = info->ssi_pid == 0;

	if (init->terminating || (getpid() == 1 && !outside))
		return;
	init->terminating = true;
	init->options.on_term(init->options.arg);
}

static void
init_on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct init *init = arg;
	struct signalfd_siginfo infos[INIT_SIGNALS];
	ssize_t got;

	(void)what;
	do {
		got = read(fd, infos, sizeof infos);
		for (ssize_t i = 0; i < got / (ssize_t)sizeof infos[0]; i++)
			if (infos[i].ssi_signo == SIGTERM)
				init_on_term(init, &infos[i]);
	} while (got == (ssize_t)sizeof infos);
	init_reap(init);
}

static void
init_on_grace(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	if (getpid() == 1)
		kill(-1, SIGKILL);
	init_end(arg);
}

int
init_create(const struct init_options *options, struct init **ret_init, struct err *err)
{
	struct init *init;
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return err_set_errno(err, errno, "signalfd");
	init = alloc_zero(1, sizeof *init);
	init->options = *options;
	init->fd = fd;
	init->readable = event_new(options->base, fd, EV_READ | EV_PERSIST, init_on_readable, init);
	init->grace = evtimer_new(options->base, init_on_grace, init);
	if (init->readable == NULL || init->grace == NULL || event_add(init->readable, NULL) < 0) {
		init_free(init);
		return err_set(err, ERR_INTERNAL, "cannot watch signals");
	}
	*ret_init = init;
	return 0;
}

void
init_free(struct init *init)
{
	if (init->readable != NULL)
		event_free(init->readable);
	if (init->grace != NULL)
		event_free(init->grace);
	close(init->fd);
	free(init);
}

void
init_shut_down(struct init *init, void (*done)(void *arg), void *arg)
{
	struct timeval grace = clock_tv(getpid() == 1 ? INIT_TERM_MS : 0);

	init->done = done;
	init->done_arg = arg;
	if (getpid() == 1) {
		kill(-1, SIGTERM);
		kill(-1, SIGCONT);
	}
	event_add(init->grace, &grace);
	event_active(init->readable, EV_TIMEOUT, 0);
}
