/* tree.c - a cgroup per command, killed whole; the sweep looks after those that are not empty yet. */
/* SPDX-License-Identifier: MIT */
#include "agent/tree.h"

#include "agent/group.h"
#include "agent/procscan.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TREE_SOON_MS = 50, TREE_LATER_MS = 5000, TREE_MAX_PROCS = 4 << 20 };

struct tree_keeper {
	int proc_fd;
	struct event *sweep;
	bool soon; /* a sweep is due before the regular one */
	struct group_pool pool;
	struct procscan *scan; /* of this turn of the loop; NULL: none yet */
	struct event *next_turn; /* drops it */
};

static void
tree_schedule(struct tree_keeper *keeper)
{
	struct timeval delay = clock_tv(keeper->soon ? TREE_SOON_MS : TREE_LATER_MS);

	if (!TAILQ_EMPTY(&keeper->pool.occupied))
		event_add(keeper->sweep, &delay);
}

static void
tree_on_sweep(evutil_socket_t fd, short what, void *arg)
{
	struct tree_keeper *keeper = arg;

	(void)fd;
	(void)what;
	keeper->soon = false;
	if (group_pool_sweep(&keeper->pool))
		tree_schedule(keeper);
}

static void
tree_drop_scan(struct tree_keeper *keeper)
{
	procscan_free(keeper->scan);
	keeper->scan = NULL;
}

static void
tree_on_next_turn(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	tree_drop_scan(arg);
}

/*
 * When hundreds end at once, a pass over /proc for each would keep the loop busy for their number squared. What
 * a tree has started since the pass, a member did that the pass knows, so none is taken for empty too early:
 * unless all of the tree is newer, hence tree_init drops the scan.
 */
static struct procscan *
tree_scan(struct tree_keeper *keeper)
{
	struct timeval now = { 0 };

	if (keeper->scan == NULL) {
		keeper->scan = procscan_take(keeper->proc_fd);
		event_add(keeper->next_turn, &now);
	}
	return keeper->scan;
}

struct tree_keeper *
tree_keeper_create(struct event_base *base, int cgroup_fd, int proc_fd)
{
	struct tree_keeper *keeper = alloc_zero(1, sizeof *keeper);
	int jobs_fd = cgroup_fd < 0 ? -1 : openat(cgroup_fd, "jobs", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	keeper->proc_fd = proc_fd;
	if (cgroup_fd >= 0 && jobs_fd < 0)
		log_warn("cgroup has no jobs directory (%s): killing commands is best effort", strerror(errno));
	group_pool_init(&keeper->pool, jobs_fd);
	keeper->sweep = evtimer_new(base, tree_on_sweep, keeper);
	keeper->next_turn = evtimer_new(base, tree_on_next_turn, keeper);
	if (keeper->sweep == NULL || keeper->next_turn == NULL)
		abort();
	return keeper;
}

void
tree_keeper_free(struct tree_keeper *keeper)
{
	event_free(keeper->sweep);
	event_free(keeper->next_turn);
	tree_drop_scan(keeper);
	group_pool_fini(&keeper->pool);
	if (keeper->pool.jobs_fd >= 0)
		close(keeper->pool.jobs_fd);
	free(keeper);
}

void
tree_keeper_on_orphans(struct tree_keeper *keeper)
{
	if (keeper->soon || TAILQ_EMPTY(&keeper->pool.occupied))
		return;
	keeper->soon = true;
	tree_schedule(keeper);
}

void
tree_init(struct tree *tree, struct tree_keeper *keeper, const char *job_id)
{
	*tree = (struct tree){ .keeper = keeper };
	memcpy(tree->job_id, job_id, sizeof tree->job_id - 1);
	tree_drop_scan(keeper);
	if (keeper->pool.jobs_fd < 0)
		return;
	tree->group = group_take(&keeper->pool);
	if (tree->group == NULL)
		log_warn("cannot make a cgroup for job %s: %s", job_id, strerror(errno));
}

bool
tree_is_exact(const struct tree *tree)
{
	return tree->group != NULL;
}

int
tree_group_fd(const struct tree *tree)
{
	return tree->group == NULL ? -1 : tree->group->dir_fd;
}

int
tree_procs_fd(const struct tree *tree)
{
	return tree->group == NULL ? -1 : tree->group->procs_fd;
}

static int
tree_put(const struct tree *tree, const char *file, const char *text)
{
	struct err ignored;

	return file_put_at(tree->group->dir_fd, file, text, &ignored);
}

/* A pid of 0 is a process that this namespace cannot name; it counts, and only cgroup.kill reaches it. */
static int
tree_signal_members(const struct tree *tree, int sig)
{
	AUTO_FREE char *text = NULL;
	struct err ignored;
	size_t len;
	int count = 0;

	if (file_read_at(tree->group->dir_fd, "cgroup.procs", TREE_MAX_PROCS, &text, &len, &ignored) < 0)
		return -1;
	for (char *at = text; *at != '\0'; count++) {
		pid_t pid = (pid_t)strtol(at, &at, 10);

		if (pid > 1 && sig != 0)
			kill(pid, sig);
		if (pid > 1 && sig == SIGTERM)
			kill(pid, SIGCONT);
		at += strspn(at, "\n");
	}
	return count;
}

/* Frozen, it cannot fork away from the list; SIGKILL also ends what is frozen. */
static int
tree_kill_members(const struct tree *tree)
{
	bool frozen = tree_put(tree, "cgroup.freeze", "1") == 0;
	int count = tree_signal_members(tree, SIGKILL);

	if (frozen && tree_put(tree, "cgroup.freeze", "0") < 0)
		tree->group->spoiled = true;
	return count;
}

static int
tree_signal_scanned(const struct tree *tree, int sig)
{
	struct procscan *scan;

	if (tree->leader <= 1)
		return -1;
	if (sig != 0)
		kill(-tree->leader, sig);
	if (sig == SIGTERM)
		kill(-tree->leader, SIGCONT);
	scan = tree_scan(tree->keeper);
	return scan == NULL ? -1 : procscan_signal(scan, tree->leader, tree->job_id, sig);
}

int
tree_signal(struct tree *tree, int sig)
{
	if (tree->group == NULL)
		return tree_signal_scanned(tree, sig);
	if (sig != SIGKILL)
		return tree_signal_members(tree, sig);
	if (tree_put(tree, "cgroup.kill", "1") == 0) {
		tree->group->spoiled = true; /* spawn() tells why */
		return tree_signal_members(tree, 0);
	}
	return tree_kill_members(tree);
}

int
tree_count(struct tree *tree)
{
	return tree->group == NULL ? tree_signal_scanned(tree, 0) : tree_signal_members(tree, 0);
}

int
tree_kill_rest(struct tree *tree)
{
	tree_drop_scan(tree->keeper);
	return tree_signal(tree, SIGKILL);
}

bool
tree_read_cpu(struct tree *tree, double *ret_user_s, double *ret_sys_s)
{
	struct group_cpu cpu;

	if (tree->group == NULL || !group_read_cpu(tree->group, &cpu))
		return false;
	*ret_user_s = (double)cpu.user_us / 1e6;
	*ret_sys_s = (double)cpu.sys_us / 1e6;
	return true;
}

void
tree_fini(struct tree *tree)
{
	struct tree_keeper *keeper = tree->keeper;

	if (tree->group == NULL)
		return;
	group_give_back(&keeper->pool, tree->group);
	tree->group = NULL;
	if (!event_pending(keeper->sweep, EV_TIMEOUT, NULL))
		tree_schedule(keeper);
}
