/* cgroup.c - makes, limits, kills and removes the cgroups of sandboxes. */
/* SPDX-License-Identifier: MIT */
#include "spawner/cgroup/cgroup.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "spawner/cgroup/cgroup_dir.h"
#include "spawner/cgroup/cgroup_io.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	CPU_PERIOD_US = 100000,
	DEFAULT_SHARES = 1024, /* what v1 calls that weight */
	AGENT_PIDS = 16, /* v2: what the agent may use beside the commands */
	KILL_ROUNDS = 64,
	SETTLE_ROUNDS = 400,
	RETRY_US = 500
};

void
cgroup_box_init(struct cgroup_box *box)
{
	for (int i = 0; i < CGROUP_JOINS; i++)
		box->join_fd[i] = -1;
	box->dir_fd = box->oom_fd = -1;
}

void
cgroup_box_close(struct cgroup_box *box)
{
	for (int i = 0; i < CGROUP_JOINS; i++)
		cleanup_fd(&box->join_fd[i]);
	cleanup_fd(&box->dir_fd);
	cleanup_fd(&box->oom_fd);
	cgroup_box_init(box);
}

/* Writes one limit; the message names what could not be limited. */
static int
put_limit(int dir, const char *file, int64_t value, const char *what, struct err *err)
{
	char text[32];

	snprintf(text, sizeof text, "%lld", (long long)value);
	if (file_put_at(dir, file, text, err) != 0) {
		err->code = ERR_UNSUPPORTED;
		return err_prefix(err, "the %s limit can't be applied", what);
	}
	return 0;
}

/* Swap would stretch the memory limit. Where it is not counted, it is at least not used for this group. */
static int
limit_v1_memory(int dir, int64_t bytes, struct err *err)
{
	if (put_limit(dir, "memory.limit_in_bytes", bytes, "memory", err) != 0)
		return -1;
	if (faccessat(dir, "memory.memsw.limit_in_bytes", F_OK, 0) == 0)
		return put_limit(dir, "memory.memsw.limit_in_bytes", bytes, "memory and swap", err);
	(void)cgroup_put(dir, "memory.swappiness", "0");
	return 0;
}

static bool
is_other(int64_t weight)
{
	return weight != 0 && weight != CGROUP_USUAL_WEIGHT;
}

static int
limit_v1(int dir, enum cgroup_controller which, const struct cgroup_limits *limits, struct err *err)
{
	int64_t quota = (int64_t)limits->cpu_milli * (CPU_PERIOD_US / 1000);

	if (which == CGROUP_MEMORY)
		return limit_v1_memory(dir, limits->memory_bytes, err);
	if (which == CGROUP_PIDS)
		return put_limit(dir, "pids.max", limits->pids_max, "pids", err);
	if (which == CGROUP_IO)
		return is_other(limits->io_weight) ? cgroup_io_limit(dir, limits->io_weight, err) : 0;
	if (put_limit(dir, "cpu.cfs_period_us", CPU_PERIOD_US, "cpu", err) != 0)
		return -1;
	if (put_limit(dir, "cpu.cfs_quota_us", quota < 1000 ? 1000 : quota, "cpu", err) != 0)
		return -1;
	return is_other(limits->cpu_weight)
		? put_limit(dir, "cpu.shares", limits->cpu_weight * DEFAULT_SHARES / CGROUP_USUAL_WEIGHT,
			  "cpu weight", err)
		: 0;
}

