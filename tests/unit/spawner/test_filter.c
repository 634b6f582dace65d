/* test_filter.c - the call filter, loaded into a child that then tries the calls by number. */
/* SPDX-License-Identifier: MIT */
#include "spawner/make/filter.h"

#include "base/err.h"
#include "conf/config.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define ABOVE (1ULL << 32)

static const struct config config = { .sandbox_seccomp = true };
static struct sock_fprog program;

static int
set_up(void **state)
{
	struct err err;

	(void)state;
	if (filter_build(&config, false, &program, &err) != 0)
		fail_msg("%s", err.msg);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	free(program.filter);
	return 0;
}

/* In a child under the filter: the errno of the call, 0 when it was let through; the signal, negated, that killed it. */
static int
outcome3(long number, uint64_t a, uint64_t b, uint64_t c)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		long rc;

		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
			syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0)
			_exit(255);
		errno = 0;
		rc = syscall(number, a, b, c, 0, 0, 0);
		_exit(rc < 0 ? errno : 0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status))
		return -WTERMSIG(status);
	assert_int_not_equal(WEXITSTATUS(status), 255);
	return WEXITSTATUS(status);
}

static int
outcome(long number, uint64_t a, uint64_t b)
{
	return outcome3(number, a, b, 0);
}

static void
test_kernel_surface_is_denied(void **state)
{
	static const long numbers[] = { SYS_mount, SYS_umount2, SYS_pivot_root, SYS_fsopen, SYS_fsconfig,
		SYS_fsmount, SYS_fspick, SYS_move_mount, SYS_open_tree, SYS_mount_setattr, SYS_setns,
		SYS_kexec_load, SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_bpf, SYS_reboot,
		SYS_swapon, SYS_swapoff, SYS_acct, SYS_quotactl, SYS_open_by_handle_at, SYS_settimeofday,
		SYS_clock_settime, SYS_clock_adjtime, SYS_adjtimex, SYS_add_key, SYS_keyctl, SYS_request_key,
		SYS_perf_event_open, SYS_userfaultfd, SYS_syslog, SYS_fanotify_init, SYS_vhangup };

	(void)state;
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		if (outcome(numbers[i], 0, 0) != EPERM)
			fail_msg("call %ld is not denied", numbers[i]);
	}
	assert_int_equal(outcome(SYS_io_uring_setup, 1, 0), ENOSYS);
	assert_int_equal(outcome(SYS_clone3, 0, 0), ENOSYS);
}

static void
test_no_namespace_by_any_flag(void **state)
{
	static const uint64_t flags[] = { CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWIPC,
		CLONE_NEWUTS, CLONE_NEWCGROUP, CLONE_NEWUSER | CLONE_NEWNS, ABOVE | CLONE_NEWUSER };

	(void)state;
	for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
		assert_int_equal(outcome(SYS_unshare, flags[i], 0), EPERM);
		assert_int_equal(outcome(SYS_clone, flags[i] | SIGCHLD, 0), EPERM);
	}
	assert_int_equal(outcome(SYS_unshare, 0x80 /* time */, 0), EPERM);
	assert_int_equal(outcome(SYS_unshare, CLONE_FILES, 0), 0);
}

static void
test_sockets_local_and_internet_only(void **state)
{
	static const uint64_t denied[] = { AF_PACKET, AF_ALG, AF_VSOCK, AF_CAN, AF_TIPC, AF_RDS, AF_X25, AF_AX25,
		AF_VSOCK | ABOVE, AF_PACKET | ABOVE, 0xffffffffULL };
	static const uint64_t allowed[] = { AF_UNIX, AF_INET, AF_INET6, AF_NETLINK };

	(void)state;
	for (size_t i = 0; i < sizeof denied / sizeof *denied; i++) {
		if (outcome(SYS_socket, denied[i], SOCK_DGRAM) != EAFNOSUPPORT)
			fail_msg("sockets of family %llu can be made", (unsigned long long)denied[i]);
	}
	for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++)
		assert_int_equal(outcome(SYS_socket, allowed[i], SOCK_DGRAM), 0);
}

static void
test_netlink_only_where_it_is_in_the_namespace(void **state)
{
	static const uint64_t denied[] = { 6 /* xfrm */, 8 /* iscsi */, 18 /* scsi */, 20 /* rdma */,
		21 /* crypto */, 21 | ABOVE };

	(void)state;
	for (size_t i = 0; i < sizeof denied / sizeof *denied; i++) {
		assert_int_equal(outcome3(SYS_socket, AF_NETLINK, SOCK_RAW, denied[i]), EPROTONOSUPPORT);
		assert_int_equal(outcome3(SYS_socketpair, AF_NETLINK, SOCK_RAW, denied[i]), EPROTONOSUPPORT);
	}
	assert_int_equal(outcome3(SYS_socket, AF_NETLINK, SOCK_RAW, 0 /* route */), 0);
}

