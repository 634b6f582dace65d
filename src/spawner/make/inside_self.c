/* inside_self.c - what a new init changes about itself. */
/* SPDX-License-Identifier: MIT */
#include "spawner/make/inside.h"

#include "conf/config.h"
#include "conf/walls.h"
#include "spawner/make/enter_clone.h"
#include "spawner/site.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>

enum { NOFILE_SOFT = 65536 };

/*
 * The cgroup namespace is made while it stands at the top of its own groups, so
 * that the agent, whose leaf comes later, may move processes about below them.
 */
const char *
inside_join_cgroups(const struct cgroup_box *cgroup)
{
	for (int i = enter_clone_takes_cgroup() ? 1 : 0; i < CGROUP_JOINS; i++) {
		if (cgroup->join_fd[i] >= 0 && write(cgroup->join_fd[i], "0", 1) != 1)
			return "join cgroup";
	}
	if (unshare(CLONE_NEWCGROUP) != 0)
		return "cgroup namespace";
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

/* The limits of its own user namespace, which those above it can't see and those below can't pass. */
const char *
inside_forbid_namespaces(void)
{
	static const char *const kinds[] = { "user", "mnt", "pid", "net", "ipc", "uts", "cgroup", "time" };
	char path[64];

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		AUTO_FD fd = -1;

		snprintf(path, sizeof path, "/proc/sys/user/max_%s_namespaces", kinds[i]);
		fd = open(path, O_WRONLY | O_CLOEXEC);
		if (fd < 0 && errno == ENOENT) /* a kind that this kernel has not */
			continue;
		if (fd < 0 || write(fd, "0", 1) != 1)
			return "forbid namespaces";
	}
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
limit_files(int64_t most)
{
	struct rlimit now, want = { .rlim_cur = NOFILE_SOFT, .rlim_max = (rlim_t)most };

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
inside_set_up(const struct site *site)
{
	/* No file is that small; and only for 1 the kernel also leaves out a core_pattern that is a program. */
	struct rlimit no_core = { 1, 1 };

	if (!bring_up_loopback())
		return "bring up loopback";
	limit_files(site->config->sandbox_nofile_max);
	(void)setrlimit(RLIMIT_CORE, &no_core);
	reset_signals();
	umask(022);
	return NULL;
}

/*
 * Commands get what the bounding set leaves when they are executed. The agent needs its own capabilities even
 * where they get fewer: those come through the inheritable set, which it keeps from its children. That takes
 * nothing in which the bounding set has not (any more): so the bounding set goes last.
 */
static const char *
limit_capabilities(uint64_t of_commands)
{
	const uint64_t of_agent = of_commands | walls_default_capabilities();
	const uint64_t inherited = of_agent & ~of_commands;
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = {
		{ (uint32_t)of_agent, (uint32_t)of_agent, (uint32_t)inherited },
		{ (uint32_t)(of_agent >> 32), (uint32_t)(of_agent >> 32), (uint32_t)(inherited >> 32) },
	};

	if (syscall(SYS_capset, &head, data) != 0)
		return "set capabilities";
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	for (unsigned long cap = 0; cap < 64; cap++) {
		if ((of_commands >> cap & 1) == 0 && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) != 0) {
			if (errno == EINVAL)
				break;
			return "drop capabilities";
		}
	}
	return NULL;
}

/* The filter first: without no_new_privs it takes a capability that goes. */
const char *
inside_drop_rights(const struct site *site)
{
	if (site->config->sandbox_no_new_privs && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return "set no_new_privs";
	if (site->filter.len > 0 && syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &site->filter) != 0)
		return "load the system call filter";
	return limit_capabilities(site->capabilities);
}
