/*
 * prober.c - tries, inside a sandbox, what a sandbox must not do, and prints how the kernel answers.
 *
 * One line per attempt: its name and the errno, OK, or the signal that ended it. Every attempt has a process of
 * its own. test_escapes.py holds the table of what must come out.
 */
/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define TEXT(text)           ((long)(uintptr_t)(text))
#define DEVICE(major, minor) ((major) << 8 | (minor))

static char buffer[256];
static struct iovec part = { buffer, sizeof buffer };
static struct rlimit no_time = { 1, 1 };

static const struct {
	const char *name;
	long number;
	long args[6];
} attempts[] = {
	{ .name = "mount", .number = SYS_mount, .args = { TEXT("none"), TEXT("/tmp"), TEXT("tmpfs") } },
	{ .name = "mount_bind", .number = SYS_mount, .args = { TEXT("/"), TEXT("/tmp"), 0, 4096 } },
	{ .name = "remount_rw", .number = SYS_mount, .args = { 0, TEXT("/proc/sys"), 0, 32 | 4096 } },
	{ .name = "umount2", .number = SYS_umount2, .args = { TEXT("/proc/kcore"), 2 } },
	{ .name = "pivot_root", .number = SYS_pivot_root, .args = { TEXT("/"), TEXT("/tmp") } },
	{ .name = "fsopen", .number = SYS_fsopen, .args = { TEXT("tmpfs") } },
	{ .name = "fspick", .number = SYS_fspick, .args = { AT_FDCWD, TEXT("/") } },
	{ .name = "open_tree", .number = SYS_open_tree, .args = { AT_FDCWD, TEXT("/"), 1 } },
	{ .name = "move_mount",
		.number = SYS_move_mount,
		.args = { AT_FDCWD, TEXT("/proc"), AT_FDCWD, TEXT("/tmp") } },
	{ .name = "mount_setattr",
		.number = SYS_mount_setattr,
		.args = { AT_FDCWD, TEXT("/proc/sys"), 0, TEXT(buffer), 32 } },
	{ .name = "quotactl", .number = SYS_quotactl, .args = { 0, TEXT("/dev/vda") } },
	{ .name = "open_by_handle_at", .number = SYS_open_by_handle_at, .args = { AT_FDCWD, TEXT(buffer) } },
	{ .name = "setns", .number = SYS_setns, .args = { 0 } },
	{ .name = "unshare_user", .number = SYS_unshare, .args = { CLONE_NEWUSER } },
	{ .name = "unshare_mnt", .number = SYS_unshare, .args = { CLONE_NEWNS } },
	{ .name = "unshare_pid", .number = SYS_unshare, .args = { CLONE_NEWPID } },
	{ .name = "unshare_net", .number = SYS_unshare, .args = { CLONE_NEWNET } },
	{ .name = "unshare_cgroup", .number = SYS_unshare, .args = { CLONE_NEWCGROUP } },
	{ .name = "unshare_time", .number = SYS_unshare, .args = { 0x80 } },
	{ .name = "clone_user", .number = SYS_clone, .args = { CLONE_NEWUSER | SIGCHLD } },
	{ .name = "clone_user_high",
		.number = SYS_clone,
		.args = { (long)(1ULL << 32 | CLONE_NEWUSER | SIGCHLD) } },
	{ .name = "clone3", .number = SYS_clone3, .args = { TEXT(buffer), 64 } },
	{ .name = "init_module", .number = SYS_init_module, .args = { TEXT(buffer), 64, TEXT("") } },
	{ .name = "finit_module", .number = SYS_finit_module, .args = { 0, TEXT("") } },
	{ .name = "delete_module", .number = SYS_delete_module, .args = { TEXT("overlay") } },
	{ .name = "kexec_load", .number = SYS_kexec_load, .args = { 0 } },
	{ .name = "bpf", .number = SYS_bpf, .args = { 0, TEXT(buffer), 64 } },
	{ .name = "perf_event_open", .number = SYS_perf_event_open, .args = { TEXT(buffer), 0, -1, -1 } },
	{ .name = "userfaultfd", .number = SYS_userfaultfd, .args = { 0 } },
	{ .name = "userfaultfd_user", .number = SYS_userfaultfd, .args = { 1 } },
	{ .name = "io_uring_setup", .number = SYS_io_uring_setup, .args = { 8, TEXT(buffer) } },
	{ .name = "io_uring_enter", .number = SYS_io_uring_enter, .args = { 0 } },
	{ .name = "io_uring_register", .number = SYS_io_uring_register, .args = { 0 } },
	{ .name = "keyctl_join", .number = SYS_keyctl, .args = { 1 } },
	{ .name = "keyctl_read", .number = SYS_keyctl, .args = { 11, -3, TEXT(buffer), 64 } },
	{ .name = "add_key", .number = SYS_add_key, .args = { TEXT("user"), TEXT("x"), TEXT("y"), 1, -3 } },
	{ .name = "request_key", .number = SYS_request_key, .args = { TEXT("user"), TEXT("x"), 0, -3 } },
	{ .name = "reboot", .number = SYS_reboot, .args = { 0 } },
	{ .name = "swapon", .number = SYS_swapon, .args = { TEXT("/tmp/swap") } },
	{ .name = "swapoff", .number = SYS_swapoff, .args = { TEXT("/tmp/swap") } },
	{ .name = "acct", .number = SYS_acct, .args = { 0 } },
	{ .name = "syslog", .number = SYS_syslog, .args = { 3, TEXT(buffer), 64 } },
	{ .name = "settimeofday", .number = SYS_settimeofday, .args = { TEXT(buffer) } },
	{ .name = "clock_settime", .number = SYS_clock_settime, .args = { 0, TEXT(buffer) } },
	{ .name = "adjtimex", .number = SYS_adjtimex, .args = { TEXT(buffer) } },
	{ .name = "vhangup", .number = SYS_vhangup, .args = { 0 } },
	{ .name = "fanotify_init", .number = SYS_fanotify_init, .args = { 0 } },
	{ .name = "sethostname", .number = SYS_sethostname, .args = { TEXT("x"), 1 } },
	{ .name = "setdomainname", .number = SYS_setdomainname, .args = { TEXT("x"), 1 } },
	{ .name = "mknod_disk",
		.number = SYS_mknodat,
		.args = { AT_FDCWD, TEXT("/tmp/disk"), S_IFBLK | 0666, DEVICE(8, 0) } },
	{ .name = "mknod_mem",
		.number = SYS_mknodat,
		.args = { AT_FDCWD, TEXT("/tmp/mem"), S_IFCHR | 0666, DEVICE(1, 1) } },
	{ .name = "mknod_kmsg",
		.number = SYS_mknodat,
		.args = { AT_FDCWD, TEXT("/tmp/kmsg"), S_IFCHR | 0666, DEVICE(1, 11) } },
	{ .name = "mknod_tun",
		.number = SYS_mknodat,
		.args = { AT_FDCWD, TEXT("/tmp/tun"), S_IFCHR | 0666, DEVICE(10, 200) } },
	{ .name = "attach_agent", .number = SYS_ptrace, .args = { PTRACE_ATTACH, 1 } },
	{ .name = "seize_agent", .number = SYS_ptrace, .args = { PTRACE_SEIZE, 1 } },
	{ .name = "read_agent", .number = SYS_process_vm_readv, .args = { 1, TEXT(&part), 1, TEXT(&part), 1 } },
	{ .name = "compare_agent", .number = SYS_kcmp, .args = { 1, 1, 0 } },
	{ .name = "limit_agent", .number = SYS_prlimit64, .args = { 1, RLIMIT_CPU, TEXT(&no_time) } },
	{ .name = "agents_limits", .number = SYS_prlimit64, .args = { 1, RLIMIT_CPU, 0, TEXT(buffer) } },
	{ .name = "move_agents_pages", .number = SYS_move_pages, .args = { 1, 0 } },
	{ .name = "signal_agent", .number = SYS_kill, .args = { 1, SIGKILL } },
	{ .name = "stop_agent", .number = SYS_tgkill, .args = { 1, 1, SIGSTOP } },
	{ .name = "realtime", .number = SYS_sched_setscheduler, .args = { 0, SCHED_FIFO, TEXT(&(int){ 50 }) } },
	{ .name = "nice", .number = SYS_setpriority, .args = { PRIO_PROCESS, 0, -20 } },
	{ .name = "type_for_others", .number = SYS_ioctl, .args = { 0, TIOCSTI, TEXT("x") } },
	{ .name = "console", .number = SYS_ioctl, .args = { 0, TIOCLINUX, TEXT(buffer) } },
	{ .name = "packet_socket", .number = SYS_socket, .args = { AF_PACKET, SOCK_RAW, 0 } },
	{ .name = "kernel_crypto", .number = SYS_socket, .args = { AF_ALG, SOCK_SEQPACKET, 0 } },
	{ .name = "vsock", .number = SYS_socket, .args = { AF_VSOCK, SOCK_STREAM, 0 } },
	{ .name = "bluetooth", .number = SYS_socket, .args = { AF_BLUETOOTH, SOCK_RAW, 0 } },
	{ .name = "netlink_crypto", .number = SYS_socket, .args = { AF_NETLINK, SOCK_RAW, NETLINK_CRYPTO } },
	{ .name = "netlink_route", .number = SYS_socket, .args = { AF_NETLINK, SOCK_RAW, NETLINK_ROUTE } },
	{ .name = "internet", .number = SYS_socket, .args = { AF_INET, SOCK_STREAM, 0 } },
	{ .name = "unshare_files", .number = SYS_unshare, .args = { CLONE_FILES } },
	{ .name = "trace_me", .number = SYS_ptrace, .args = { PTRACE_TRACEME } },
	{ .name = "personality", .number = SYS_personality, .args = { 0x0040000 } },
#ifdef __x86_64__
	{ .name = "iopl", .number = SYS_iopl, .args = { 3 } },
	{ .name = "ioperm", .number = SYS_ioperm, .args = { 0, 1, 1 } },
	{ .name = "modify_ldt", .number = SYS_modify_ldt, .args = { 0 } },
	{ .name = "kexec_file_load", .number = SYS_kexec_file_load, .args = { 0 } },
	{ .name = "x32", .number = 0x40000000L | SYS_getpid, .args = { 0 } },
#endif
};

/* By its exit code a child says the errno; a signal says itself. */
static void
report(const char *name, int status)
{
	if (WIFSIGNALED(status))
		printf("%s SIG%s\n", name, sigabbrev_np(WTERMSIG(status)));
	else
		printf("%s %s\n", name, WEXITSTATUS(status) == 0 ? "OK" : strerrorname_np(WEXITSTATUS(status)));
	fflush(stdout);
}

int
main(void)
{
	for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++) {
		const long *args = attempts[i].args;
		pid_t pid = fork();
		int status;

		if (pid < 0)
			return 1;
		if (pid == 0)
			_exit(syscall(attempts[i].number, args[0], args[1], args[2], args[3], args[4], args[5]) ==
						-1
					? errno
					: 0);
		if (waitpid(pid, &status, 0) != pid)
			return 1;
		report(attempts[i].name, status);
	}
	return 0;
}
