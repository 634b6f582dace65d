/* cgroup_host.c - finds the hierarchies of this host and makes a place for the sandboxes in each. */
/* SPDX-License-Identifier: MIT */
#include "spawner/cgroup/cgroup_dir.h"

#include "base/err.h"
#include "base/file.h"
#include "base/proc.h"
#include "base/text.h"
#include "spawner/cgroup/cgroup_earlier.h"
#include "spawner/cgroup/cgroup_find.h"
#include "spawner/cgroup/cgroup_io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LEAVE_ROUNDS = 32 };

/* The master, and what it started. */
static bool
is_ours(pid_t pid)
{
	pid_t master = getppid();

	while (pid > 1 && pid != master)
		pid = proc_parent(pid);
	return pid == master;
}

/* The processes directly in dir, one number a line; "" when there are none. */
static char *
read_members(int dir)
{
	char *text;
	struct err err;
	size_t len;

	return file_read_at(dir, "cgroup.procs", 1 << 20, &text, &len, &err) == 0 ? text : NULL;
}

/*
 * A v2 group that hands controllers on may hold no process itself; only the root may, which has no
 * cgroup.type. So we move down into a leaf, but only us: a shell that shares the group stays, and then the
 * group can't be used. Before any controller is handed on: the first alone, cpu, would be taken, and make ours
 * a group of threads.
 */
static int
leave_inner_group(struct cgroup_host *host, int own, const char *path)
{
	AUTO_FD leaf = -1;

	if (faccessat(own, "cgroup.type", F_OK, 0) != 0)
		return 0;
	/* Others of ours may be forked meanwhile, at most until the master itself has moved. */
	for (int round = 0; round < LEAVE_ROUNDS; round++) {
		AUTO_FREE char *members = read_members(own);
		char *save = NULL;

		if (members == NULL || members[0] == '\0')
			return members != NULL ? 0 : -1;
		for (char *pid = strtok_r(members, "\n", &save); pid != NULL; pid = strtok_r(NULL, "\n", &save)) {
			if (!is_ours((pid_t)strtol(pid, NULL, 10))) {
				snprintf(host->why, sizeof host->why,
					"cgroup %.120s holds other processes too (pid %.10s)", path, pid);
				return -1;
			}
			if (leaf < 0)
				leaf = cgroup_make_dir(own, CGROUP_LEAF);
			(void)cgroup_put(leaf, "cgroup.procs", pid);
		}
	}
	snprintf(host->why, sizeof host->why, "cgroup %.120s can't be left for a leaf of its own", path);
	return -1;
}

/* Hands controllers on to the children of dir; returns whether name is there for them. */
static bool
pass_controller(int dir, const char *name)
{
	char word[32];

	if (cgroup_file_has_word(dir, "cgroup.subtree_control", name))
		return true;
	if (!cgroup_file_has_word(dir, "cgroup.controllers", name))
		return false;
	snprintf(word, sizeof word, "+%s", name);
	return cgroup_put(dir, "cgroup.subtree_control", word) == 0;
}

static void
open_v2(struct cgroup_host *host, const char *parent, const char *name)
{
	char path[PATH_MAX];
	AUTO_FD own = -1;

	if (!cgroup_find_dir(NULL, parent, path, sizeof path))
		return;
	if (parent[0] != '\0')
		(void)mkdir(path, 0755);
	own = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (own >= 0)
		host->v2_fd = cgroup_make_dir(own, name);
	if (host->v2_fd < 0) {
		snprintf(host->why, sizeof host->why, "%.150s/%s can't be made: %s", path, name, strerror(errno));
		return;
	}
	host->above_fd[CGROUP_V2] = fcntl(own, F_DUPFD_CLOEXEC, 0);
	for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
		if ((i == CGROUP_IO && !host->share_io) || host->v1_fd[i] >= 0 ||
			!cgroup_file_has_word(own, "cgroup.controllers", cgroup_v2_names[i]))
			continue;
		if (leave_inner_group(host, own, path) != 0)
			return;
		host->v2_limit[i] = pass_controller(own, cgroup_v2_names[i]) &&
			pass_controller(host->v2_fd, cgroup_v2_names[i]);
	}
}

