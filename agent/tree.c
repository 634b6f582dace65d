/* tree.c - a cgroup per command, killed whole and removed when it is empty. */
/* SPDX-License-Identifier: MIT */
#include "agent/tree.h"

#include "base/alloc.h"
#include "agent/procscan.h"
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

struct tree_remains {
	char job_id[ID_UUID_SIZE];
	TAILQ_ENTRY(tree_remains) link;
};

struct tree_keeper {
	int jobs_fd, proc_fd;
	struct event *sweep;
	bool soon; /* a sweep is due before the regular one */
	TAILQ_HEAD(, tree_remains) remains;
};

static void
tree_schedule(struct tree_keeper *keeper)
{
	struct timeval delay = clock_tv(keeper->soon ? TREE_SOON_MS : TREE_LATER_MS);

	if (!TAILQ_EMPTY(&keeper->remains))
		event_add(keeper->sweep, &delay);
}

static void
tree_on_sweep(evutil_socket_t fd, short what, void *arg)
{
	struct tree_keeper *keeper = arg;
	struct tree_remains *remains = TAILQ_FIRST(&keeper->remains), *next;

	(void)fd;
	(void)what;
	for (; remains != NULL; remains = next) {
		next = TAILQ_NEXT(remains, link);
		if (unlinkat(keeper->jobs_fd, remains->job_id, AT_REMOVEDIR) < 0 && errno == EBUSY)
			continue;
		TAILQ_REMOVE(&keeper->remains, remains, link);
		free(remains);
	}
	keeper->soon = false;
	tree_schedule(keeper);
}

struct tree_keeper *
tree_keeper_create(struct event_base *base, int cgroup_fd, int proc_fd)
{
	struct tree_keeper *keeper = alloc_zero(1, sizeof *keeper);

	keeper->proc_fd = proc_fd;
	keeper->jobs_fd = -1;
	if (cgroup_fd >= 0)
		keeper->jobs_fd = openat(cgroup_fd, "jobs", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (cgroup_fd >= 0 && keeper->jobs_fd < 0)
		log_warn("cgroup has no jobs directory (%s): killing commands is best effort", strerror(errno));
	keeper->sweep = evtimer_new(base, tree_on_sweep, keeper);
	if (keeper->sweep == NULL)
		abort();
	TAILQ_INIT(&keeper->remains);
	return keeper;
}

void
tree_keeper_free(struct tree_keeper *keeper)
{
	struct tree_remains *remains;

	while ((remains = TAILQ_FIRST(&keeper->remains)) != NULL) {
		TAILQ_REMOVE(&keeper->remains, remains, link);
		free(remains);
	}
	event_free(keeper->sweep);
	if (keeper->jobs_fd >= 0)
		close(keeper->jobs_fd);
	free(keeper);
}

void
tree_keeper_on_orphans(struct tree_keeper *keeper)
{
	if (keeper->soon)
		return;
	keeper->soon = true;
	tree_schedule(keeper);
}

void
tree_init(struct tree *tree, struct tree_keeper *keeper, const char *job_id)
{
	*tree = (struct tree){ .keeper = keeper, .dir_fd = -1 };
	memcpy(tree->job_id, job_id, sizeof tree->job_id - 1);
	if (keeper->jobs_fd < 0)
		return;
	if (mkdirat(keeper->jobs_fd, job_id, 0755) < 0 && errno != EEXIST) {
		log_warn("cannot make cgroup jobs/%s: %s", job_id, strerror(errno));
		return;
	}
	tree->dir_fd = openat(keeper->jobs_fd, job_id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

bool
tree_is_exact(const struct tree *tree)
{
	return tree->dir_fd >= 0;
}

int
tree_open_procs(const struct tree *tree)
{
	if (tree->dir_fd < 0)
		return -1;
	return openat(tree->dir_fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);
}

static int
tree_put(const struct tree *tree, const char *file, const char *text)
{
	struct err ignored;

	return file_put_at(tree->dir_fd, file, text, &ignored);
}

/* A pid of 0 is a process that this namespace cannot name; it counts, and only cgroup.kill reaches it. */
static int
tree_signal_members(const struct tree *tree, int sig)
{
	AUTO_FREE char *text = NULL;
	struct err ignored;
	size_t len;
	int count = 0;

	if (file_read_at(tree->dir_fd, "cgroup.procs", TREE_MAX_PROCS, &text, &len, &ignored) < 0)
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
		log_warn("cannot thaw cgroup jobs/%s", tree->job_id);
	return count;
}

int
tree_signal(struct tree *tree, int sig)
{
	if (tree->dir_fd < 0)
		return procscan_signal(tree->keeper->proc_fd, tree->leader, tree->job_id, sig);
	if (sig != SIGKILL)
		return tree_signal_members(tree, sig);
	if (tree_put(tree, "cgroup.kill", "1") == 0)
		return tree_signal_members(tree, 0);
	return tree_kill_members(tree);
}

int
tree_count(struct tree *tree)
{
	return tree->dir_fd < 0 ? procscan_signal(tree->keeper->proc_fd, tree->leader, tree->job_id, 0)
				: tree_signal_members(tree, 0);
}

void
tree_fini(struct tree *tree)
{
	struct tree_keeper *keeper = tree->keeper;
	struct tree_remains *remains;

	if (tree->dir_fd < 0)
		return;
	close(tree->dir_fd);
	tree->dir_fd = -1;
	if (unlinkat(keeper->jobs_fd, tree->job_id, AT_REMOVEDIR) == 0 || errno != EBUSY)
		return;
	remains = alloc_zero(1, sizeof *remains);
	memcpy(remains->job_id, tree->job_id, sizeof remains->job_id);
	TAILQ_INSERT_TAIL(&keeper->remains, remains, link);
	if (!event_pending(keeper->sweep, EV_TIMEOUT, NULL))
		tree_schedule(keeper);
}
