/* child.c - forks children that hold nothing of the dispatcher's. */
/* SPDX-License-Identifier: MIT */
#include "spawner/pool/child.h"

#include "base/err.h"
#include "base/fork.h"
#include "spawner/cgroup/cgroup_dir.h"
#include "spawner/site.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { KEPT_BEFORE = 12, KEPT_MAX = KEPT_BEFORE + (1 + CGROUP_EARLIER_MAX) * CGROUP_HIERARCHIES };

static void
close_others(const struct site *site, int keep)
{
	int kept[KEPT_MAX] = { keep, site->sandboxes_fd, site->trash_fd, site->images_fd, site->sockets_fd,
		site->runtimes_fd, site->pieces_fd, site->agent_fd, site->null_fd, site->net.host_ns,
		site->net.gate_ns, site->net.mounts_ns };
	int dirs[CGROUP_HIERARCHIES];
	size_t count = KEPT_BEFORE;

	for (unsigned place = 0; cgroup_place_dirs(&site->cgroup, place, dirs); place++) {
		memcpy(kept + count, dirs, sizeof dirs);
		count += CGROUP_HIERARCHIES;
	}
	fork_keep_only(kept, count);
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

struct child_outcome {
	int rc;
	struct err err;
};

int
child_run(const struct site *site, child_work_f *work, void *arg, struct err *err)
{
	struct child_outcome outcome = { 0 };
	int ends[2];
	ssize_t n;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return err_set_errno(err, errno, "socketpair");
	pid = child_fork(site, ends[1], err);
	if (pid == 0) {
		outcome.rc = work(arg, &outcome.err);
		(void)send(ends[1], &outcome, sizeof outcome, MSG_NOSIGNAL);
		_exit(0);
	}
	close(ends[1]);
	do
		n = pid > 0 ? recv(ends[0], &outcome, sizeof outcome, MSG_WAITALL) : 0;
	while (n < 0 && errno == EINTR);
	close(ends[0]);
	if (pid < 0)
		return -1;
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (n != (ssize_t)sizeof outcome)
		return err_set(err, ERR_INTERNAL, "the child that was at work on it has died");
	*err = outcome.err;
	return outcome.rc;
}
