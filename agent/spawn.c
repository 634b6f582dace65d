/* spawn.c - from the agent's process to the user's program, without anything of the agent's. */
/* SPDX-License-Identifier: MIT */
#include <config.h> /* the build's, not the agent's */

#include "agent/spawn.h"

#include "agent/birth.h"
#include "agent/user.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Above every target. */
enum { SPAWN_PARK_FROM = 256, SPAWN_MAX_FD = 65536 };

/* No shell needs less. */
enum { SPAWN_SMALL_KIB = 2048 };

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

/* The C library refuses the two signals it keeps for itself, which may have been inherited as ignored. */
static void
spawn_ground_signals(void)
{
	static const unsigned long kernel_default[8]; /* SIG_DFL, no flags, empty mask */

	for (int sig = 1; sig < NSIG; sig++)
		if (sig != SIGKILL && sig != SIGSTOP)
			syscall(SYS_rt_sigaction, sig, kernel_default, NULL, (size_t)(_NSIG / 8));
}

static bool
spawn_is_plain_root(void)
{
	uid_t uid[3];
	gid_t gid[3];

	return getresuid(&uid[0], &uid[1], &uid[2]) == 0 && getresgid(&gid[0], &gid[1], &gid[2]) == 0 &&
		(uid[0] | uid[1] | uid[2]) == 0 && (gid[0] | gid[1] | gid[2]) == 0 && getgroups(0, NULL) == 0;
}

static bool
spawn_has_inheritable(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	return syscall(SYS_capget, &head, data) == 0 && (data[0].inheritable | data[1].inheritable) != 0;
}

static int
spawn_open_own(const struct spawn_ground *ground, const char *path, int flags)
{
	return ground->proc_fd < 0 ? -1 : openat(ground->proc_fd, path, flags | O_CLOEXEC);
}

