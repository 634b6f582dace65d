/* group.c - descriptors stay open while a group is in use or idle, so a command costs no look-up of a name. */
/* SPDX-License-Identifier: MIT */
#include "agent/group.h"

#include "base/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Idle ones cost kernel memory in each sandbox; more are needed only by lanes that run side by side. */
enum { GROUP_MAX_IDLE = 4, GROUP_MAX_TEXT = 1024 };

void
group_pool_init(struct group_pool *pool, int jobs_fd)
{
	*pool = (struct group_pool){ .jobs_fd = jobs_fd };
	TAILQ_INIT(&pool->idle);
	TAILQ_INIT(&pool->occupied);
}

static void
group_close(struct group *group)
{
	int *fds[] = { &group->dir_fd, &group->procs_fd, &group->events_fd, &group->stat_fd };

	for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
}

static void
group_free(struct group *group)
{
	group_close(group);
	free(group);
}

void
group_pool_fini(struct group_pool *pool)
{
	struct group_list *lists[] = { &pool->idle, &pool->occupied };
	struct group *group;

	for (size_t i = 0; i < 2; i++)
		while ((group = TAILQ_FIRST(lists[i])) != NULL) {
			TAILQ_REMOVE(lists[i], group, link);
			group_free(group);
		}
}

static int
group_open(const struct group_pool *pool, struct group *group)
{
	group->dir_fd = openat(pool->jobs_fd, group->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (group->dir_fd < 0)
		return -1;
	group->procs_fd = openat(group->dir_fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);
	group->events_fd = openat(group->dir_fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
	group->stat_fd = openat(group->dir_fd, "cpu.stat", O_RDONLY | O_CLOEXEC);
	return group->procs_fd < 0 ? -1 : 0;
}

static struct group *
group_make(struct group_pool *pool)
{
	struct group *group = alloc_zero(1, sizeof *group);
	int errnum;

	*group = (struct group){ .dir_fd = -1, .procs_fd = -1, .events_fd = -1, .stat_fd = -1 };
	snprintf(group->name, sizeof group->name, "%" PRIu64, ++pool->made);
	if (mkdirat(pool->jobs_fd, group->name, 0755) == 0) {
		if (group_open(pool, group) == 0)
			return group;
		errnum = errno;
		unlinkat(pool->jobs_fd, group->name, AT_REMOVEDIR);
		errno = errnum;
	}
	errnum = errno;
	group_free(group);
	errno = errnum;
	return NULL;
}

static bool
group_read(int fd, char text[GROUP_MAX_TEXT])
{
	ssize_t got = fd < 0 ? -1 : pread(fd, text, GROUP_MAX_TEXT - 1, 0);

	if (got <= 0)
		return false;
	text[got] = '\0';
	return true;
}

/* Unknown counts as no. */
static bool
group_is_empty(const struct group *group)
{
	char text[GROUP_MAX_TEXT];

	return group_read(group->events_fd, text) && strstr(text, "populated 0") != NULL;
}

static int64_t
group_number(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at == NULL ? -1 : strtoll(at + strlen(name), NULL, 10);
}

static bool
group_read_total(const struct group *group, struct group_cpu *ret_cpu)
{
	char text[GROUP_MAX_TEXT];

	if (!group_read(group->stat_fd, text))
		return false;
	ret_cpu->user_us = group_number(text, "user_usec ");
	ret_cpu->sys_us = group_number(text, "system_usec ");
	return ret_cpu->user_us >= 0 && ret_cpu->sys_us >= 0;
}

bool
group_read_cpu(struct group *group, struct group_cpu *ret_cpu)
{
	if (!group_read_total(group, &group->seen))
		return false;
	ret_cpu->user_us = group->seen.user_us - group->before.user_us;
	ret_cpu->sys_us = group->seen.sys_us - group->before.sys_us;
	return true;
}

/* False: something lives in it. Where the kernel tells less than that, a group is used once. */
static bool
group_settle(struct group_pool *pool, struct group *group)
{
	bool keep = !group->spoiled && pool->idle_count < GROUP_MAX_IDLE;

	if (keep && group->dir_fd < 0)
		keep = group_open(pool, group) == 0 && group_read_total(group, &group->seen);
	if (keep && group_is_empty(group)) {
		group->before = group->seen;
		TAILQ_INSERT_HEAD(&pool->idle, group, link);
		pool->idle_count++;
		return true;
	}
	group_close(group);
	if (unlinkat(pool->jobs_fd, group->name, AT_REMOVEDIR) < 0 && errno == EBUSY)
		return false;
	free(group);
	return true;
}

void
group_give_back(struct group_pool *pool, struct group *group)
{
	if (!group_settle(pool, group))
		TAILQ_INSERT_TAIL(&pool->occupied, group, link);
}

bool
group_pool_sweep(struct group_pool *pool)
{
	struct group_list all = TAILQ_HEAD_INITIALIZER(all);
	struct group *group;

	TAILQ_CONCAT(&all, &pool->occupied, link);
	while ((group = TAILQ_FIRST(&all)) != NULL) {
		TAILQ_REMOVE(&all, group, link);
		group_give_back(pool, group);
	}
	return !TAILQ_EMPTY(&pool->occupied);
}

/* The command before may have been a moment from its end when its group was given back. */
static void
group_retry_last(struct group_pool *pool)
{
	struct group *group = TAILQ_LAST(&pool->occupied, group_list);

	if (group == NULL)
		return;
	TAILQ_REMOVE(&pool->occupied, group, link);
	group_give_back(pool, group);
}

struct group *
group_take(struct group_pool *pool)
{
	struct group *group = TAILQ_FIRST(&pool->idle);

	if (group == NULL) {
		group_retry_last(pool);
		group = TAILQ_FIRST(&pool->idle);
	}
	if (group == NULL)
		return group_make(pool);
	TAILQ_REMOVE(&pool->idle, group, link);
	pool->idle_count--;
	return group;
}
