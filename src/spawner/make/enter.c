/* enter.c - starts the child, hands it what it needs, and runs its steps. */
/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "spawner/make/enter.h"

#include "base/err.h"
#include "spawner/make/enter_clone.h"
#include "spawner/make/enter_msg.h"
#include "spawner/make/inside.h"
#include "spawner/site.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

enum {
	STACK_BYTES = 128 * 1024,
	GUARD_BYTES = 4096,
	FIRST_FREE_FD = 64, /* above all numbers the agent is given */
	FIRST_OWN_FD = 16, /* likewise, and the child's own are below that */
	KEPT_MAX = 8,
	STACKS_KEPT = 16,
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
	const struct site *site;
	const struct cgroup_box *cgroup;
	int channel;
	int helpers_end; /* a copy of it would keep the channel open when the helper is gone */
};

/* What the child goes on with when all else that it was born with is closed. */
struct child_own {
	const struct site *site;
	int channel, agent, null;
	struct inside_ground ground;
};

static _Noreturn void
report_and_exit(int channel, const char *step)
{
	struct enter_failure failure = { .number = errno };

	strncpy(failure.step, step, sizeof failure.step - 1);
	(void)send(channel, &failure, sizeof failure, MSG_NOSIGNAL);
	_exit(1);
}

/*
 * Until exec it must not outlive the spawner. A change of ids forgets that, so
 * it is said again; the helper dies with the spawner, which shows on the channel.
 */
static bool
die_with_spawner(int channel)
{
	struct pollfd pollfd = { .fd = channel };

	return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 && poll(&pollfd, 1, 0) >= 0 &&
		(pollfd.revents & POLLHUP) == 0;
}

/*
 * Keeps those alone (-1 is none): whatever else the helper has, other children's channels among it, would stay open for as long
 * as this one waits.
 */
static bool
keep_only(int *const kept[], int count)
{
	int high[KEPT_MAX];

	for (int i = 0; i < count; i++) {
		high[i] = *kept[i] < 0 ? -1 : fcntl(*kept[i], F_DUPFD_CLOEXEC, FIRST_FREE_FD);
		if (*kept[i] >= 0 && high[i] < 0)
			return false;
	}
	for (int i = 0; i < count; i++) {
		if (high[i] < 0)
			continue;
		if (dup3(high[i], FIRST_OWN_FD + i, O_CLOEXEC) < 0)
			return false;
		*kept[i] = FIRST_OWN_FD + i;
	}
	return syscall(SYS_close_range, 3, FIRST_OWN_FD - 1, 0) == 0 &&
		syscall(SYS_close_range, FIRST_OWN_FD + count, ~0U, 0) == 0;
}