static void
test_nobody_types_for_others_nor_limits_the_agent(void **state)
{
	(void)state;
	assert_int_equal(outcome(SYS_ioctl, 1000, TIOCSTI), EPERM);
	assert_int_equal(outcome(SYS_ioctl, 1000, TIOCSTI | ABOVE), EPERM);
	assert_int_equal(outcome(SYS_ioctl, 1000, TIOCLINUX), EPERM);
	assert_int_equal(outcome(SYS_ioctl, 1000, TIOCGWINSZ), EBADF);
	assert_int_equal(outcome3(SYS_prlimit64, 1, RLIMIT_CPU, 1), EPERM);
	assert_int_equal(outcome3(SYS_prlimit64, 1 | ABOVE, RLIMIT_CPU, 1), EPERM);
	assert_int_equal(outcome3(SYS_prlimit64, 1, RLIMIT_CPU, 0), 0);
	assert_int_equal(outcome3(SYS_prlimit64, 0, RLIMIT_CPU, 1), EFAULT);
}

static void
test_what_is_allowed_is_off_the_list(void **state)
{
	char *names[] = { (char[]){ "keyctl" }, (char[]){ "unshare" }, (char[]){ "socketpair" } };
	const struct config weaker = { .sandbox_seccomp = true, .sandbox_seccomp_allow = { 3, names } };
	struct sock_fprog usual = program;
	struct err err;

	(void)state;
	assert_int_equal(filter_build(&weaker, false, &program, &err), 0);
	assert_int_not_equal(outcome(SYS_keyctl, 0, 0), EPERM);
	assert_int_equal(outcome(SYS_add_key, 0, 0), EPERM);
	assert_int_equal(outcome(SYS_unshare, CLONE_NEWUTS, 0), 0);
	assert_int_equal(outcome(SYS_clone, CLONE_NEWUTS | SIGCHLD, 0), EPERM);
	assert_int_not_equal(outcome(SYS_socketpair, AF_VSOCK, SOCK_STREAM), EAFNOSUPPORT);
	assert_int_equal(outcome(SYS_socket, AF_VSOCK, SOCK_STREAM), EAFNOSUPPORT);
	free(program.filter);
	program = usual;
}

static void
test_debuggers_and_ordinary_calls_work(void **state)
{
	(void)state;
	assert_int_equal(outcome(SYS_ptrace, PTRACE_TRACEME, 0), 0);
	assert_int_equal(outcome(SYS_personality, 0x0040000 /* no random addresses */, 0), 0);
	assert_int_equal(outcome(SYS_getpid, 0, 0), 0);
	assert_int_equal(outcome(SYS_dup, 0, 0), 0);
}

#ifdef __x86_64__
static void
test_other_abis_are_killed(void **state)
{
	pid_t pid;
	int status;

	(void)state;
	assert_int_equal(outcome(0x40000000L | SYS_getpid, 0, 0), -SIGSYS); /* x32 */
	assert_int_equal(outcome(SYS_modify_ldt, 0, 0), EPERM);
	pid = fork();
	if (pid == 0) {
		long rc = 20; /* getpid of i386 */

		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
			syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0)
			_exit(255);
		__asm__ volatile("int $0x80" : "+a"(rc) : : "memory", "r8", "r9", "r10", "r11");
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status)); /* SIGSYS, or SIGSEGV where the kernel has no i386 calls at all */
}
#endif

/* Of all rules only that one is missing. */
static void
test_agents_that_start_commands_by_clone3_have_it(void **state)
{
	struct sock_fprog full = program;
	struct err err;

	(void)state;
	assert_int_equal(filter_build(&config, true, &program, &err), 0);
	assert_int_equal(outcome(SYS_clone3, 0, 0), EINVAL);
	assert_int_equal(outcome(SYS_setns, -1, 0), EPERM);
	assert_int_equal(outcome(SYS_unshare, CLONE_NEWUSER, 0), EPERM);
	free(program.filter);
	program = full;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kernel_surface_is_denied),
		cmocka_unit_test(test_no_namespace_by_any_flag),
		cmocka_unit_test(test_sockets_local_and_internet_only),
		cmocka_unit_test(test_netlink_only_where_it_is_in_the_namespace),
		cmocka_unit_test(test_nobody_types_for_others_nor_limits_the_agent),
		cmocka_unit_test(test_what_is_allowed_is_off_the_list),
		cmocka_unit_test(test_agents_that_start_commands_by_clone3_have_it),
		cmocka_unit_test(test_debuggers_and_ordinary_calls_work),
#ifdef __x86_64__
		cmocka_unit_test(test_other_abis_are_killed),
#endif
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
