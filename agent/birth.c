/* birth.c - clone into shared memory, on a stack of its own, and a futex that the kernel wakes. */
/* SPDX-License-Identifier: MIT */
#include <config.h> /* the build's, not the agent's */

#include "agent/birth.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef ORCHARD_SANITIZED
/* The sanitizer knows of no stack but the agent's. */
pid_t __attribute__((noinline)) birth(int (*entry)(void *arg), void *arg)
{
	pid_t pid = vfork();

	if (pid == 0)
		entry(arg);
	return pid;
}
#else
enum { BIRTH_STACK = 32 * 1024, BIRTH_PATIENCE_MS = 100, BIRTH_MAX_STOPS = 10 };

/* Of the one child that there is at a time. */
static struct {
	char stack[BIRTH_STACK] __attribute__((aligned(64)));
	int busy; /* the kernel makes it 0 when the child has left this memory */
} room;

/* True once the child has ended. */
static bool
birth_push(pid_t pid, int *stops)
{
	siginfo_t info = { .si_pid = 0 };

	if (waitid(P_PID, (id_t)pid, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT) < 0 || info.si_pid != pid)
		return false;
	if (info.si_code != CLD_STOPPED)
		return true;
	kill(pid, ++*stops < BIRTH_MAX_STOPS ? SIGCONT : SIGKILL);
	return false;
}

static pid_t
birth_await(pid_t pid)
{
	const struct timespec patience = { .tv_nsec = BIRTH_PATIENCE_MS * 1000000L };
	int stops = 0;

	while (pid > 0 && __atomic_load_n(&room.busy, __ATOMIC_ACQUIRE) != 0)
		if (syscall(SYS_futex, &room.busy, FUTEX_WAIT, 1, &patience, NULL, 0) < 0 && errno == ETIMEDOUT &&
			birth_push(pid, &stops))
			break;
	return pid;
}

pid_t
birth(int (*entry)(void *arg), void *arg)
{
	room.busy = 1;
	return birth_await(clone(entry, room.stack + sizeof room.stack, CLONE_VM | CLONE_CHILD_CLEARTID | SIGCHLD,
		arg, NULL, NULL, &room.busy));
}
#endif

#if !defined(ORCHARD_SANITIZED) && defined(__x86_64__) && defined(CLONE_INTO_CGROUP)
/*
 * A process that joins a group later waits for a grace period of the whole kernel, milliseconds, and lets all others
 * wait who change groups. The C library has no wrapper for this, and its clone() takes no group: hence the instruction.
 */
pid_t
birth_in_group(int (*entry)(void *arg), void *arg, int cgroup_fd)
{
	struct clone_args args = { .flags = CLONE_VM | CLONE_CHILD_CLEARTID | CLONE_INTO_CGROUP,
		.child_tid = (uint64_t)(uintptr_t)&room.busy,
		.exit_signal = SIGCHLD,
		.stack = (uint64_t)(uintptr_t)room.stack,
		.stack_size = sizeof room.stack,
		.cgroup = (uint64_t)cgroup_fd };
	register int (*child_entry)(void *) __asm__("r12") = entry;
	register void *child_arg __asm__("r13") = arg;
	long pid = SYS_clone3;

	if (cgroup_fd < 0)
		return -1;
	room.busy = 1;
	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "xor %%ebp, %%ebp\n\t"
			 "mov %%r13, %%rdi\n\t"
			 "call *%%r12\n\t"
			 "hlt\n"
			 "1:"
			 : "+a"(pid)
			 : "D"(&args), "S"(sizeof args), "r"(child_entry), "r"(child_arg)
			 : "rcx", "r11", "memory", "cc");
	return pid < 0 ? -1 : birth_await((pid_t)pid);
}
#else
pid_t
birth_in_group(int (*entry)(void *arg), void *arg, int cgroup_fd)
{
	(void)entry;
	(void)arg;
	(void)cgroup_fd;
	return -1;
}
#endif
