/* spawn.c - from the agent's process to the user's program, without anything of the agent's. */
/* SPDX-License-Identifier: MIT */
#include "agent/spawn.h"

#include "agent/user.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Descriptors are parked above every target before they are put in place. */
enum { SPAWN_PARK_FROM = 256, SPAWN_DESCRIPTORS = 5, SPAWN_MAX_FD = 65536 };

/* linux/close_range.h, which older kernels' headers lack. */
enum { SPAWN_CLOSE_RANGE_CLOEXEC = 4 };

struct spawn_report {
	enum spawn_stage stage;
	int errnum;
};

static void
spawn_hide_inherited(void)
{
	struct rlimit limit = { 0 };
	int last = SPAWN_MAX_FD;

#ifdef SYS_close_range
	if (syscall(SYS_close_range, 3U, ~0U, SPAWN_CLOSE_RANGE_CLOEXEC) == 0)
		return;
#endif
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < SPAWN_MAX_FD)
		last = (int)limit.rlim_cur;
	for (int fd = 3; fd < last; fd++) {
		int flags = fcntl(fd, F_GETFD);

		if (flags >= 0)
			fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
	}
}

/* /dev/null as it is now: user code may replace it later. A pipe without writer reads the same. */
static int
spawn_open_null(void)
{
	int ends[2];
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISCHR(st.st_mode))
		return fd;
	if (fd >= 0)
		close(fd);
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	close(ends[1]);
	return ends[0];
}

