/*
 * enter_clone.c - clone3(), which the C library does not offer with a stack.
 *
 * A process that joins a cgroup by writing to cgroup.procs waits for a grace period of the whole kernel, several
 * milliseconds when nobody did so just before. One that is born there waits for nothing.
 */
/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "spawner/make/enter_clone.h"

#include "base/err.h"

#include <errno.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __x86_64__

bool
enter_clone_takes_cgroup(void)
{
	return true;
}

/* The child has an empty stack, so it goes on by a call of run and never comes back from here. */
static long
clone3_on_stack(struct clone_args *args, int (*run)(void *), void *arg)
{
	register void *kept __asm__("r8") = arg;
	long pid;

	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "xor %%ebp, %%ebp\n\t"
			 "mov %%r8, %%rdi\n\t"
			 "call *%%rdx\n\t"
			 "ud2\n"
			 "1:"
			 : "=a"(pid)
			 : "0"((long)SYS_clone3), "D"(args), "S"(sizeof *args), "d"(run), "r"(kept)
			 : "rcx", "r11", "memory", "cc");
	return pid;
}

pid_t
enter_clone(const struct clone_plan *plan, int *ret_pidfd, struct err *err)
{
	struct clone_args args = {
		.flags = plan->flags | CLONE_PARENT | CLONE_PIDFD | (plan->cgroup_fd >= 0 ? CLONE_INTO_CGROUP : 0),
		.pidfd = (uint64_t)(uintptr_t)ret_pidfd,
		.stack = (uint64_t)(uintptr_t)plan->stack,
		.stack_size = plan->stack_size,
		.cgroup = plan->cgroup_fd >= 0 ? (uint64_t)plan->cgroup_fd : 0,
	};
	long pid = clone3_on_stack(&args, plan->run, plan->arg);

	if (pid < 0)
		return err_set_errno(err, (int)-pid, "new namespaces (see /proc/sys/user/max_*_namespaces)");
	return (pid_t)pid;
}

#else

bool
enter_clone_takes_cgroup(void)
{
	return false;
}

pid_t
enter_clone(const struct clone_plan *plan, int *ret_pidfd, struct err *err)
{
	pid_t pid = clone(plan->run, plan->stack + plan->stack_size,
		(int)(plan->flags | CLONE_PARENT | CLONE_PIDFD | SIGCHLD), plan->arg, ret_pidfd, NULL, NULL);

	if (pid < 0)
		return err_set_errno(err, errno, "new namespaces (see /proc/sys/user/max_*_namespaces)");
	return pid;
}

#endif