static int
limit_v2(int dir, const struct cgroup_host *host, const struct cgroup_limits *limits, struct err *err)
{
	int64_t quota = (int64_t)limits->cpu_milli * (CPU_PERIOD_US / 1000);
	char text[64];

	if (host->v2_limit[CGROUP_MEMORY]) {
		if (put_limit(dir, "memory.max", limits->memory_bytes, "memory", err) != 0)
			return -1;
		if (faccessat(dir, "memory.swap.max", F_OK, 0) == 0 &&
			put_limit(dir, "memory.swap.max", 0, "swap", err) != 0)
			return -1;
	}
	if (host->v2_limit[CGROUP_PIDS] &&
		put_limit(dir, "pids.max", limits->pids_max + AGENT_PIDS, "pids", err) != 0)
		return -1;
	snprintf(text, sizeof text, "%lld %d", (long long)(quota < 1000 ? 1000 : quota), CPU_PERIOD_US);
	if (host->v2_limit[CGROUP_CPU] && file_put_at(dir, "cpu.max", text, err) != 0)
		return err_prefix(err, "the cpu limit can't be applied");
	if (host->v2_limit[CGROUP_CPU] && is_other(limits->cpu_weight) &&
		put_limit(dir, "cpu.weight", limits->cpu_weight, "cpu weight", err) != 0)
		return -1;
	if (host->v2_limit[CGROUP_IO] && is_other(limits->io_weight))
		return cgroup_io_limit(dir, limits->io_weight, err);
	return 0;
}

/* The agent makes groups below jobs/ and moves processes between what is below dir. */
static int
delegate(int dir, uid_t owner)
{
	static const char *const names[] = { "cgroup.procs", "cgroup.threads", "agent", "agent/cgroup.procs",
		"agent/cgroup.threads", "jobs", "jobs/cgroup.procs", "jobs/cgroup.threads" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (fchownat(dir, names[i], owner, owner, AT_SYMLINK_NOFOLLOW) != 0 && errno != ENOENT)
			return -1;
	}
	return 0;
}

static int
make_v2(const struct cgroup_host *host, const char *id, const struct cgroup_limits *limits, uid_t owner,
	struct cgroup_box *box, struct err *err)
{
	box->dir_fd = cgroup_make_dir(host->v2_fd, id);
	if (box->dir_fd < 0)
		return err_set_errno(err, errno, "cgroup %s", id);
	if (mkdirat(box->dir_fd, "agent", 0755) != 0 || mkdirat(box->dir_fd, "jobs", 0755) != 0 ||
		delegate(box->dir_fd, owner) != 0)
		return err_set_errno(err, errno, "groups of the agent in cgroup %s", id);
	if (limits != NULL && limit_v2(box->dir_fd, host, limits, err) != 0)
		return -1;
	box->join_fd[0] = openat(box->dir_fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);
	if (box->join_fd[0] < 0)
		return err_set_errno(err, errno, "cgroup.procs of cgroup %s", id);
	if (host->v2_limit[CGROUP_MEMORY])
		box->oom_fd = openat(box->dir_fd, "memory.events", O_RDONLY | O_CLOEXEC);
	return 0;
}

static int
make_v1(const struct cgroup_host *host, enum cgroup_controller which, const char *id,
	const struct cgroup_limits *limits, struct cgroup_box *box, struct err *err)
{
	AUTO_FD dir = cgroup_make_dir(host->v1_fd[which], id);

	if (dir < 0)
		return err_set_errno(err, errno, "%s cgroup %s", cgroup_v1_names[which], id);
	if (limits != NULL && limit_v1(dir, which, limits, err) != 0)
		return -1;
	/* An init has one thread: as a thread it joins at once, as a process it would wait for the whole kernel. */
	box->join_fd[1 + which] = openat(dir, "tasks", O_WRONLY | O_CLOEXEC);
	if (box->join_fd[1 + which] < 0)
		return err_set_errno(err, errno, "tasks of %s cgroup %s", cgroup_v1_names[which], id);
	if (which == CGROUP_MEMORY)
		box->oom_fd = openat(dir, "memory.oom_control", O_RDONLY | O_CLOEXEC);
	return 0;
}

int
cgroup_box_make(const struct cgroup_host *host, const char *id, const struct cgroup_limits *limits, uid_t owner,
	struct cgroup_box *ret_box, struct err *err)
{
	cgroup_box_init(ret_box);
	if (host->missing[0] != '\0')
		return err_set(err, ERR_UNSUPPORTED,
			"this host offers no cgroup controller for: %s%s%s; run the service with Delegate=yes, or "
			"set "
			"cgroup_parent = / where no service manager minds",
			host->missing, host->why[0] != '\0' ? " - " : "", host->why);
	if (host->v2_fd >= 0 && make_v2(host, id, limits, owner, ret_box, err) != 0)
		goto failed;
	for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
		if (host->v1_fd[i] >= 0 && make_v1(host, (enum cgroup_controller)i, id, limits, ret_box, err) != 0)
			goto failed;
	}
	return 0;