void
spawn_ground_init(struct spawn_ground *ground)
{
	struct rlimit limit = { 1024, 1024 };
	int fd;

	do {
		fd = spawn_open_null();
	} while (fd >= 0 && fd <= 2 && fcntl(fd, F_SETFD, 0) == 0);
	ground->null_fd = fd;
	spawn_hide_inherited();
	ground->proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	getrlimit(RLIMIT_NOFILE, &limit);
	ground->nofile_soft = limit.rlim_cur;
	ground->nofile_hard = limit.rlim_max;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static void __attribute__((noreturn)) spawn_fail(struct spawn_report *report, enum spawn_stage stage, int errnum)
{
	report->stage = stage;
	report->errnum = errnum;
	_exit(127);
}

/* The plain call: the C library's refuses the two signals it keeps for itself, which may be inherited as ignored. */
static void
spawn_child_signals(void)
{
	static const unsigned long kernel_default[8]; /* SIG_DFL, no flags, empty mask */
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++)
		if (sig != SIGKILL && sig != SIGSTOP)
			syscall(SYS_rt_sigaction, sig, kernel_default, NULL, (size_t)(_NSIG / 8));
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static int
spawn_child_descriptors(const struct spawn_plan *plan)
{
	int parked[SPAWN_DESCRIPTORS];

#ifdef SYS_close_range
	syscall(SYS_close_range, 3U, ~0U, SPAWN_CLOSE_RANGE_CLOEXEC);
#endif
	for (size_t i = 0; i < SPAWN_DESCRIPTORS; i++) {
		parked[i] = plan->descriptors[i].from;
		if (parked[i] >= 0)
			parked[i] = fcntl(parked[i], F_DUPFD_CLOEXEC, SPAWN_PARK_FROM);
		if (parked[i] < 0 && plan->descriptors[i].from >= 0)
			return -1;
	}
	for (size_t i = 0; i < SPAWN_DESCRIPTORS; i++)
		if (parked[i] >= 0 && dup2(parked[i], plan->descriptors[i].to) < 0)
			return -1;
	return 0;
}

/* The agent may be protected at any time after its start; what is inherited is looked at each time. */
static void
spawn_child_score(int proc_fd)
{
	char first = '0';
	ssize_t score_set = 0; /* best effort: the kernel refuses only what is not ours to raise */
	int fd = proc_fd < 0 ? -1 : openat(proc_fd, "self/oom_score_adj", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return;
	if (pread(fd, &first, 1, 0) == 1 && first == '-')
		score_set = pwrite(fd, "0", 1, 0);
	(void)score_set;
	close(fd);
}

static void
spawn_child_limits(const struct spawn_ground *ground)
{
	struct rlimit core = { 1, 1 };
	struct rlimit nofile = { ground->nofile_soft, ground->nofile_hard };

	umask(022);
	/* 1, not 0: with 0 a host whose core_pattern is a pipe would still be handed the dump. */
	setrlimit(RLIMIT_CORE, &core);
	setrlimit(RLIMIT_NOFILE, &nofile);
	spawn_child_score(ground->proc_fd);
}

/* The C library's wrappers synchronise threads; in a vforked child only the plain calls are right. */
static int
spawn_child_user(const struct user *user)
{
	if (geteuid() != 0)
		return user->uid == geteuid() ? 0 : (errno = EPERM, -1);
	if (syscall(SYS_setgroups, user->group_count, user->groups) < 0 && (errno != EPERM || user->uid != 0))
		return -1;
	if (syscall(SYS_setresgid, user->gid, user->gid, user->gid) < 0)
		return -1;
	return (int)syscall(SYS_setresuid, user->uid, user->uid, user->uid);
}

/* execvpe's rule for what may be tried further, but no shell for a file without a magic. */
static int
spawn_child_exec(const struct spawn_plan *plan)
{
	int denied = 0;

	for (char *const *path = plan->paths; *path != NULL; path++) {
		execve(*path, plan->argv, plan->envp);
		if (errno == EACCES)
			denied = 1;
		else if (errno != ENOENT && errno != ENOTDIR && errno != ESTALE && errno != ENODEV &&
			errno != ETIMEDOUT)
			return errno;
	}
	return denied ? EACCES : errno;
}

static void __attribute__((noreturn)) spawn_child(const struct spawn_plan *plan, struct spawn_report *report)
{
	spawn_child_signals();
	if (setsid() < 0)
		spawn_fail(report, SPAWN_SETUP, errno);
	if (plan->cgroup_procs_fd >= 0 && write(plan->cgroup_procs_fd, "0", 1) != 1)
		spawn_fail(report, SPAWN_CGROUP, errno);
	spawn_child_limits(plan->ground);
	if (spawn_child_descriptors(plan) < 0)
		spawn_fail(report, SPAWN_SETUP, errno);
	if (spawn_child_user(plan->user) < 0)
		spawn_fail(report, SPAWN_USER, errno);
	if (chdir(plan->base_dir) < 0 && (plan->cwd == NULL || plan->cwd[0] != '/'))
		spawn_fail(report, SPAWN_CWD, errno);
	if (plan->cwd != NULL && chdir(plan->cwd) < 0)
		spawn_fail(report, SPAWN_CWD, errno);
	spawn_fail(report, SPAWN_EXEC, spawn_child_exec(plan));
}

/* No local of its own lives across vfork; the report is written through memory. */
static pid_t __attribute__((noinline)) spawn_vfork(const struct spawn_plan *plan, struct spawn_report *report)
{
	pid_t pid = vfork();

	if (pid == 0)
		spawn_child(plan, report);
	return pid;
}

pid_t
spawn(const struct spawn_plan *plan, enum spawn_stage *ret_stage, int *ret_errno)
{
	struct spawn_report report = { SPAWN_STARTED, 0 };
	struct spawn_report *volatile shared = &report;
	sigset_t all, before;
	pid_t pid;
	int fork_errno;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	pid = spawn_vfork(plan, shared);
	fork_errno = errno;
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (pid < 0)
		report = (struct spawn_report){ SPAWN_FORK, fork_errno };
	*ret_stage = shared->stage;
	*ret_errno = shared->errnum;
	if (shared->stage == SPAWN_STARTED)
		return pid;
	if (pid > 0)
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	return -1;
}
