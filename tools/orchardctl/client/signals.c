/* signals.c - a signalfd, so that there is no handler and no race with the wait for events. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/client/signals.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

void
signals_catch(struct signals *signals)
{
	static const int caught[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	sigset_t set;

	sigemptyset(&set);
	for (unsigned i = 0; i < sizeof caught / sizeof *caught; i++) {
		struct sigaction action;

		/* One that is ignored (nohup, a job in the background) stays so. */
		if (sigaction(caught[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
			sigaddset(&set, caught[i]);
	}
	signal(SIGPIPE, SIG_IGN);
	sigprocmask(SIG_BLOCK, &set, NULL);
	*signals = (struct signals){ .fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK) };
	if (signals->fd < 0)
		abort();
}

void
signals_take(struct signals *signals)
{
	struct signalfd_siginfo info;

	while (read(signals->fd, &info, sizeof info) == (ssize_t)sizeof info) {
		if (signals->first == 0)
			signals->first = (int)info.ssi_signo;
		signals->count++;
	}
}
