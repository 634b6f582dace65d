/*
 * disk_measure.c - the child that measures: which sandbox is due, and what over its limit means.
 *
 * A sandbox is measured again before it could have written up to its limit, unless it
 * has used no processor since. Over the limit, its agent is told to end what runs. From
 * then on only growth is answered so: whoever removes files must be let be.
 */
/* SPDX-License-Identifier: MIT */
#include "spawner/disk/disk_watch.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text.h"
#include "spawner/box_state.h"
#include "spawner/disk/disk_usage.h"
#include "spawner/site.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum {
	LOOK_MS = 250,
	FASTEST_BYTES = 1 << 20, /* written in a millisecond */
	SOONEST_MS = 500,
	LATEST_MS = 10000,
	GROWTH_PART = 128 /* of the limit: growth that is answered */
};

struct measured {
	char name[64];
	char group[64];
	char uid[ID_UUID_SIZE];
	ino_t inode; /* of its directory: another one has another life */
	int64_t limit; /* 0: none to be watched here */
	int64_t used; /* when last measured; -1: never */
	int64_t told; /* the last that the dispatcher has heard of that; -1: nothing */
	int64_t due_ms;
	int64_t processor; /* used when last measured */
	bool over;
	bool ending; /* was told to end what runs: may have grown until it did */
	int64_t settled; /* over: the least it took since then */
};

struct measurer {
	const struct site *site;
	int dispatcher; /* the socket to it */
	struct measured *all; /* by name */
	size_t count;
};

static int
compare(const void *a, const void *b)
{
	return strcmp(((const struct measured *)a)->name, ((const struct measured *)b)->name);
}

/* False: it is only just being made, or is no sandbox. */
static bool
get_to_know(const struct measurer *m, struct measured *one)
{
	AUTO_FD box = openat(m->site->sandboxes_fd, one->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct box_state state;
	struct err err;

	if (box < 0 || box_state_read(box, &state, &err) != 0)
		return false;
	memcpy(one->uid, state.uid, sizeof one->uid);
	memcpy(one->group, state.group, sizeof one->group);
	one->limit = state.watched_disk;
	one->used = one->told = -1;
	one->processor = -1;
	return true;
}

static void
add(const struct measurer *m, const struct dirent *entry, struct measurer *into)
{
	struct measured one = { .inode = entry->d_ino };
	const struct measured *known;

	if (entry->d_name[0] == '.' || !text_copy(one.name, sizeof one.name, entry->d_name))
		return;
	known = m->count > 0 ? bsearch(&one, m->all, m->count, sizeof one, compare) : NULL;
	if (known != NULL && known->inode == one.inode)
		one = *known;
	else if (!get_to_know(m, &one))
		return;
	into->all = alloc_resize(into->all, (into->count + 1) * sizeof one);
	into->all[into->count++] = one;
}

/* Which sandboxes there are now. */
static void
look(struct measurer *m)
{
	struct measurer now = { .site = m->site, .dispatcher = m->dispatcher };
	AUTO_FD fd = openat(m->site->sandboxes_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO_DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;

	if (list == NULL)
		return;
	fd = -1; /* the list's from now on */
	while ((entry = readdir(list)) != NULL)
		add(m, entry, &now);
	if (now.count > 0)
		qsort(now.all, now.count, sizeof *now.all, compare);
	free(m->all);
	*m = now;
}

/* Of the whole sandbox, in microseconds; -1: not known here. */
static int64_t
processor_used(const struct site *site, const char *group)
{
	char path[96], text[64];
	AUTO_FD fd = -1;
	long long used;
	ssize_t n;

	if (site->cgroup.v2_fd < 0)
		return -1;
	snprintf(path, sizeof path, "%s/cpu.stat", group);
	fd = openat(site->cgroup.v2_fd, path, O_RDONLY | O_CLOEXEC);
	n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
	if (n <= 0)
		return -1;
	text[n] = '\0';
	return sscanf(text, "usage_usec %lld", &used) == 1 ? used : -1;
}

/* Its agent ends what runs. One that reads no more has heard it often enough. */
static void
tell_agent(int box_fd, struct measured *one)
{
	struct log_ctx ctx = { .sandbox_id = one->name };
	AUTO_FD pipe = openat(box_fd, "disk", O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);

	if (one->used == INT64_MAX)
		log_write(LOG_LEVEL_WARN, &ctx,
			"its directories are nested more than %d deep, so what it takes of the disk is not known; "
			"what runs in it is ended",
			DISK_USAGE_DEPTH);
	else
		log_write(LOG_LEVEL_WARN, &ctx, "over its disk limit: %lld of %lld bytes; what runs in it is ended",
			(long long)one->used, (long long)one->limit);
	if (pipe < 0 || (write(pipe, "!", 1) != 1 && errno != EAGAIN))
		log_write(LOG_LEVEL_WARN, &ctx, "its agent can't be told: %s", strerror(errno));
}

/* What can't be measured may grow without end, so it counts as growth. */
static bool
has_grown(const struct measured *one)
{
	return one->used - one->settled > one->limit / GROWTH_PART || one->used == INT64_MAX;
}

static void
judge(int box_fd, struct measured *one, int64_t used)
{
	bool was_ending = one->ending;

	one->used = used;
	one->ending = false;
	if (used > one->limit && (!one->over || (!was_ending && has_grown(one)))) {
		tell_agent(box_fd, one);
		one->ending = true;
	}
	if (!one->over || was_ending || used < one->settled)
		one->settled = used;
	one->over = used > one->limit;
}

static int64_t
pause_ms(const struct measured *one)
{
	int64_t ms = one->used < one->limit ? (one->limit - one->used) / FASTEST_BYTES : 0;

	return ms < SOONEST_MS ? SOONEST_MS : ms > LATEST_MS ? LATEST_MS : ms;
}

static void
measure(const struct measurer *m, struct measured *one)
{
	int64_t processor = processor_used(m->site, one->group), used;
	AUTO_FD box = -1;
	struct err err;

	if (processor < 0 || processor != one->processor) {
		box = openat(m->site->sandboxes_fd, one->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (box >= 0 && disk_usage(box, "upper", &used, &err) == 0)
			judge(box, one, used);
	}
	one->processor = processor;
	one->due_ms = clock_boot_ms() + pause_ms(one);
}

/* One that takes no more now hears it with the next look. */
static void
tell_dispatcher(const struct measurer *m, struct measured *one)
{
	struct disk_watch_word word = { .bytes = one->used == INT64_MAX ? -1 : one->used };

	if (one->used == one->told)
		return;
	memcpy(word.uid, one->uid, sizeof word.uid);
	if (send(m->dispatcher, &word, sizeof word, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof word)
		one->told = one->used;
}

void
disk_watch_run(const struct site *site, int socket)
{
	struct measurer m = { .site = site, .dispatcher = socket };
	struct pollfd end = { .fd = socket, .events = POLLIN };

	log_init("spawner", LOG_LEVEL_INFO);
	do {
		site_keep_dirs(site);
		look(&m);
		for (size_t i = 0; i < m.count; i++) {
			if (m.all[i].limit > 0 && clock_boot_ms() >= m.all[i].due_ms)
				measure(&m, &m.all[i]);
			tell_dispatcher(&m, &m.all[i]);
		}
	} while (poll(&end, 1, LOOK_MS) == 0);
	_exit(0);
}
