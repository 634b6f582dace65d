/*
 * maker_oci.c - has the init made by an OCI runtime, from a bundle of ours.
 *
 *   mount namespace of its own: root filesystem, /dev, the cgroups it may see   -> runtime create
 *   the process waits: its network                                              -> runtime start
 *
 * The runtime sees our v2 directory as if it were all of cgroup2, so it puts the init into the sandbox's
 * own group there; limits are ours. Where limits are v1's, it inherits those groups from the program that makes it.
 * The program has its own need for memory and processes: the limits come down when it is gone.
 */
/* SPDX-License-Identifier: MIT */
#include "spawner/make/maker.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "conf/config.h"
#include "conf/walls.h"
#include "runtime/runtime.h"
#include "runtime/runtime_bundle.h"
#include "runtime/runtime_call.h"
#include "spawner/make/id_map.h"
#include "spawner/make/inside.h"
#include "spawner/make/pieces.h"
#include "spawner/make/rootfs.h"
#include "spawner/make/runtime_home.h"
#include "spawner/site.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

enum { PROGRAM_FD = 9, REHEARSAL_MS = 10000, LIMIT_TIMEOUT_MS = 20000, LIMIT_RETRY_NS = 1000000 };
enum { ROOM_CPU_MILLI = 1000, ROOM_PIDS = 256 };
#define ROOM_MEMORY (256LL << 20)

#define CGROUPS "/sys/fs/cgroup"

/* What is hung up in the namespace that the runtime works in; all detached mounts. */
struct stage {
	const struct making *m;
	const char *dir; /* the bundle */
	int root, dev, resolv, cgroups; /* resolv -1: none */
};

static void
widen(struct cgroup_limits *limits)
{
	if (limits->cpu_milli < ROOM_CPU_MILLI)
		limits->cpu_milli = ROOM_CPU_MILLI;
	if (limits->memory_bytes < ROOM_MEMORY)
		limits->memory_bytes = ROOM_MEMORY;
	if (limits->pids_max < ROOM_PIDS)
		limits->pids_max = ROOM_PIDS;
}

/* --- before create --- */

/* The namespace through which layers are seen; the runtime makes another one of the same ids. */
static int
open_userns(uid_t first, int *ret_userns, struct err *err)
{
	int ends[2], rc;
	char word;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return err_set_errno(err, errno, "pipe");
	pid = fork();
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		if (unshare(CLONE_NEWUSER) == 0)
			(void)!write(ends[1], "u", 1);
		(void)pause();
		_exit(0);
	}
	close(ends[1]);
	if (pid < 0)
		rc = err_set_errno(err, errno, "fork");
	else if (read(ends[0], &word, 1) != 1)
		rc = err_set(err, ERR_UNSUPPORTED, "no user namespace (see /proc/sys/user/max_user_namespaces)");
	else
		rc = id_map_write(pid, first, err) != 0 ? -1 : id_map_open(pid, ret_userns, err);
	close(ends[0]);
	if (pid > 0) {
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
	}
	return rc;
}

static int
build_stage(struct making *m, uid_t first, struct stage *stage, struct err *err)
{
	AUTO_FD userns = -1;
	struct rootfs_plan plan = {
		.box_fd = m->box_fd,
		.scratch_fd = m->site->pieces_fd,
		.layers = m->image.layers,
		.layer_count = m->image.layer_count,
	};

	if (open_userns(first, &userns, err) != 0)
		return -1;
	plan.userns_fd = userns;
	if (rootfs_build(&plan, &stage->root, err) != 0 ||
		pieces_view(m->site->pieces_fd, PIECE_DEV, userns, &stage->dev, err) != 0)
		return -1;
	if (m->order->net.address != 0 &&
		pieces_view(m->site->pieces_fd, PIECE_RESOLV, userns, &stage->resolv, err) != 0)
		return -1;
	stage->cgroups = open_tree(m->site->cgroup.v2_fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
	return stage->cgroups >= 0 ? 0 : err_set_errno(err, errno, "view of the sandboxes' cgroups");
}

static void
strike_stage(struct stage *stage)
{
	cleanup_fd(&stage->root);
	cleanup_fd(&stage->dev);
	cleanup_fd(&stage->resolv);
	cleanup_fd(&stage->cgroups);
}

/* As root of the sandbox, who has no rights outside of the image. */
static int
fill_image(const struct making *m, int root, uid_t first, struct err *err)
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		if (fchdir(root) == 0 && chroot(".") == 0 && setgroups(0, NULL) == 0 &&
			setresgid(first, first, first) == 0 && setresuid(first, first, first) == 0) {
			umask(022);
			inside_fill_gaps(m->state.id, m->order->net.address != 0);
			_exit(0);
		}
		_exit(1);
	}
	if (pid < 0)
		return err_set_errno(err, errno, "fork");
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status == 0 ? 0 : err_set(err, ERR_INTERNAL, "the image's /etc can't be completed");
}

static int
hang(int mnt, const char *dir, const char *name, struct err *err)
{
	char path[PATH_MAX];

	if (mnt < 0)
		return 0;
	snprintf(path, sizeof path, "%s%s%s", dir, name[0] != '\0' ? "/" : "", name);
	if (move_mount(mnt, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) != 0)
		return err_set_errno(err, errno, "mount %s for the runtime", path);
	return 0;
}

