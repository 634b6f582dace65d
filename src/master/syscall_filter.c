/*
 * syscall_filter.c - a deny list, on purpose.
 *
 * A list of what is allowed breaks with every C library and every kernel; what we want
 * is that code running in a worker cannot become a program, another user, or a
 * kernel's guest. The rest is bounded by the service user's lack of any right.
 */
/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "master/syscall_filter.h"

#include "base/err.h"

#ifdef ORCHARD_SANITIZED

int
syscall_filter_install(bool may_exec, struct err *err)
{
	(void)may_exec;
	(void)err;
	return 0;
}

#else

#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>

static const int programs[] = { SCMP_SYS(execve), SCMP_SYS(execveat) };

static const int never_needed[] = {
	/* other processes */
	SCMP_SYS(ptrace),
	SCMP_SYS(process_vm_readv),
	SCMP_SYS(process_vm_writev),
	SCMP_SYS(process_madvise),
	SCMP_SYS(pidfd_getfd),
	SCMP_SYS(kcmp),
	/* ids and capabilities */
	SCMP_SYS(setuid),
	SCMP_SYS(setgid),
	SCMP_SYS(setreuid),
	SCMP_SYS(setregid),
	SCMP_SYS(setresuid),
	SCMP_SYS(setresgid),
	SCMP_SYS(setfsuid),
	SCMP_SYS(setfsgid),
	SCMP_SYS(setgroups),
	SCMP_SYS(capset),
	/* mounts, namespaces, roots */
	SCMP_SYS(mount),
	SCMP_SYS(umount2),
	SCMP_SYS(pivot_root),
	SCMP_SYS(chroot),
	SCMP_SYS(move_mount),
	SCMP_SYS(open_tree),
	SCMP_SYS(fsopen),
	SCMP_SYS(fsconfig),
	SCMP_SYS(fsmount),
	SCMP_SYS(fspick),
	SCMP_SYS(mount_setattr),
	SCMP_SYS(setns),
	SCMP_SYS(unshare),
	SCMP_SYS(mknod),
	SCMP_SYS(mknodat),
	SCMP_SYS(name_to_handle_at),
	SCMP_SYS(open_by_handle_at),
	SCMP_SYS(quotactl),
	SCMP_SYS(swapon),
	SCMP_SYS(swapoff),
	/* the kernel itself */
	SCMP_SYS(init_module),
	SCMP_SYS(finit_module),
	SCMP_SYS(delete_module),
	SCMP_SYS(kexec_load),
	SCMP_SYS(kexec_file_load),
	SCMP_SYS(reboot),
	SCMP_SYS(bpf),
	SCMP_SYS(perf_event_open),
	SCMP_SYS(userfaultfd),
	SCMP_SYS(io_uring_setup),
	SCMP_SYS(io_uring_enter),
	SCMP_SYS(io_uring_register),
	SCMP_SYS(keyctl),
	SCMP_SYS(add_key),
	SCMP_SYS(request_key),
	SCMP_SYS(personality),
	SCMP_SYS(acct),
	SCMP_SYS(syslog),
	SCMP_SYS(vhangup),
	SCMP_SYS(iopl),
	SCMP_SYS(ioperm),
	/* the clock and the host's name */
	SCMP_SYS(settimeofday),
	SCMP_SYS(clock_settime),
	SCMP_SYS(clock_adjtime),
	SCMP_SYS(adjtimex),
	SCMP_SYS(sethostname),
	SCMP_SYS(setdomainname),
};

static const unsigned long new_namespaces[] = { CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET,
	CLONE_NEWIPC, CLONE_NEWUTS, CLONE_NEWCGROUP };

static int
filter_deny(scmp_filter_ctx filter, const int *calls, size_t count)
{
	int rc = 0;

	for (size_t i = 0; i < count && rc == 0; i++)
		rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), calls[i], 0);
	return rc;
}

static int
filter_fill(scmp_filter_ctx filter, bool may_exec)
{
	int rc = filter_deny(filter, never_needed, sizeof never_needed / sizeof *never_needed);

	if (rc == 0 && !may_exec)
		rc = filter_deny(filter, programs, sizeof programs / sizeof *programs);
	for (size_t i = 0; i < sizeof new_namespaces / sizeof *new_namespaces && rc == 0; i++)
		rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
			SCMP_A0(SCMP_CMP_MASKED_EQ, new_namespaces[i], new_namespaces[i]));
	/* Its flags lie in memory, out of a filter's sight; the C library falls back to clone. */
	if (rc == 0)
		rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	return rc;
}

int
syscall_filter_install(bool may_exec, struct err *err)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int rc;

	if (filter == NULL)
		return err_set(err, ERR_INTERNAL, "the system call filter cannot be made");
	rc = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(EPERM));
	if (rc == 0)
		rc = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (rc == 0)
		rc = filter_fill(filter, may_exec);
	if (rc == 0)
		rc = seccomp_load(filter);
	seccomp_release(filter);
	return rc < 0 ? err_set_errno(err, -rc, "the system call filter cannot be installed") : 0;
}

#endif
