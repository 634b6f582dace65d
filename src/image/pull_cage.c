/* pull_cage.c - takes from skopeo what it does not need: rights, places to write, the sight of our own directories. */
/* SPDX-License-Identifier: MIT */
#include "image/pull_cage.h"

#include "base/alloc.h"
#include "base/err.h"
#include "base/file.h"
#include "conf/config.h"
#include "image/puller.h"
#include "image/unpack_cage.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum { FILES_MAX = 1024, AUTH_FD = 3 };

/* An empty tmpfs, not mounted yet. */
static int
make_tmpfs(struct err *err)
{
	AUTO_FD fs = fsopen("tmpfs", FSOPEN_CLOEXEC);
	int mnt;

	if (fs < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "size", "64k", 0) != 0 ||
		fsconfig(fs, FSCONFIG_SET_STRING, "mode", "0755", 0) != 0 ||
		fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) != 0)
		return err_set_errno(err, errno, "tmpfs for skopeo");
	mnt = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	return mnt >= 0 ? mnt : err_set_errno(err, errno, "tmpfs for skopeo");
}

static int
cover(const char *path, struct err *err)
{
	AUTO_FD mnt = make_tmpfs(err);

	if (mnt < 0)
		return -1;
	if (move_mount(mnt, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) != 0)
		return err_set_errno(err, errno, "hide %s from skopeo", path);
	return 0;
}

/* Its own processes only. */
static int
mount_proc(struct err *err)
{
	AUTO_FD fs = fsopen("proc", FSOPEN_CLOEXEC);
	AUTO_FD mnt = -1;

	if (fs < 0 || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) != 0)
		return err_set_errno(err, errno, "/proc for skopeo");
	mnt = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	if (mnt < 0 || move_mount(mnt, "", AT_FDCWD, "/proc", MOVE_MOUNT_F_EMPTY_PATH) != 0)
		return err_set_errno(err, errno, "/proc for skopeo");
	return 0;
}

/* The working directory is mounted below run_dir, whose own content is covered. */
static int
set_mounts(const struct puller *puller, struct err *err)
{
	struct mount_attr read_only = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID };
	AUTO_FD work = open_tree(puller->work_fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);

	if (work < 0)
		return err_set_errno(err, errno, "directory of a pull");
	if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		return err_set_errno(err, errno, "mounts for skopeo");
	/* One may lie below the other. */
	if (cover(puller->config->state_dir, err) != 0 || file_mkdirs(puller->config->run_dir, 0755, err) != 0 ||
		cover(puller->config->run_dir, err) != 0 || mount_proc(err) != 0)
		return -1;
	if (chdir(puller->config->run_dir) != 0 || mkdir("pull", 0755) != 0)
		return err_set_errno(err, errno, "directory of a pull");
	if (mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &read_only, sizeof read_only) != 0)
		return err_set_errno(err, errno, "mounts for skopeo");
	if (move_mount(work, "", AT_FDCWD, "pull", MOVE_MOUNT_F_EMPTY_PATH) != 0 || chdir("pull") != 0)
		return err_set_errno(err, errno, "directory of a pull");
	return 0;
}

static int
set_limits(int64_t file_max, struct err *err)
{
	struct rlimit none = { 0, 0 }, files = { FILES_MAX, FILES_MAX },
		      size = { (rlim_t)file_max, (rlim_t)file_max };

	if (setrlimit(RLIMIT_CORE, &none) != 0 || setrlimit(RLIMIT_NOFILE, &files) != 0 ||
		setrlimit(RLIMIT_FSIZE, &size) != 0)
		return err_set_errno(err, errno, "limits of skopeo");
	return 0;
}

/* Leaving uid 0 for good takes all capabilities along. */
static int
set_user(const struct puller *puller, struct err *err)
{
	if (setns(puller->net_fd, CLONE_NEWNET) != 0)
		return err_set_errno(err, errno, "network of skopeo");
	/* What is left until the user changes must not be had again by starting something. */
	if (prctl(PR_CAPBSET_DROP, CAP_SETUID, 0, 0, 0) != 0 || prctl(PR_CAPBSET_DROP, CAP_SETGID, 0, 0, 0) != 0)
		return err_set_errno(err, errno, "rights of skopeo");
	if (cage_keep_capabilities(1ULL << CAP_SETUID | 1ULL << CAP_SETGID, err) != 0)
		return -1;
	if (setgroups(0, NULL) != 0 || setresgid(puller->gid, puller->gid, puller->gid) != 0 ||
		setresuid(puller->uid, puller->uid, puller->uid) != 0)
		return err_set_errno(err, errno, "user %s of skopeo", puller->config->image_pull_user);
	return cage_forbid_calls(false, err);
}

/* 0 to 2, and 3 for the credentials; everything else is closed by the exec. */
static int
set_descriptors(const struct puller *puller, int out_fd, int err_fd, struct err *err)
{
	AUTO_FD null = open("/dev/null", O_RDWR | O_CLOEXEC);
	AUTO_FD out = fcntl(out_fd, F_DUPFD_CLOEXEC, AUTH_FD + 1);
	AUTO_FD errors = fcntl(err_fd, F_DUPFD_CLOEXEC, AUTH_FD + 1);
	AUTO_FD auth = puller->auth_fd >= 0 ? fcntl(puller->auth_fd, F_DUPFD_CLOEXEC, AUTH_FD + 1) : -1;

	if (null < 0 || out < 0 || errors < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(errors, 2) < 0 ||
		(auth >= 0 && dup2(auth, AUTH_FD) < 0))
		return err_set_errno(err, errno, "descriptors of skopeo");
	return 0;
}

/* Signals of parents that died before PDEATHSIG was set never come; the pipe tells of them. */
static void
die_with_parent(int err_fd)
{
	struct pollfd poll_fd = { .fd = err_fd };

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (poll(&poll_fd, 1, 0) > 0 && (poll_fd.revents & POLLERR) != 0)
		_exit(PULL_CAGE_FAILED);
}

static void
make_environment(char **env)
{
	static const char *const names[] = { "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy",
		"no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR" };
	size_t n = 0;

	env[n++] = alloc_string("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
	env[n++] = alloc_string("HOME=/nonexistent");
	env[n++] = alloc_string("TMPDIR=tmp");
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const char *value = getenv(names[i]);

		if (value != NULL)
			env[n++] = alloc_format("%s=%s", names[i], value);
	}
	env[n] = NULL;
}

void
pull_cage_exec(
	const struct puller *puller, int64_t file_max, char *const *argv, int out_fd, int err_fd, struct err *err)
{
	char *env[16];

	die_with_parent(err_fd);
	umask(022);
	make_environment(env);
	if (set_mounts(puller, err) != 0 || set_limits(file_max, err) != 0 || set_user(puller, err) != 0)
		return;
	die_with_parent(err_fd); /* the change of user has taken it back */
	if (set_descriptors(puller, out_fd, err_fd, err) != 0)
		return;
	execvpe(argv[0], argv, env);
	err_set_errno(
		err, errno, "%s can't be run (install the package skopeo, or set image_skopeo_path)", argv[0]);
}
