/*
 * filter.c - a deny list: what is not in the table is allowed.
 *
 * A sandbox is root of its own user namespace only, so the kernel refuses most
 * of this anyway; the list keeps user code away from the parts of the kernel
 * where such checks have failed before. A program of another ABI (32 bit, x32)
 * is killed with SIGSYS: its call numbers are not checked.
 */
/* SPDX-License-Identifier: MIT */
#include "spawner/filter.h"

#include "base/err.h"

#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

static const struct {
	const char *name;
	int answer;
} denied_calls[] = {
	/* mounts and roots */
	{ "mount", EPERM },
	{ "umount", EPERM },
	{ "umount2", EPERM },
	{ "pivot_root", EPERM },
	{ "fsopen", EPERM },
	{ "fsconfig", EPERM },
	{ "fsmount", EPERM },
	{ "fspick", EPERM },
	{ "move_mount", EPERM },
	{ "open_tree", EPERM },
	{ "open_tree_attr", EPERM },
	{ "mount_setattr", EPERM },
	{ "quotactl", EPERM },
	{ "quotactl_fd", EPERM },
	{ "open_by_handle_at", EPERM },
	/* other namespaces; libc takes ENOSYS as "use clone", whose flags can be looked at */
	{ "setns", EPERM },
	{ "clone3", ENOSYS },
	/* kernel code and the machine */
	{ "kexec_load", EPERM },
	{ "kexec_file_load", EPERM },
	{ "create_module", EPERM },
	{ "init_module", EPERM },
	{ "finit_module", EPERM },
	{ "delete_module", EPERM },
	{ "query_module", EPERM },
	{ "get_kernel_syms", EPERM },
	{ "bpf", EPERM },
	{ "reboot", EPERM },
	{ "swapon", EPERM },
	{ "swapoff", EPERM },
	{ "acct", EPERM },
	{ "ioperm", EPERM },
	{ "iopl", EPERM },
	{ "syslog", EPERM },
	{ "vhangup", EPERM },
	{ "lookup_dcookie", EPERM },
	{ "nfsservctl", EPERM },
	{ "uselib", EPERM },
	{ "ustat", EPERM },
	{ "sysfs", EPERM },
	{ "_sysctl", EPERM },
	{ "fanotify_init", EPERM },
	/* clocks */
	{ "settimeofday", EPERM },
	{ "stime", EPERM },
	{ "clock_settime", EPERM },
	{ "clock_adjtime", EPERM },
	{ "adjtimex", EPERM },
	/* keyrings are not all in namespaces */
	{ "add_key", EPERM },
	{ "keyctl", EPERM },
	{ "request_key", EPERM },
	/* wide surface, often broken */
	{ "perf_event_open", EPERM },
	{ "userfaultfd", EPERM },
	{ "io_uring_setup", ENOSYS },
	{ "io_uring_enter", ENOSYS },
	{ "io_uring_register", ENOSYS },
	{ "vm86", EPERM },
	{ "vm86old", EPERM },
	{ "modify_ldt", EPERM },
};

static const uint64_t namespace_flags[] = {
	CLONE_NEWUSER,
	CLONE_NEWNS,
	CLONE_NEWPID,
	CLONE_NEWNET,
	CLONE_NEWIPC,
	CLONE_NEWUTS,
	CLONE_NEWCGROUP,
};

/* A new namespace of any kind; every other use of clone and unshare is fine. */
static int
deny_namespaces(scmp_filter_ctx ctx)
{
	int rc = 0;

	for (size_t i = 0; i < sizeof namespace_flags / sizeof *namespace_flags && rc == 0; i++) {
		uint64_t flag = namespace_flags[i];

#if defined(__s390__)
		rc = seccomp_rule_add(
			ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1, SCMP_A1(SCMP_CMP_MASKED_EQ, flag, flag));
#else
		rc = seccomp_rule_add(
			ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1, SCMP_A0(SCMP_CMP_MASKED_EQ, flag, flag));
#endif
		if (rc == 0)
			rc = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(unshare), 1,
				SCMP_A0(SCMP_CMP_MASKED_EQ, flag, flag));
	}
	if (rc == 0)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(unshare), 1,
			SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_NEWTIME, CLONE_NEWTIME));
	return rc;
}

/*
 * Local and internet sockets and netlink stay. The rest is either not in the
 * network namespace (vsock, the kernel's crypto) or a protocol that nobody needs
 * on a loopback. The kernel reads the low half of the argument only, so whatever
 * is set above it makes the number a large one, which is denied.
 */
static int
deny_sockets(scmp_filter_ctx ctx)
{
	const int calls[] = { SCMP_SYS(socket), SCMP_SYS(socketpair) };
	const uint32_t answer = SCMP_ACT_ERRNO(EAFNOSUPPORT);
	int rc = 0;

	for (size_t i = 0; i < sizeof calls / sizeof *calls && rc == 0; i++) {
		rc = seccomp_rule_add(ctx, answer, calls[i], 1, SCMP_A0(SCMP_CMP_GT, AF_NETLINK, 0));
		for (uint64_t family = AF_INET + 1; family < AF_NETLINK && rc == 0; family++) {
			if (family != AF_INET6)
				rc = seccomp_rule_add(ctx, answer, calls[i], 1, SCMP_A0(SCMP_CMP_EQ, family, 0));
		}
	}
	return rc;
}

static int
fill(scmp_filter_ctx ctx)
{
	int rc = 0;

	for (size_t i = 0; i < sizeof denied_calls / sizeof *denied_calls && rc == 0; i++) {
		int number = seccomp_syscall_resolve_name(denied_calls[i].name);

		/* negative: unknown to this library, or no call of this machine */
		if (number >= 0)
			rc = seccomp_rule_add(ctx, SCMP_ACT_ERRNO((uint32_t)denied_calls[i].answer), number, 0);
	}
	if (rc == 0)
		rc = deny_namespaces(ctx);
	if (rc == 0)
		rc = deny_sockets(ctx);
	return rc;
}

static int
export_program(scmp_filter_ctx ctx, struct sock_fprog *ret_program, struct err *err)
{
	AUTO_FD fd = memfd_create("filter", MFD_CLOEXEC);
	off_t size;

	if (fd < 0)
		return err_set_errno(err, errno, "memfd_create");
	if (seccomp_export_bpf(ctx, fd) != 0 || (size = lseek(fd, 0, SEEK_END)) <= 0)
		return err_set(err, ERR_INTERNAL, "the system call filter can't be exported");
	ret_program->filter = malloc((size_t)size);
	if (ret_program->filter == NULL || pread(fd, ret_program->filter, (size_t)size, 0) != size) {
		free(ret_program->filter);
		return err_set(err, ERR_INTERNAL, "the system call filter can't be read back");
	}
	ret_program->len = (unsigned short)((size_t)size / sizeof(struct sock_filter));
	return 0;
}

int
filter_build(struct sock_fprog *ret_program, struct err *err)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
	int rc;

	if (ctx == NULL)
		return err_set(err, ERR_INTERNAL, "seccomp_init failed");
	rc = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	if (rc == 0)
		rc = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (rc == 0)
		rc = fill(ctx);
	if (rc != 0)
		rc = err_set_errno(err, -rc, "system call filter");
	else
		rc = export_program(ctx, ret_program, err);
	seccomp_release(ctx);
	return rc;
}
