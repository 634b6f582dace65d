/*
 * helper_run.c - from the fork to the end of a helper, in the child.
 *
 * It is a copy of the agent that must not stay one: no descriptor but its socket, no rights but the user's. Requests
 * that are under way have copies of the token: like the agent it is not dumpable, so the user cannot look into its memory.
 */
/* SPDX-License-Identifier: MIT */
#include "agent/files/helper_priv.h"
#include "agent/files/helper_side.h"

#include "agent/config.h"
#include "agent/spawn.h"
#include "agent/user.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { RUN_SOCKET = 3 };

static struct helper_side run_side;

/* Above the socket nothing stays; kernels without close_range() are walked through. */
static void
run_close_others(void)
{
#ifdef SYS_close_range
	if (syscall(SYS_close_range, RUN_SOCKET + 1U, ~0U, 0U) == 0)
		return;
#endif
	for (int fd = RUN_SOCKET + 1; fd < (int)sysconf(_SC_OPEN_MAX); fd++)
		close(fd);
}

static int
run_descriptors(const struct helper_ground *ground)
{
	for (int i = 0; i <= 2; i++)
		if (dup2(ground->spawn->null_fd, i) < 0)
			return -1;
	if (ground->fd != RUN_SOCKET && dup2(ground->fd, RUN_SOCKET) < 0)
		return -1;
	if (fcntl(RUN_SOCKET, F_SETFD, FD_CLOEXEC) < 0)
		return -1;
	run_close_others();
	return 0;
}

static void
run_signals(void)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	sigset_t none;

	sigaction(SIGPIPE, &ignore, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static int
run_become(const struct helper_ground *ground)
{
	pid_t agent = getppid();

	if (setsid() < 0)
		return -1;
	if (spawn_become(ground->spawn, ground->user) < 0)
		return -1;
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	prctl(PR_SET_NAME, "orchard-files", 0, 0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	return getppid() == agent ? 0 : -1;
}

static int
run_enter(const char *working_dir)
{
	int errnum = chdir(working_dir) < 0 ? errno : 0;

	if (errnum != 0 && chdir("/") < 0)
		return errno;
	return errnum;
}

static void
run_refuse_user(struct helper_side *side, const struct user *user, int errnum)
{
	if (errnum == EINVAL) /* the user namespace does not map it */
		helper_refuse(side, 422, "invalid", "user %u:%u: the sandbox has no such ids", (unsigned)user->uid,
			(unsigned)user->gid);
	else
		helper_refuse(side, 500, "io_error", "cannot act as the sandbox's user: %s", strerror(errnum));
}

void
helper_run(const struct helper_ground *ground, const struct helper_call *call)
{
	struct helper_side *side = &run_side;
	int rc = run_become(ground), errnum = errno;

	run_signals();
	if (run_descriptors(ground) < 0)
		_exit(127);
	*side = (struct helper_side){ .fd = RUN_SOCKET, .length = ground->length };
	if (rc < 0) {
		run_refuse_user(side, ground->user, errnum);
		_exit(1);
	}
	side->cwd_errno = run_enter(ground->config->working_dir);
	call->run(side, call->arg);
	_exit(0);
}
