/* enter.c - starts the child, hands it what it needs, and runs its steps. */
/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "spawner/enter.h"

#include "base/err.h"
#include "spawner/inside.h"
#include "spawner/site.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

enum {
	STACK_BYTES = 128 * 1024,
	GUARD_BYTES = 4096,
	FIRST_FREE_FD = 64, /* above all numbers the agent is given */
	FINISH_TIMEOUT_MS = 60000
};

#ifdef ORCHARD_SANITIZED
/* The sanitizers keep per-process state that a second process may not share. */
static const int share_flags = 0;
#else
static const int share_flags = CLONE_VM;
#endif

struct enter_failure {
	int number; /* errno */
	char step[120];
};

struct child_args {
	const struct enter_plan *plan;
	int channel;
};

static _Noreturn void
report_and_exit(int channel, const char *step)
{
	struct enter_failure failure = { .number = errno };

	strncpy(failure.step, step, sizeof failure.step - 1);
	(void)send(channel, &failure, sizeof failure, MSG_NOSIGNAL);
	_exit(1);
}

/* Waits for the message that carries the mounts; false when the helper is gone. */
static bool
receive_mounts(int channel, int mounts[ENTER_MOUNTS])
{
	union {
		char space[CMSG_SPACE(sizeof(int) * ENTER_MOUNTS)];
		struct cmsghdr align;
	} control;
	char word;
	struct iovec iov = { &word, 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control
	};
	const struct cmsghdr *head;
	ssize_t n;

	do
		n = recvmsg(channel, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	head = n == 1 ? CMSG_FIRSTHDR(&msg) : NULL;
	if (head == NULL || head->cmsg_type != SCM_RIGHTS || head->cmsg_len != CMSG_LEN(sizeof(int) * ENTER_MOUNTS))
		return false;
	memcpy(mounts, CMSG_DATA(head), sizeof(int) * ENTER_MOUNTS);
	return true;
}

/*
 * Until exec it must not outlive the spawner. A change of ids forgets that, so
 * it is said again; the helper dies with the spawner, which shows on the channel.
 */
static bool
die_with_spawner(int channel)
{
	struct pollfd pollfd = { .fd = channel };

	return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 && poll(&pollfd, 1, 0) == 0;
}

/* Moves the agent's descriptors to the numbers it is told; -1 stays away. */
static bool
place_descriptors(const struct enter_plan *plan)
{
	const int from[] = { plan->site->null_fd, plan->site->null_fd, plan->site->null_fd, plan->listen_fd,
		plan->config_fd, plan->cgroup->dir_fd, plan->cgroup->oom_fd };
	enum { TARGETS = sizeof from / sizeof *from };
	int high[TARGETS];

	for (int i = 0; i < TARGETS; i++) {
		high[i] = from[i] < 0 ? -1 : fcntl(from[i], F_DUPFD_CLOEXEC, FIRST_FREE_FD);
		if (from[i] >= 0 && high[i] < 0)
			return false;
	}
	for (int i = 0; i < TARGETS; i++) {
		if (high[i] >= 0 && dup2(high[i], i) < 0)
			return false;
	}
	return true;
}

static const char *
prepare(const struct enter_plan *plan, int channel, const int mounts[ENTER_MOUNTS])
{
	const char *failed = inside_join_cgroups(plan->cgroup);

	if (failed == NULL)
		failed = inside_take_ids();
	if (failed == NULL && !die_with_spawner(channel))
		failed = "go on without the spawner";
	if (failed == NULL && setsid() < 0)
		failed = "setsid";
	if (failed == NULL)
		failed = inside_build_root(plan, mounts);
	if (failed == NULL)
		failed = inside_set_up(plan);
	return failed;
}

static int
child_main(void *arg)
{
	const struct child_args *args = arg;
	const struct enter_plan *plan = args->plan;
	char *const argv[] = { (char[]){ "orchard-agent" }, (char[]){ "--listen-fd" }, (char[]){ "3" },
		(char[]){ "--config-fd" }, (char[]){ "4" }, NULL };
	char *const envp[] = { NULL };
	int channel = fcntl(args->channel, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
	int agent = fcntl(plan->site->agent_fd, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
	int mounts[ENTER_MOUNTS];
	const char *failed;

	close(args->channel);
	if (channel < 0 || agent < 0 || !die_with_spawner(channel) || !receive_mounts(channel, mounts))
		_exit(1);
	failed = prepare(plan, channel, mounts);
	if (failed == NULL && syscall(SYS_close_range, 3, ~0U, 1U << 2 /* CLOSE_RANGE_CLOEXEC */) != 0)
		failed = "close_range (Linux 5.11 or newer is needed)";
	if (failed == NULL && !place_descriptors(plan))
		failed = "place descriptors";
	if (failed == NULL)
		failed = inside_drop_rights(plan->site);
	if (failed == NULL && plan->rehearsal)
		_exit(0);
	if (failed == NULL) {
		(void)prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
		syscall(SYS_execveat, agent, "", argv, envp, AT_EMPTY_PATH);
		failed = "execute the agent";
	}
	report_and_exit(channel, failed);
}

/* One stack for the life of a helper: it makes one sandbox at a time. */
static char *
stack_top(void)
{
	static char *stack;

	if (stack == NULL) {
		stack = mmap(NULL, STACK_BYTES + GUARD_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
		if (stack == MAP_FAILED)
			abort();
		(void)mprotect(stack, GUARD_BYTES, PROT_NONE);
	}
	return stack + STACK_BYTES + GUARD_BYTES;
}

int
enter_start(const struct enter_plan *plan, struct enter_child *ret_child, struct err *err)
{
	const int flags = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNET |
		CLONE_PIDFD | CLONE_PARENT | share_flags | SIGCHLD;
	static struct child_args args; /* the child reads it from memory that it shares */
	int ends[2], pidfd = -1;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return err_set_errno(err, errno, "socketpair");
	args.plan = plan;
	args.channel = ends[1];
	pid = clone(child_main, stack_top(), flags, &args, &pidfd, NULL, NULL);
	if (pid < 0) {
		err_set_errno(err, errno, "new namespaces (see /proc/sys/user/max_*_namespaces)");
		close(ends[0]);
		close(ends[1]);
		return -1;
	}
	close(ends[1]);
	ret_child->pid = pid;
	ret_child->pidfd = pidfd;
	ret_child->channel = ends[0];
	return 0;
}

static int
send_mounts(int channel, const int mounts[ENTER_MOUNTS], struct err *err)
{
	union {
		char space[CMSG_SPACE(sizeof(int) * ENTER_MOUNTS)];
		struct cmsghdr align;
	} control = { 0 };
	char word = 'g';
	struct iovec iov = { &word, 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control
	};
	struct cmsghdr *head = CMSG_FIRSTHDR(&msg);

	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(int) * ENTER_MOUNTS);
	memcpy(CMSG_DATA(head), mounts, sizeof(int) * ENTER_MOUNTS);
	if (sendmsg(channel, &msg, MSG_NOSIGNAL) != 1)
		return err_set_errno(err, errno, "the sandbox's init is gone");
	return 0;
}

/* The last word of the child: none, because exec closed the channel, or what went wrong. */
static int
read_outcome(int channel, struct err *err)
{
	struct enter_failure failure;
	ssize_t n = recv(channel, &failure, sizeof failure, 0);

	if (n == (ssize_t)sizeof failure)
		return err_set_errno(err, failure.number, "%.119s", failure.step);
	if (n != 0)
		return err_set(err, ERR_INTERNAL, "the sandbox's init answers nonsense");
	return 0;
}

int
enter_finish(struct enter_child *child, const int mounts[ENTER_MOUNTS], struct err *err)
{
	struct pollfd pollfd[] = { { .fd = child->channel, .events = POLLIN } };

	if (send_mounts(child->channel, mounts, err) != 0)
		return -1;
	if (poll(pollfd, 1, FINISH_TIMEOUT_MS) <= 0)
		return err_set(err, ERR_TIMEOUT, "the sandbox's init does not come up");
	return read_outcome(child->channel, err);
}

void
enter_abort(struct enter_child *child)
{
	struct pollfd pollfd = { .fd = child->pidfd, .events = POLLIN };

	if (child->pidfd >= 0) {
		(void)syscall(SYS_pidfd_send_signal, child->pidfd, SIGKILL, NULL, 0);
		(void)poll(&pollfd, 1, FINISH_TIMEOUT_MS);
	}
	cleanup_fd(&child->pidfd);
	cleanup_fd(&child->channel);
	child->pidfd = child->channel = -1;
}