/* In the runtime's process. */
static int
enter_stage(void *arg, struct err *err)
{
	const struct stage *stage = arg;
	const struct making *m = stage->m;

	for (int i = 1; i < CGROUP_JOINS; i++) {
		if (m->cgroup.join_fd[i] >= 0 && write(m->cgroup.join_fd[i], "0", 1) != 1)
			return err_set_errno(err, errno, "join cgroup");
	}
	if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		return err_set_errno(err, errno, "mount namespace of the runtime");
	(void)umount2(CGROUPS, MNT_DETACH); /* or it is mounted over */
	if (hang(stage->cgroups, CGROUPS, "", err) != 0 || hang(stage->root, stage->dir, BUNDLE_ROOT, err) != 0 ||
		hang(stage->dev, stage->dir, BUNDLE_DEV, err) != 0 ||
		hang(stage->resolv, stage->dir, BUNDLE_RESOLV, err) != 0)
		return -1;
	return 0;
}

/* As high as wanted, as far as our own hard limit allows. */
static int64_t
nofile_max(const struct config *config)
{
	struct rlimit now;

	if (getrlimit(RLIMIT_NOFILE, &now) == 0 && now.rlim_max != RLIM_INFINITY &&
		(int64_t)now.rlim_max < config->sandbox_nofile_max)
		return (int64_t)now.rlim_max;
	return config->sandbox_nofile_max;
}

static int
write_bundle(const struct making *m, const struct runtime_home *home, uid_t first, struct err *err)
{
	static const char *const args[] = { "--listen-fd", "3", "--config-fd", "4", NULL };
	struct runtime_bundle bundle = {
		.config = m->site->config,
		.dir = home->path,
		.id = m->state.id,
		.first_id = first,
		.ids = SITE_IDS,
		.capabilities = m->site->capabilities | walls_default_capabilities(),
		.shm_bytes = making_shm_bytes(m),
		.nofile_max = nofile_max(m->site->config),
		.network = m->order->net.address != 0,
		.program_fd = PROGRAM_FD,
		.args = args,
	};

	return runtime_bundle_write(home->fd, &bundle, err);
}

/* --- after create --- */

/* What the making needed is freed as soon as its processes are gone and the init has executed the agent. */
static int
narrow(const struct making *m, struct err *err)
{
	const struct spawn_create *spec = &m->order->spec;
	struct cgroup_limits limits = { spec->cpu_milli, spec->memory_bytes, spec->pids_max,
		m->site->config->sandbox_cpu_weight, m->site->config->sandbox_io_weight };
	const struct timespec pause = { .tv_nsec = LIMIT_RETRY_NS };
	int64_t deadline = clock_boot_ms() + LIMIT_TIMEOUT_MS;

	while (cgroup_box_limit(&m->site->cgroup, spec->id, &limits, err) != 0) {
		if (clock_boot_ms() > deadline)
			return -1;
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
	}
	return 0;
}

static int
finish(struct making *m, const struct runtime_call *call, struct err *err)
{
	if (m->order->net.address != 0 && net_attach(&m->site->net, m->state.pid, &m->order->net, err) != 0)
		return -1;
	if (m->order->rehearsal)
		return 0;
	return runtime_start(call, err) != 0 ? -1 : narrow(m, err);
}

static int
create_and_start(struct making *m, const struct runtime_home *home, struct stage *stage, struct err *err)
{
	const int fds[] = { m->listen_fd, m->config_fd, m->cgroup.dir_fd, m->cgroup.oom_fd, m->spool_fd, m->disk_fd,
		m->site->agent_fd };
	const struct runtime_call call = {
		.runtime = m->site->runtime,
		.dir = home->path,
		.dir_fd = home->fd,
		.name = m->state.uid, /* ids of sandboxes come again */
		.null_fd = m->site->null_fd,
		.fds = fds,
		.fd_count = sizeof fds / sizeof *fds,
		.prepare = enter_stage,
		.arg = stage,
		/* so that both steps are over, and the fault told, before the master gives the spawner up */
		.patience_ms = m->order->rehearsal ? REHEARSAL_MS : 0,
	};
	pid_t pid;

	_Static_assert(RUNTIME_FIRST_FD + sizeof fds / sizeof *fds - 1 == PROGRAM_FD, "the program is the last");
	if (runtime_create(&call, &pid, err) != 0)
		return -1;
	making_is_started(m, pid);
	return finish(m, &call, err);
}

static int
start(struct making *m, struct err *err)
{
	uid_t first = site_first_id(m->site->config->idmap_base, m->order->slot);
	struct runtime_home home = { .fd = -1 };
	struct stage stage = { .m = m, .dir = home.path, .root = -1, .dev = -1, .resolv = -1, .cgroups = -1 };
	int rc;

	if (m->site->cgroup.v2_fd < 0)
		return err_set(err, ERR_UNSUPPORTED,
			"an OCI runtime needs cgroup2: mount -t cgroup2 none /sys/fs/cgroup/unified, or "
			"local_runtime = \"builtin\"");
	rc = runtime_home_make(m->site->runtimes_fd, m->site->config->run_dir, m->state.uid, &home, err);
	if (rc == 0)
		rc = build_stage(m, first, &stage, err);
	if (rc == 0)
		rc = fill_image(m, stage.root, first, err);
	if (rc == 0)
		rc = write_bundle(m, &home, first, err);
	if (rc == 0)
		rc = create_and_start(m, &home, &stage, err);
	strike_stage(&stage);
	cleanup_fd(&home.fd);
	return rc;
}

const struct maker maker_oci = { .widen = widen, .start = start };