failed:
	cgroup_box_close(ret_box);
	return -1;
}

/* A command that is just being started stands beside the agent for a moment: while one does, the kernel refuses. */
static bool
give_out_pids(int dir)
{
	struct timespec pause = { .tv_nsec = RETRY_US * 1000L };

	for (int round = 0; cgroup_put(dir, "cgroup.subtree_control", "+pids") != 0; round++) {
		if (errno != EBUSY || round == SETTLE_ROUNDS)
			return false;
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
	}
	return true;
}

/* What the commands have of the whole group's limit. */
static void
read_jobs_pids(int dir, char *ret_text, size_t size)
{
	AUTO_FREE char *text = NULL;
	long long most = 0;
	struct err err;
	size_t len;

	if (file_read_at(dir, "pids.max", 64, &text, &len, &err) == 0 && sscanf(text, "%lld", &most) == 1)
		snprintf(ret_text, size, "%lld", most > AGENT_PIDS ? most - AGENT_PIDS : most);
	else
		snprintf(ret_text, size, "max");
}

void
cgroup_box_settle(const struct cgroup_host *host, const char *id, pid_t agent)
{
	AUTO_FD dir = cgroup_open_box(host, CGROUP_V2, id);
	char pid[16], text[32];

	if (dir < 0)
		return;
	snprintf(pid, sizeof pid, "%d", (int)agent);
	if (cgroup_put(dir, "agent/cgroup.procs", pid) != 0) {
		if (errno != ESRCH && errno != ENOENT && errno != ENODEV)
			log_warn("cgroup %s: the agent has no group of its own: %s", id, strerror(errno));
		return;
	}
	if (faccessat(dir, "pids.max", F_OK, 0) != 0) /* v1 has that limit */
		return;
	read_jobs_pids(dir, text, sizeof text);
	if ((!give_out_pids(dir) || cgroup_put(dir, "jobs/pids.max", text) != 0) && errno != ENOENT &&
		errno != ENODEV)
		log_warn("cgroup %s: its commands share the agent's pids limit: %s", id, strerror(errno));
}

int
cgroup_box_limit(
	const struct cgroup_host *host, const char *id, const struct cgroup_limits *limits, struct err *err)
{
	AUTO_FD v2 = host->v2_fd >= 0 ? cgroup_open_dir(host->v2_fd, id) : -1;

	if (host->v2_fd >= 0 && v2 < 0)
		return err_set_errno(err, errno, "limits of cgroup %s", id);
	if (v2 >= 0 && limit_v2(v2, host, limits, err) != 0)
		return -1;
	for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
		AUTO_FD v1 = host->v1_fd[i] >= 0 ? cgroup_open_dir(host->v1_fd[i], id) : -1;

		if (host->v1_fd[i] >= 0 && v1 < 0)
			return err_set_errno(err, errno, "limits of %s cgroup %s", cgroup_v1_names[i], id);
		if (v1 >= 0 && limit_v1(v1, (enum cgroup_controller)i, limits, err) != 0)
			return -1;
	}
	return 0;
}

/* v1 has no cgroup.kill: read and kill until nobody is left to read. */
static void
kill_v1(int dir)
{
	for (int round = 0; round < KILL_ROUNDS; round++) {
		AUTO_FREE char *text = NULL;
		char *save = NULL;
		struct err err;
		size_t len;

		if (file_read_at(dir, "cgroup.procs", 1 << 24, &text, &len, &err) != 0 || len == 0)
			return;
		for (char *at = strtok_r(text, "\n", &save); at != NULL; at = strtok_r(NULL, "\n", &save)) {
			pid_t pid = (pid_t)strtol(at, NULL, 10);

			if (pid > 1)
				(void)kill(pid, SIGKILL);
		}
	}
}

