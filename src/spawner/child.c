/* child.c - forks children that hold nothing of the dispatcher's. */
/* SPDX-License-Identifier: MIT */
#include "spawner/child.h"

#include "base/err.h"
#include "spawner/site.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static void
close_between(unsigned from, unsigned to)
{
	if (from <= to && syscall(SYS_close_range, from, to, 0) != 0) {
		for (unsigned fd = from; fd <= to && fd < 65536; fd++)
			close((int)fd);
	}
}

static int
compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

void
child_keep_only(int *kept, size_t count)
{
	unsigned next = 3;

	qsort(kept, count, sizeof *kept, compare);
	for (size_t i = 0; i < count; i++) {
		if (kept[i] < (int)next)
			continue;
		if (kept[i] > (int)next)
			close_between(next, (unsigned)kept[i] - 1);
		next = (unsigned)kept[i] + 1;
	}
	close_between(next, ~0U);
}

static void
close_others(const struct site *site, int keep)
{
	int kept[] = { keep, site->sandboxes_fd, site->trash_fd, site->images_fd, site->sockets_fd, site->pieces_fd,
		site->agent_fd, site->null_fd, site->cgroup.v1_fd[0], site->cgroup.v1_fd[1], site->cgroup.v1_fd[2],
		site->cgroup.v2_fd };

	child_keep_only(kept, sizeof kept / sizeof *kept);
}

static void
reset_signals(const sigset_t *mask)
{
	for (int i = 1; i < NSIG; i++)
		(void)signal(i, i == SIGPIPE ? SIG_IGN : SIG_DFL);
	(void)sigprocmask(SIG_SETMASK, mask, NULL);
}

pid_t
child_fork(const struct site *site, int keep, struct err *err)
{
	sigset_t all, none, before;
	pid_t parent = getpid(), pid;

	sigfillset(&all);
	sigemptyset(&none);
	(void)sigprocmask(SIG_BLOCK, &all, &before);
	pid = fork();
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		if (getppid() != parent)
			_exit(1);
		close_others(site, keep);
		reset_signals(&none);
		return 0;
	}
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	if (pid < 0)
		return err_set_errno(err, errno, "fork");
	return pid;
}
