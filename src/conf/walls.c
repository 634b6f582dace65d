/*
 * walls.c - the tables of denied system calls and of capabilities, and what the settings make of them.
 *
 * It knows names only; the spawner makes a filter and a bounding set of them.
 */
/* SPDX-License-Identifier: MIT */
#include "conf/walls.h"

#include "base/err.h"
#include "base/log.h"
#include "conf/config.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <strings.h>

const struct walls_call walls_calls[] = {
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

const size_t walls_call_count = sizeof walls_calls / sizeof *walls_calls;

/* Calls that are denied by their arguments. */
static const char *const judged_calls[] = { "clone", "unshare", "socket", "socketpair", "ioctl" };

/* By number. */
static const char *const capability_names[] = { "CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID",
	"KILL", "SETGID", "SETUID", "SETPCAP", "LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN",
	"NET_RAW", "IPC_LOCK", "IPC_OWNER", "SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE", "SYS_PACCT",
	"SYS_ADMIN", "SYS_BOOT", "SYS_NICE", "SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD", "LEASE",
	"AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP", "MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG", "WAKE_ALARM",
	"BLOCK_SUSPEND", "AUDIT_READ", "PERFMON", "BPF", "CHECKPOINT_RESTORE" };

enum { CAPABILITIES = sizeof capability_names / sizeof *capability_names };

/* What containers usually keep: enough for package managers and servers, nothing that rules the kernel. */
uint64_t
walls_default_capabilities(void)
{
	return 1ULL << CAP_CHOWN | 1ULL << CAP_DAC_OVERRIDE | 1ULL << CAP_FOWNER | 1ULL << CAP_FSETID |
		1ULL << CAP_KILL | 1ULL << CAP_SETGID | 1ULL << CAP_SETUID | 1ULL << CAP_SETPCAP |
		1ULL << CAP_NET_BIND_SERVICE | 1ULL << CAP_NET_RAW | 1ULL << CAP_SYS_CHROOT | 1ULL << CAP_MKNOD |
		1ULL << CAP_AUDIT_WRITE | 1ULL << CAP_SETFCAP;
}

const char *
walls_capability_name(int number)
{
	return number >= 0 && number < CAPABILITIES ? capability_names[number] : NULL;
}

/* Written with or without CAP_, in any case. */
static int
find_capability(const char *word, int *ret_number, struct err *err)
{
	const char *name = strncasecmp(word, "CAP_", 4) == 0 ? word + 4 : word;

	for (int i = 0; i < CAPABILITIES; i++) {
		if (strcasecmp(name, capability_names[i]) == 0) {
			*ret_number = i;
			return 0;
		}
	}
	return err_set(err, ERR_INVALID, "'%.60s' is no capability; write them as NET_ADMIN", word);
}

int
walls_add(const struct config_list *list, uint64_t *set, struct err *err)
{
	int number;

	for (size_t i = 0; i < list->count; i++) {
		if (find_capability(list->items[i], &number, err) != 0)
			return -1;
		if (number == CAP_SYS_PTRACE)
			return err_set(err, ERR_INVALID,
				"'%.60s' can't be given: with it commands could change the agent; debuggers work "
				"without",
				list->items[i]);
		*set |= 1ULL << number;
	}
	return 0;
}

int
walls_drop(const struct config_list *list, uint64_t *set, struct err *err)
{
	int number;

	for (size_t i = 0; i < list->count; i++) {
		if (strcasecmp(list->items[i], "ALL") == 0)
			*set = 0;
		else if (find_capability(list->items[i], &number, err) != 0)
			return -1;
		else
			*set &= ~(1ULL << number);
	}
	return 0;
}

int
walls_capabilities(const struct config *config, uint64_t *ret_set, struct err *err)
{
	uint64_t added = 0;

	*ret_set = walls_default_capabilities();
	if (walls_add(&config->sandbox_capabilities_add, &added, err) != 0 ||
		walls_drop(&config->sandbox_capabilities_drop, ret_set, err) != 0)
		return -1;
	*ret_set |= added;
	return 0;
}

static bool
is_denied(const char *name)
{
	for (size_t i = 0; i < walls_call_count; i++) {
		if (strcmp(name, walls_calls[i].name) == 0)
			return true;
	}
	for (size_t i = 0; i < sizeof judged_calls / sizeof *judged_calls; i++) {
		if (strcmp(name, judged_calls[i]) == 0)
			return true;
	}
	return false;
}

int
walls_check_calls(const struct config_list *list, struct err *err)
{
	for (size_t i = 0; i < list->count; i++) {
		if (!is_denied(list->items[i]))
			return err_set(err, ERR_INVALID, "'%.60s' is not among the system calls that are denied",
				list->items[i]);
	}
	return 0;
}

bool
walls_allows_call(const struct config *config, const char *name)
{
	for (size_t i = 0; i < config->sandbox_seccomp_allow.count; i++) {
		if (strcmp(name, config->sandbox_seccomp_allow.items[i]) == 0)
			return true;
	}
	return false;
}

static void
warn_of_each(const struct config_list *list, const char *setting, const char *what)
{
	for (size_t i = 0; i < list->count; i++)
		log_warn("sandboxes are weaker than by default: %s lets commands %s %s", setting, what,
			list->items[i]);
}

void
walls_weaknesses(const struct config *config, struct walls_weakness ret_list[WALLS_WEAKNESSES])
{
	const struct walls_weakness list[WALLS_WEAKNESSES] = {
		{ "sandbox_no_new_privs", config->sandbox_no_new_privs ? 0 : 1 },
		{ "sandbox_seccomp", config->sandbox_seccomp ? 0 : 1 },
		{ "sandbox_mask_paths", config->sandbox_mask_paths ? 0 : 1 },
		{ "sandbox_seccomp_allow", config->sandbox_seccomp ? config->sandbox_seccomp_allow.count : 0 },
		{ "sandbox_capabilities_add", config->sandbox_capabilities_add.count },
	};

	memcpy(ret_list, list, sizeof list);
}

void
walls_warn(const struct config *config)
{
	if (!config->sandbox_no_new_privs)
		log_warn("sandboxes are weaker than by default: sandbox_no_new_privs is off, set-user-id programs "
			 "raise rights");
	if (!config->sandbox_seccomp)
		log_warn("sandboxes are weaker than by default: sandbox_seccomp is off, every system call reaches "
			 "the kernel");
	if (!config->sandbox_mask_paths)
		log_warn("sandboxes are weaker than by default: sandbox_mask_paths is off, all of /proc and /sys "
			 "shows");
	if (config->sandbox_seccomp)
		warn_of_each(&config->sandbox_seccomp_allow, "sandbox_seccomp_allow", "call");
	warn_of_each(&config->sandbox_capabilities_add, "sandbox_capabilities_add", "have");
}