static void
kill_in_place(const int dirs[CGROUP_HIERARCHIES], const char *id)
{
	AUTO_FD v2 = dirs[CGROUP_V2] >= 0 ? cgroup_open_dir(dirs[CGROUP_V2], id) : -1;

	/* an init joins v2 first: nobody is in a v1 group alone */
	if (v2 >= 0 && cgroup_put(v2, "cgroup.kill", "1") == 0)
		return;
	if (v2 >= 0)
		kill_v1(v2);
	for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
		AUTO_FD v1 = dirs[i] >= 0 ? cgroup_open_dir(dirs[i], id) : -1;

		if (v1 >= 0)
			kill_v1(v1);
	}
}

void
cgroup_box_kill(const struct cgroup_host *host, const char *id)
{
	int dirs[CGROUP_HIERARCHIES];

	for (unsigned place = 0; cgroup_place_dirs(host, place, dirs); place++)
		kill_in_place(dirs, id);
}

/* Removes dir and the groups below it, deepest first; false while something is still in there. */
static bool
remove_group(int at, const char *name)
{
	AUTO_FD fd = cgroup_open_dir(at, name);
	AUTO_DIR *list = NULL;
	struct dirent *entry;
	int copy;

	if (fd < 0)
		return errno == ENOENT;
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	list = copy >= 0 ? fdopendir(copy) : NULL;
	while (list != NULL && (entry = readdir(list)) != NULL) {
		if (entry->d_type == DT_DIR && strcmp(entry->d_name, ".") != 0 &&
			strcmp(entry->d_name, "..") != 0 && !remove_group(fd, entry->d_name))
			return false;
	}
	return unlinkat(at, name, AT_REMOVEDIR) == 0 || errno == ENOENT;
}

/*
 * A process counts as a member until it is quite gone, a moment after whoever
 * waits for it was told; the kernel has no event for that in v1.
 */
static int
remove_patiently(const struct cgroup_host *host, int at, const char *id, int64_t deadline, struct err *err)
{
	while (!remove_group(at, id)) {
		struct timespec pause = { .tv_nsec = RETRY_US * 1000L };

		if (errno != EBUSY && errno != ENOTEMPTY && errno != ENOENT)
			return err_set_errno(err, errno, "remove cgroup %s", id);
		if (clock_boot_ms() > deadline)
			return err_set(err, ERR_TIMEOUT, "cgroup %s still holds processes after SIGKILL", id);
		cgroup_box_kill(host, id); /* one that was on its way in when all were killed */
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
	}
	return 0;
}

int
cgroup_box_remove(const struct cgroup_host *host, const char *id, int timeout_ms, struct err *err)
{
	int64_t deadline = clock_boot_ms() + timeout_ms;
	int dirs[CGROUP_HIERARCHIES];

	for (unsigned place = 0; cgroup_place_dirs(host, place, dirs); place++) {
		for (int i = CGROUP_HIERARCHIES - 1; i >= 0;
			i--) { /* v2 first: who is killed there is in no other */
			if (dirs[i] >= 0 && remove_patiently(host, dirs[i], id, deadline, err) != 0)
				return -1;
		}
	}
	return 0;
}

bool
cgroup_box_oom_killed(const struct cgroup_host *host, const char *id)
{
	int v1 = cgroup_open_box(host, CGROUP_MEMORY, id);
	AUTO_FD dir = v1 >= 0 ? v1 : cgroup_open_box(host, CGROUP_V2, id);
	AUTO_FREE char *text = NULL;
	const char *at;
	struct err err;
	size_t len;

	if (dir < 0 ||
		file_read_at(dir, v1 >= 0 ? "memory.oom_control" : "memory.events", 4096, &text, &len, &err) != 0)
		return false;
	at = strstr(text, "oom_kill ");
	return at != NULL && strtoll(at + strlen("oom_kill "), NULL, 10) > 0;
}