void
spawn_ground_init(struct spawn_ground *ground)
{
	/* 1, not 0: with 0 a host whose core_pattern is a pipe would still be handed the dump. */
	struct rlimit core = { 1, 1 }, limit = { 1024, 1024 };
	int fd;

	do {
		fd = spawn_open_null();
	} while (fd >= 0 && fd <= 2 && fcntl(fd, F_SETFD, 0) == 0);
	ground->null_fd = fd;
	spawn_hide_inherited();
	spawn_ground_signals();
	umask(022);
	setrlimit(RLIMIT_CORE, &core);
	ground->plain_root = spawn_is_plain_root();
	ground->inherits = spawn_has_inheritable();
	ground->proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ground->score_fd = spawn_open_own(ground, "self/oom_score_adj", O_RDONLY);
	getrlimit(RLIMIT_NOFILE, &limit);
	ground->nofile_soft = limit.rlim_cur;
	ground->nofile_hard = limit.rlim_max;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

void
spawn_ground_forget_peak(const struct spawn_ground *ground)
{
	struct rusage usage;
	ssize_t forgotten = 0; /* best effort: not every /proc has the file */
	int fd;

	if (getrusage(RUSAGE_SELF, &usage) < 0 || usage.ru_maxrss <= SPAWN_SMALL_KIB)
		return;
	fd = spawn_open_own(ground, "self/clear_refs", O_WRONLY);
	if (fd < 0)
		return;
	forgotten = write(fd, "5", 1);
	(void)forgotten;
	close(fd);
}

/* The agent may be protected at any time after its start, and a child inherits that. */
bool
spawn_ground_is_protected(const struct spawn_ground *ground)
{
	char first = '0';

	return ground->score_fd >= 0 && pread(ground->score_fd, &first, 1, 0) == 1 && first == '-';
}

static void __attribute__((noreturn)) spawn_fail(struct spawn_report *report, enum spawn_stage stage, int errnum)
{
	report->stage = stage;
	report->errnum = errnum;
	_exit(127);
}

/*
 * Closes all but the targets. At exec they would go anyway, but a working directory or a program may be named
 * through /proc/self/fd, and what the agent holds is not for commands.
 */
static void
spawn_child_close(const struct spawn_plan *plan)
{
#ifdef SYS_close_range
	unsigned first = 3;

	for (size_t i = 0; i < SPAWN_DESCRIPTORS; i++) { /* their targets rise */
		unsigned to = (unsigned)plan->descriptors[i].to;

		if (plan->descriptors[i].from < 0 || to < first)
			continue;
		if (to > first)
			syscall(SYS_close_range, first, to - 1, 0U);
		first = to + 1;
	}
	syscall(SYS_close_range, first, ~0U, 0U);
#endif
}

/* Sources of 0, 1 and 2 are above them. What goes higher is parked first: its place may be another's source. */
static int
spawn_child_descriptors(const struct spawn_plan *plan)
{
	int parked[SPAWN_DESCRIPTORS];

#ifdef SYS_close_range
	syscall(SYS_close_range, 3U, ~0U, SPAWN_CLOSE_RANGE_CLOEXEC);
#endif
	for (size_t i = 0; i < SPAWN_DESCRIPTORS; i++) {
		parked[i] = plan->descriptors[i].from;
		if (parked[i] >= 0 && plan->descriptors[i].to > 2)
			parked[i] = fcntl(parked[i], F_DUPFD_CLOEXEC, SPAWN_PARK_FROM);
		if (parked[i] < 0 && plan->descriptors[i].from >= 0)
			return -1;
	}
	for (size_t i = 0; i < SPAWN_DESCRIPTORS; i++)
		if (parked[i] >= 0 && dup2(parked[i], plan->descriptors[i].to) < 0)
			return -1;
	spawn_child_close(plan);
	return 0;
}

/* The child's own file: the agent's must stay as it is. */
static void
spawn_child_score(int proc_fd)
{
	ssize_t score_set = -1; /* best effort: the kernel refuses only what is not ours to raise */
	int fd = openat(proc_fd, "self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	score_set = write(fd, "0", 1);
	(void)score_set;
	close(fd);
}

/* What the agent has beyond its bounding set came through its inheritable set; commands must not have it. */
static int
spawn_child_capabilities(const struct spawn_ground *ground)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (!ground->inherits)
		return 0;
	if (syscall(SYS_capget, &head, data) < 0)
		return -1;
	data[0].inheritable = data[1].inheritable = 0;
	return (int)syscall(SYS_capset, &head, data);
}

/* The C library's wrappers synchronise threads; in a child that shares memory only the plain calls are right. */
static int
spawn_child_user(const struct spawn_ground *ground, const struct user *user)
{
	if (geteuid() != 0)
		return user->uid == geteuid() ? 0 : (errno = EPERM, -1);
	if (ground->plain_root && user->uid == 0 && user->gid == 0 && user->group_count == 0)
		return 0;
	if (syscall(SYS_setgroups, user->group_count, user->groups) < 0 && (errno != EPERM || user->uid != 0))
		return -1;
	if (syscall(SYS_setresgid, user->gid, user->gid, user->gid) < 0)
		return -1;
	return (int)syscall(SYS_setresuid, user->uid, user->uid, user->uid);
}

/* The agent's own filter lets clone3 through; for whatever comes after this one it is not there. */
static int
spawn_child_filter(const struct spawn_ground *ground)
{
	struct sock_filter program[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { sizeof program / sizeof program[0], program };

	return ground->deny_clone3 ? (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0U, &filter) : 0;
}

/* What exec would leave of them: without it they are to be given up one by one. */
static int
spawn_bound_capabilities(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &head, data) < 0)
		return -1;
	for (unsigned cap = 0; cap < 64; cap++)
		if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) != 1)
			data[cap / 32].permitted &= ~(1U << cap % 32);
	for (size_t i = 0; i < 2; i++) {
		data[i].effective = data[i].permitted;
		data[i].inheritable = 0;
	}
	return (int)syscall(SYS_capset, &head, data);
}

