/* inside_self.c - what a new init changes about itself. */
/* SPDX-License-Identifier: MIT */
#include "spawner/inside.h"

#include "spawner/site.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>

enum { NOFILE_SOFT = 65536, NOFILE_HARD = 1048576 };

/* What containers usually keep: enough for package managers and servers, nothing that rules the kernel. */
static const uint64_t kept_capabilities = 1ULL << CAP_CHOWN | 1ULL << CAP_DAC_OVERRIDE | 1ULL << CAP_FOWNER |
	1ULL << CAP_FSETID | 1ULL << CAP_KILL | 1ULL << CAP_SETGID | 1ULL << CAP_SETUID | 1ULL << CAP_SETPCAP |
	1ULL << CAP_NET_BIND_SERVICE | 1ULL << CAP_NET_RAW | 1ULL << CAP_SYS_CHROOT | 1ULL << CAP_MKNOD |
	1ULL << CAP_AUDIT_WRITE | 1ULL << CAP_SETFCAP;

/*
 * The cgroup namespace is made while it stands at the top of its own groups, so
 * that the agent, whose leaf comes next, may move processes about below them.
 */
const char *
inside_join_cgroups(const struct cgroup_box *cgroup)
{
	for (int i = 0; i < CGROUP_JOINS; i++) {
		if (cgroup->join_fd[i] >= 0 && write(cgroup->join_fd[i], "0", 1) != 1)
			return "join cgroup";
	}
	if (unshare(CLONE_NEWCGROUP) != 0)
		return "cgroup namespace";
	if (cgroup->leaf_fd >= 0 && write(cgroup->leaf_fd, "0", 1) != 1)
		return "join the agent's cgroup";
	return NULL;
}

/* Raw calls: libc's wrappers would look for threads in memory that is not only ours. */
const char *
inside_take_ids(void)
{
	if (syscall(SYS_setgroups, 0, NULL) != 0)
		return "drop groups";
	if (syscall(SYS_setresgid, 0, 0, 0) != 0 || syscall(SYS_setresuid, 0, 0, 0) != 0)
		return "become root of the sandbox";
	return NULL;
}

static bool
bring_up_loopback(void)
{
	AUTO_FD fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = { .ifr_name = "lo" };

	request.ifr_flags = IFF_UP | IFF_RUNNING;
	return fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &request) == 0;
}

/* As high as wanted, as far as our own hard limit allows. */
static void
limit_files(void)
{
	struct rlimit now, want = { .rlim_cur = NOFILE_SOFT, .rlim_max = NOFILE_HARD };

	if (getrlimit(RLIMIT_NOFILE, &now) != 0)
		return;
	if (now.rlim_max != RLIM_INFINITY && want.rlim_max > now.rlim_max)
		want.rlim_max = now.rlim_max;
	if (want.rlim_cur > want.rlim_max)
		want.rlim_cur = want.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &want);
}

/* Handlers do not survive exec, ignored signals do. */
static void
reset_signals(void)
{
	sigset_t none;

	for (int i = 1; i < NSIG; i++) {
		struct sigaction action = { .sa_handler = SIG_DFL };

		(void)sigaction(i, &action, NULL);
	}
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

const char *
inside_set_up(const struct enter_plan *plan)
{
	/* No file is that small; and only for 1 the kernel also leaves out a core_pattern that is a program. */
	struct rlimit no_core = { 1, 1 };

	if (sethostname(plan->id, strlen(plan->id)) != 0)
		return "set host name";
	if (!bring_up_loopback())
		return "bring up loopback";
	limit_files();
	(void)setrlimit(RLIMIT_CORE, &no_core);
	reset_signals();
	umask(022);
	return NULL;
}

const char *
inside_drop_rights(const struct site *site)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };

	for (unsigned long cap = 0; cap < 64; cap++) {
		if ((kept_capabilities >> cap & 1) == 0 && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) != 0) {
			if (errno == EINVAL)
				break;
			return "drop capabilities";
		}
	}
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	data[0].permitted = data[0].effective = (uint32_t)kept_capabilities;
	data[1].permitted = data[1].effective = (uint32_t)(kept_capabilities >> 32);
	if (syscall(SYS_capset, &head, data) != 0)
		return "set capabilities";
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return "set no_new_privs";
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &site->filter) != 0)
		return "load the system call filter";
	return NULL;
}