/* One that is no longer wanted is still needed for the sandboxes that were made when it was. */
static bool
is_used(const char *path, const char *name)
{
	AUTO_FD own = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return own >= 0 && unlinkat(own, name, AT_REMOVEDIR) != 0 && errno != ENOENT;
}

static void
open_v1(struct cgroup_host *host, const char *parent, const char *name)
{
	char path[PATH_MAX];

	for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
		AUTO_FD own = -1;

		if (!cgroup_find_dir(cgroup_v1_names[i], parent, path, sizeof path))
			continue;
		if (i == CGROUP_IO && !host->share_io && !is_used(path, name))
			continue;
		if (parent[0] != '\0')
			(void)mkdir(path, 0755);
		own = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (own >= 0)
			host->v1_fd[i] = cgroup_make_dir(own, name);
		if (host->v1_fd[i] < 0)
			snprintf(host->why, sizeof host->why, "%.150s/%s can't be made: %s", path, name,
				strerror(errno));
		else
			host->above_fd[i] = STEAL_FD(own);
	}
}

static void
name_missing(struct cgroup_host *host)
{
	bool v1 = false;

	for (int i = 0; i < CGROUP_NEEDED; i++) {
		size_t len = strlen(host->missing);

		v1 = v1 || host->v1_fd[i] >= 0;
		if (host->v1_fd[i] < 0 && !host->v2_limit[i])
			snprintf(host->missing + len, sizeof host->missing - len, "%s%s", len > 0 ? ", " : "",
				cgroup_v2_names[i]);
	}
	if (v1)
		host->mode = host->v2_fd >= 0 ? "hybrid" : "v1";
	else
		host->mode = host->v2_fd >= 0 ? "v2" : "none";
}

void
cgroup_host_init(struct cgroup_host *host)
{
	memset(host, 0, sizeof *host);
	host->v2_fd = -1;
	for (int i = 0; i < CGROUP_CONTROLLERS; i++)
		host->v1_fd[i] = -1;
	for (int i = 0; i < CGROUP_HIERARCHIES; i++)
		host->above_fd[i] = -1;
}

int
cgroup_host_open(struct cgroup_host *host, const struct cgroup_wish *wish, struct err *err)
{
	char hex[TEXT_SHA256_HEX_SIZE];

	cgroup_host_init(host);
	host->share_io = wish->share_io;
	text_sha256_hex(wish->state_dir, strlen(wish->state_dir), hex);
	snprintf(host->name, sizeof host->name, "orchard-%.12s", hex);
	open_v1(host, wish->parent, host->name);
	open_v2(host, wish->parent, host->name);
	name_missing(host);
	if (strcmp(host->mode, "none") == 0)
		return err_set(err, ERR_UNSUPPORTED,
			"no cgroup can be made%s%s: mount /sys/fs/cgroup writable, or run the service with "
			"Delegate=yes",
			host->why[0] != '\0' ? ", " : "", host->why);
	cgroup_io_warn(host);
	return 0;
}

void
cgroup_host_close(struct cgroup_host *host)
{
	for (int i = 0; i < CGROUP_CONTROLLERS; i++)
		cleanup_fd(&host->v1_fd[i]);
	cleanup_fd(&host->v2_fd);
	cgroup_earlier_close(host);
	for (int i = 0; i < CGROUP_HIERARCHIES; i++) {
		if (host->above_fd[i] >= 0)
			(void)unlinkat(host->above_fd[i], host->name, AT_REMOVEDIR);
		cleanup_fd(&host->above_fd[i]);
	}
}

bool
cgroup_host_dir(const struct cgroup_host *host, unsigned place, int *ret_dir)
{
	int dirs[CGROUP_HIERARCHIES];

	if (!cgroup_place_dirs(host, place, dirs))
		return false;
	*ret_dir = -1;
	for (int i = CGROUP_HIERARCHIES - 1; i >= 0 && *ret_dir < 0; i--)
		*ret_dir = dirs[i];
	return true;
}
