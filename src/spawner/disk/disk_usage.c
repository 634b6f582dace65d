/*
 * disk_usage.c - one walk over a tree that changes meanwhile, at a bounded pace.
 *
 * Every name is looked up from an open directory and never through a link, so moving
 * things about leads the walk nowhere else. All levels are held open: no way back by
 * "..", which could lead out, and so a bound on the depth.
 */
/* SPDX-License-Identifier: MIT */
#include "spawner/disk/disk_usage.h"

#include "base/clock.h"
#include "base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum {
	FILE_BYTES = 4096, /* what a file without content takes */
	BLOCK = 512, /* of st_blocks */
	PACE_ENTRIES = 256,
	PACE_REST = 3 /* times as long as it worked */
};

struct usage_walk {
	DIR *levels[DISK_USAGE_DEPTH];
	size_t depth;
	unsigned entries;
	int64_t worked_from_us;
	int64_t bytes;
};

static void
pace(struct usage_walk *walk)
{
	int64_t worked_us;
	struct timespec rest;

	if (++walk->entries % PACE_ENTRIES != 0)
		return;
	worked_us = clock_boot_us() - walk->worked_from_us;
	rest.tv_sec = worked_us * PACE_REST / 1000000;
	rest.tv_nsec = worked_us * PACE_REST % 1000000 * 1000;
	(void)nanosleep(&rest, NULL);
	walk->worked_from_us = clock_boot_us();
}

/* A file of several names is counted in parts, by each of them. */
static void
count(struct usage_walk *walk, const struct stat *st)
{
	int64_t bytes = (int64_t)st->st_blocks * BLOCK;

	if (bytes < FILE_BYTES)
		bytes = FILE_BYTES;
	if (!S_ISDIR(st->st_mode) && st->st_nlink > 1)
		bytes = (bytes + (int64_t)st->st_nlink - 1) / (int64_t)st->st_nlink;
	walk->bytes += bytes;
}

/* False: too deep. What is gone meanwhile counts nothing. */
static bool
visit(struct usage_walk *walk, int parent, const char *name)
{
	struct stat st;
	int fd;

	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return true;
	count(walk, &st);
	if (!S_ISDIR(st.st_mode))
		return true;
	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NOATIME);
	if (fd < 0)
		return errno != EMFILE && errno != ENFILE;
	if (walk->depth == DISK_USAGE_DEPTH) {
		close(fd);
		return false;
	}
	walk->levels[walk->depth] = fdopendir(fd);
	if (walk->levels[walk->depth] == NULL)
		abort();
	walk->depth++;
	return true;
}

static bool
step(struct usage_walk *walk)
{
	DIR *dir = walk->levels[walk->depth - 1];
	const struct dirent *entry = readdir(dir);

	if (entry == NULL) {
		closedir(dir);
		walk->depth--;
		return true;
	}
	if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
		return true;
	pace(walk);
	return visit(walk, dirfd(dir), entry->d_name);
}

int
disk_usage(int dirfd, const char *name, int64_t *ret_bytes, struct err *err)
{
	struct usage_walk walk = { .worked_from_us = clock_boot_us() };
	struct stat st;
	bool whole;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return err_set_errno(err, errno, "measure %s", name);
	whole = visit(&walk, dirfd, name);
	while (whole && walk.depth > 0)
		whole = step(&walk);
	while (walk.depth > 0)
		closedir(walk.levels[--walk.depth]);
	*ret_bytes = whole ? walk.bytes : INT64_MAX;
	return 0;
}