/* Moves the agent's descriptors to the numbers it is told; -1 stays away. */
static bool
place_descriptors(int null, const int fds[ENTER_FDS])
{
	const int from[] = { null, null, null, fds[ENTER_LISTEN], fds[ENTER_CONFIG], fds[ENTER_GROUP],
		fds[ENTER_OOM], fds[ENTER_SPOOL], fds[ENTER_DISK] };
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

/* Nothing of an earlier one stays. */
static const char *
take_root(const struct child_own *own, int root)
{
	const char *failed = inside_build_root(&own->ground, root);

	close(root);
	return failed;
}

/* What is the same for every sandbox, or likely to be. */
static const char *
stand(const struct child_args *args, struct child_own *own, int mounts[ENTER_GROUND], bool alone)
{
	const char *failed = inside_join_cgroups(args->cgroup);

	if (failed == NULL &&
		!keep_only((int *const[]){ &own->channel, &own->agent, &own->null, &mounts[ENTER_BASE],
				   &mounts[ENTER_DEV], &mounts[ENTER_FIRST_ROOT] },
			3 + ENTER_GROUND))
		failed = "close descriptors (Linux 5.11 or newer is needed)";
	if (failed == NULL)
		failed = inside_take_ids();
	if (failed == NULL && !die_with_spawner(own->channel))
		failed = "go on without the spawner";
	if (failed == NULL && setsid() < 0)
		failed = "setsid";
	if (failed == NULL)
		failed = inside_build_ground(own->site, mounts, alone, &own->ground);
	if (failed == NULL)
		failed = inside_set_up(own->site);
	if (failed == NULL && mounts[ENTER_FIRST_ROOT] >= 0)
		failed = take_root(own, mounts[ENTER_FIRST_ROOT]);
	return failed;
}

static const char *
become(const struct child_own *own, const struct enter_words *words, const int fds[ENTER_FDS])
{
	const char *failed = fds[ENTER_ROOT] >= 0 ? take_root(own, fds[ENTER_ROOT]) : NULL;

	if (failed == NULL)
		failed = inside_furnish_root(words, fds[ENTER_RESOLV]);
	if (failed == NULL && sethostname(words->id, strlen(words->id)) != 0)
		failed = "set host name";
	if (failed == NULL && syscall(SYS_close_range, 3, ~0U, 1U << 2 /* CLOSE_RANGE_CLOEXEC */) != 0)
		failed = "close_range (Linux 5.11 or newer is needed)";
	if (failed == NULL && !place_descriptors(own->null, fds))
		failed = "place descriptors";
	if (failed == NULL)
		failed = inside_drop_rights(own->site);
	return failed;
}

static _Noreturn void
execute_agent(const struct child_own *own)
{
	char *const argv[] = { (char[]){ "orchard-agent" }, (char[]){ "--listen-fd" }, (char[]){ "3" },
		(char[]){ "--config-fd" }, (char[]){ "4" }, NULL };
	char *const envp[] = { NULL };

	(void)prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
	syscall(SYS_execveat, own->agent, "", argv, envp, AT_EMPTY_PATH);
	report_and_exit(own->channel, "execute the agent");
}

static int
child_main(void *arg)
{
	const struct child_args *args = arg;
	struct child_own own = { .site = args->site,
		.channel = args->channel,
		.agent = args->site->agent_fd,
		.null = args->site->null_fd };
	int mounts[ENTER_GROUND], fds[ENTER_FDS];
	struct enter_words words;
	const char *failed;
	bool alone;

	(void)prctl(PR_SET_NAME, "orchard-blank", 0, 0, 0); /* until it is somebody */
	close(args->helpers_end);
	if (!die_with_spawner(own.channel) ||
		!enter_msg_receive(own.channel, &alone, sizeof alone, mounts, ENTER_GROUND))
		_exit(1);
	failed = stand(args, &own, mounts, alone);
	if (failed != NULL)
		report_and_exit(own.channel, failed);
	if (alone && send(own.channel, "r", 1, MSG_NOSIGNAL) != 1)
		_exit(1);
	if (!enter_msg_receive(own.channel, &words, sizeof words, fds, ENTER_FDS))
		_exit(1);
	failed = become(&own, &words, fds);
	if (failed != NULL)
		report_and_exit(own.channel, failed);
	if (words.rehearsal)
		_exit(0);
	execute_agent(&own);
}

/* Stacks of children that are gone, or have a memory of their own. */
static char *spare_stacks[STACKS_KEPT];
static int spare_count;

static char *
take_stack(void)
{
	char *stack;

	if (spare_count > 0)
		return spare_stacks[--spare_count];
	stack = mmap(NULL, STACK_BYTES + GUARD_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (stack == MAP_FAILED)
		abort();
	(void)mprotect(stack, GUARD_BYTES, PROT_NONE);
	return stack;
}

static void
give_stack(char **stack)
{
	if (*stack != NULL && spare_count < STACKS_KEPT)
		spare_stacks[spare_count++] = *stack;
	else if (*stack != NULL)
		(void)munmap(*stack, STACK_BYTES + GUARD_BYTES);
	*stack = NULL;
}

int
enter_cut_loose(int *dir, struct err *err)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC };
	AUTO_FD mnt = -1;

	if (*dir < 0)
		return 0;
	mnt = open_tree(*dir, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
	if (mnt < 0 || mount_setattr(mnt, "", AT_EMPTY_PATH, &attr, sizeof attr) != 0)
		return err_set_errno(err, errno, "cut a directory of the agent from the host's tree");
	close(*dir);
	*dir = STEAL_FD(mnt);
	return 0;
}

int
enter_start(
	const struct site *site, const struct cgroup_box *cgroup, struct enter_child *ret_child, struct err *err)
{
	static struct child_args args; /* the child reads it from memory that it shares, before it stands */
	char *stack = take_stack();
	const struct clone_plan clone = {
		.flags = (uint64_t)(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC |
			CLONE_NEWNET | share_flags),
		.stack = stack + GUARD_BYTES,
		.stack_size = STACK_BYTES,
		.run = child_main,
		.arg = &args,
		.cgroup_fd = cgroup->dir_fd,
	};
	int ends[2], pidfd = -1;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
		give_stack(&stack);
		return err_set_errno(err, errno, "socketpair");
	}
	args = (struct child_args){ site, cgroup, ends[1], ends[0] };
	pid = enter_clone(&clone, &pidfd, err);
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		give_stack(&stack);
		return -1;
	}
	*ret_child = (struct enter_child){ pid, pidfd, ends[0], stack };
	return 0;
}