int
spawn_become(const struct spawn_ground *ground, const struct user *user)
{
	struct rlimit nofile = { ground->nofile_soft, ground->nofile_hard };

	if (spawn_ground_is_protected(ground))
		spawn_child_score(ground->proc_fd);
	setrlimit(RLIMIT_NOFILE, &nofile);
	if (spawn_child_user(ground, user) < 0 || spawn_child_filter(ground) < 0)
		return -1;
	return spawn_bound_capabilities();
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

/* Dispositions, umask and the core limit are the agent's own: see spawn_ground_init(). */
static void __attribute__((noreturn))
spawn_child(const struct spawn_plan *plan, int cgroup_procs_fd, struct spawn_report *report)
{
	const struct spawn_ground *ground = plan->ground;
	struct rlimit nofile = { ground->nofile_soft, ground->nofile_hard };
	sigset_t none;

	report->stage = SPAWN_STARTED;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (setsid() < 0)
		spawn_fail(report, SPAWN_SETUP, errno);
	if (cgroup_procs_fd >= 0 && write(cgroup_procs_fd, "0", 1) != 1)
		spawn_fail(report, SPAWN_CGROUP, errno);
	if (ground->nofile_soft != ground->nofile_hard)
		setrlimit(RLIMIT_NOFILE, &nofile);
	if (plan->raise_score)
		spawn_child_score(ground->proc_fd);
	if (spawn_child_descriptors(plan) < 0 || (plan->terminal && ioctl(0, TIOCSCTTY, 0) < 0))
		spawn_fail(report, SPAWN_SETUP, errno);
	if (spawn_child_capabilities(ground) < 0 || spawn_child_user(ground, plan->user) < 0 ||
		spawn_child_filter(ground) < 0)
		spawn_fail(report, SPAWN_USER, errno);
	if (chdir(plan->base_dir) < 0 && (plan->cwd == NULL || plan->cwd[0] != '/'))
		spawn_fail(report, SPAWN_CWD, errno);
	if (plan->cwd != NULL && chdir(plan->cwd) < 0)
		spawn_fail(report, SPAWN_CWD, errno);
	spawn_fail(report, SPAWN_EXEC, spawn_child_exec(plan));
}

struct spawn_start {
	const struct spawn_plan *plan;
	int cgroup_procs_fd;
	struct spawn_report *report;
};

static int
spawn_child_entry(void *arg)
{
	const struct spawn_start *start = arg;

	spawn_child(start->plan, start->cgroup_procs_fd, start->report);
}

static void
spawn_bury(pid_t pid)
{
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/*
 * Some kernels (6.14 and later) compare how often the new process's group was killed as a whole with how often its
 * parent's was, and kill it before it has run at all. One that has not come so far is made again in the old way.
 */
pid_t
spawn(const struct spawn_plan *plan, enum spawn_stage *ret_stage, int *ret_errno)
{
	struct spawn_report report = { SPAWN_FORK, 0 };
	struct spawn_report *volatile shared = &report;
	struct spawn_start start = { plan, -1, shared };
	pid_t pid = birth_in_group(spawn_child_entry, &start, plan->cgroup_fd);

	if (pid > 0 && shared->stage == SPAWN_FORK) {
		spawn_bury(pid);
		pid = -1;
	}
	if (pid < 0) {
		shared->stage = SPAWN_STARTED;
		start.cgroup_procs_fd = plan->cgroup_procs_fd;
		pid = birth(spawn_child_entry, &start);
	}
	if (pid < 0)
		report = (struct spawn_report){ SPAWN_FORK, errno };
	*ret_stage = shared->stage;
	*ret_errno = shared->errnum;
	if (shared->stage == SPAWN_STARTED)
		return pid;
	if (pid > 0)
		spawn_bury(pid);
	return -1;
}
