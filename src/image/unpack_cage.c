/* unpack_cage.c - takes from a process everything it does not need to unpack one layer. */
/* SPDX-License-Identifier: MIT */
#include "image/unpack_cage.h"

#include "base/err.h"
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <iconv.h>
#include <langinfo.h>
#include <linux/capability.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define MEMORY_MAX (1ULL << 30)

static const uint64_t kept_capabilities = 1ULL << CAP_CHOWN | 1ULL << CAP_DAC_OVERRIDE | 1ULL << CAP_FOWNER |
	1ULL << CAP_FSETID | 1ULL << CAP_SETFCAP;

int
cage_keep_capabilities(uint64_t kept, struct err *err)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct now[2] = { 0 }, data[2] = { 0 };

	for (unsigned long cap = 0; cap < 64; cap++) {
		if ((kept >> cap & 1) == 0 && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) != 0 && errno == EINVAL)
			break;
	}
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (syscall(SYS_capget, &head, now) != 0)
		return err_set_errno(err, errno, "read capabilities");
	data[0].permitted = data[0].effective = (uint32_t)kept & now[0].permitted;
	data[1].permitted = data[1].effective = (uint32_t)(kept >> 32) & now[1].permitted;
	if (syscall(SYS_capset, &head, data) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return err_set_errno(err, errno, "drop capabilities");
	return 0;
}

static int
view_layer(int dir_fd, struct err *err)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC };
	AUTO_FD view = open_tree(dir_fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);

	if (view < 0 || mount_setattr(view, "", AT_EMPTY_PATH, &attr, sizeof attr) != 0)
		return err_set_errno(err, errno, "mount of the layer's directory");
	return STEAL_FD(view);
}

static int
make_root(struct err *err)
{
	AUTO_FD fs = fsopen("tmpfs", FSOPEN_CLOEXEC);
	AUTO_FD root = -1;

	if (fs < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "size", "64k", 0) != 0 ||
		fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) != 0)
		return err_set_errno(err, errno, "tmpfs of an unpacker");
	root = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	if (root < 0 || mkdirat(root, "layer", 0700) != 0)
		return err_set_errno(err, errno, "tmpfs of an unpacker");
	return STEAL_FD(root);
}

static int
change_root(int root, int view, struct err *err)
{
	struct mount_attr read_only = { .attr_set = MOUNT_ATTR_RDONLY };

	if (unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS) != 0 ||
		mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		return err_set_errno(err, errno, "namespaces of an unpacker");
	if (move_mount(root, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) != 0 || fchdir(root) != 0 ||
		syscall(SYS_pivot_root, ".", ".") != 0 || umount2(".", MNT_DETACH) != 0 || chdir("/") != 0)
		return err_set_errno(err, errno, "root of an unpacker");
	if (move_mount(view, "", AT_FDCWD, "/layer", MOVE_MOUNT_F_EMPTY_PATH) != 0 ||
		mount_setattr(AT_FDCWD, "/", 0, &read_only, sizeof read_only) != 0)
		return err_set_errno(err, errno, "mount of the layer's directory");
	return 0;
}

static int
set_limits(struct err *err)
{
	struct rlimit none = { 0, 0 }, files = { 256, 256 };

	if (setrlimit(RLIMIT_CORE, &none) != 0 || setrlimit(RLIMIT_NOFILE, &files) != 0)
		return err_set_errno(err, errno, "limits of an unpacker");
#ifndef ORCHARD_SANITIZED /* a sanitizer reserves terabytes of addresses */
	struct rlimit memory = { MEMORY_MAX, MEMORY_MAX };

	if (setrlimit(RLIMIT_AS, &memory) != 0)
		return err_set_errno(err, errno, "limits of an unpacker");
#endif
	return 0;
}

static int
forbid(scmp_filter_ctx filter, const int *calls, size_t count)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < count; i++)
		rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), calls[i], 0);
	return rc;
}

int
cage_forbid_calls(bool alone, struct err *err)
{
	static const int calls[] = { SCMP_SYS(unshare), SCMP_SYS(setns), SCMP_SYS(mount), SCMP_SYS(fsopen),
		SCMP_SYS(open_tree), SCMP_SYS(move_mount), SCMP_SYS(pivot_root), SCMP_SYS(ptrace), SCMP_SYS(bpf),
		SCMP_SYS(perf_event_open), SCMP_SYS(keyctl), SCMP_SYS(add_key), SCMP_SYS(io_uring_setup),
		SCMP_SYS(userfaultfd), SCMP_SYS(process_vm_writev) };
	static const int alone_calls[] = { SCMP_SYS(socket), SCMP_SYS(execve), SCMP_SYS(execveat), SCMP_SYS(clone),
		SCMP_SYS(fork), SCMP_SYS(vfork), SCMP_SYS(ioctl) };
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int rc = filter != NULL ? forbid(filter, calls, sizeof calls / sizeof *calls) : -ENOMEM;

	if (rc == 0 && alone)
		rc = forbid(filter, alone_calls, sizeof alone_calls / sizeof *alone_calls);
	/* Its flags lie in memory; those who may start programs then do so by clone. */
	if (rc == 0)
		rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	if (rc == 0)
		rc = seccomp_load(filter);
	seccomp_release(filter);
	return rc == 0 ? 0 : err_set_errno(err, -rc, "system call filter of a cage");
}

/* libarchive converts names by iconv, which reads its tables of the host's now or never. */
static void
load_tables(void)
{
	iconv_t tables = iconv_open(nl_langinfo(CODESET), "UTF-8");

	if (tables != (iconv_t)-1)
		iconv_close(tables);
}

int
cage_enter(int dir_fd, int *ret_layer, struct err *err)
{
	AUTO_FD view = view_layer(dir_fd, err);
	AUTO_FD root = view >= 0 ? make_root(err) : -1;
	AUTO_FD layer = -1;

	if (root < 0)
		return -1;
	load_tables();
	umask(0);
	if (change_root(root, view, err) != 0)
		return -1;
	close(dir_fd);
	layer = open("/layer", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (layer < 0)
		return err_set_errno(err, errno, "directory of the layer");
	if (cage_keep_capabilities(kept_capabilities, err) != 0 || set_limits(err) != 0 ||
		cage_forbid_calls(true, err) != 0)
		return -1;
	*ret_layer = STEAL_FD(layer);
	return 0;
}