/* One word of the child, or the end of the channel: its length, 0, -1 with what went wrong. */
static ssize_t
hear(const struct enter_child *child, struct err *err)
{
	struct pollfd pollfd = { .fd = child->channel, .events = POLLIN };
	struct enter_failure failure;
	ssize_t n;

	if (poll(&pollfd, 1, FINISH_TIMEOUT_MS) <= 0)
		return err_set(err, ERR_TIMEOUT, "the sandbox's init does not come up");
	n = recv(child->channel, &failure, sizeof failure, 0);
	if (n == (ssize_t)sizeof failure)
		return err_set_errno(err, failure.number, "%.119s", failure.step);
	if (n < 0 || n > 1)
		return err_set(err, ERR_INTERNAL, "the sandbox's init answers nonsense");
	return n;
}

int
enter_stand(struct enter_child *child, const int ground[ENTER_GROUND], bool wait, struct err *err)
{
	ssize_t n;

	if (!enter_msg_send(child->channel, &wait, sizeof wait, ground, ENTER_GROUND))
		return err_set_errno(err, errno, "the sandbox's init is gone");
	if (!wait)
		return 0;
	n = hear(child, err);
	if (n == 0)
		return err_set(err, ERR_INTERNAL, "the sandbox's init has died");
	return n < 0 ? -1 : 0;
}

bool
enter_is_standing(const struct enter_child *child)
{
	struct pollfd pollfd = { .fd = child->channel, .events = POLLIN };

	return poll(&pollfd, 1, 0) == 0;
}

int
enter_finish(struct enter_child *child, const struct enter_words *words, const int fds[ENTER_FDS], struct err *err)
{
	int sent = enter_msg_send(child->channel, words, sizeof *words, fds, ENTER_FDS) ? 0 : errno;
	ssize_t n = hear(child, err); /* a failure of its first part comes by this, too */

	if (n == 0 && sent != 0)
		return err_set_errno(err, sent, "the sandbox's init is gone");
	if (n == 1)
		return err_set(err, ERR_INTERNAL, "the sandbox's init answers nonsense");
	return n < 0 ? -1 : 0;
}

void
enter_leave(struct enter_child *child)
{
	cleanup_fd(&child->pidfd);
	cleanup_fd(&child->channel);
	child->pidfd = child->channel = -1;
	give_stack(&child->stack);
}

void
enter_abort(struct enter_child *child)
{
	struct pollfd pollfd = { .fd = child->pidfd, .events = POLLIN };

	if (child->pidfd >= 0) {
		(void)syscall(SYS_pidfd_send_signal, child->pidfd, SIGKILL, NULL, 0);
		if (poll(&pollfd, 1, FINISH_TIMEOUT_MS) != 1)
			child->stack = NULL; /* whoever can't die may still stand on it */
	}
	enter_leave(child);
}
