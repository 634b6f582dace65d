/* guard.c - keeps, lets go, puts back. */
/* SPDX-License-Identifier: MIT */
#include "agent/patch/guard.h"

#include "agent/patch/names.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/id.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { GUARD_COPY = 64 << 10 };

static bool
guard_was_there(const struct guard_entry *entry)
{
	return entry->before.st_nlink > 0;
}

static char *
guard_beside(const struct guard *guard, const char *path, size_t number)
{
	const char *slash = strrchr(path, '/');
	int dir = slash != NULL ? (int)(slash - path) + 1 : 0;

	return alloc_format("%.*s.orchard-patch-%s-%zu", dir, path, guard->tag, number);
}

/* The mode last: it may forbid writing. */
static int
guard_copy(const struct guard_entry *entry, const char *keep)
{
	AUTO_FREE char *piece = alloc_bytes(GUARD_COPY);
	AUTO_FD from = open(entry->path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	AUTO_FD to = -1;
	struct timespec times[2] = { entry->before.st_atim, entry->before.st_mtim };
	ssize_t n;

	if (from < 0)
		return -1;
	to = open(keep, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (to < 0)
		return -1;
	while ((n = read(from, piece, GUARD_COPY)) > 0)
		if (file_write_all(to, piece, (size_t)n) < 0)
			return -1;
	if (n < 0 || futimens(to, times) < 0)
		return -1;
	return fchmod(to, entry->before.st_mode & 07777);
}

/* 0: kept, or not to be changed by us. */
static int
guard_keep(struct guard *guard, struct guard_entry *entry, size_t number)
{
	AUTO_FREE char *in_dir = guard->dir != NULL ? alloc_format("%s/%zu", guard->dir, number) : NULL;
	AUTO_FREE char *beside = guard_beside(guard, entry->path, number);

	if (in_dir != NULL && linkat(AT_FDCWD, entry->path, AT_FDCWD, in_dir, 0) == 0) {
		entry->keep = STEAL_PTR(in_dir);
		return 0;
	}
	if (linkat(AT_FDCWD, entry->path, AT_FDCWD, beside, 0) == 0) {
		entry->keep = STEAL_PTR(beside);
		return 0;
	}
	if (errno == EACCES || errno == EROFS) /* nor can a tool take it out of its directory */
		return 0;
	if (!S_ISREG(entry->before.st_mode))
		return -1;
	if (guard_copy(entry, beside) == 0) {
		entry->keep = STEAL_PTR(beside);
		return 0;
	}
	if (errno == EACCES || errno == EROFS)
		return 0;
	int errnum = errno;

	unlink(beside);
	errno = errnum;
	return -1;
}

static size_t
guard_base_len(const char *path)
{
	AUTO_FREE char *part = alloc_string(path);
	struct stat st;
	char *slash;

	while ((slash = strrchr(part, '/')) != NULL) {
		*slash = '\0';
		if (lstat(part, &st) == 0)
			return strlen(part);
	}
	return 0;
}

static mode_t
guard_parent_mode(const char *path)
{
	const char *slash = strrchr(path, '/');
	AUTO_FREE char *parent = slash != NULL ? alloc_format("%.*s", (int)(slash - path), path)
					       : alloc_string(".");
	struct stat st;

	return stat(parent, &st) == 0 ? st.st_mode & 07777 : 0755;
}

static int
guard_enter(struct guard *guard, struct guard_entry *entry, size_t number)
{
	if (lstat(entry->path, &entry->before) < 0) {
		entry->before = (struct stat){ .st_nlink = 0 };
		entry->base_len = guard_base_len(entry->path);
		return 0;
	}
	entry->parent_mode = guard_parent_mode(entry->path);
	if (!S_ISREG(entry->before.st_mode) && !S_ISLNK(entry->before.st_mode))
		return 0; /* no tool replaces these */
	return guard_keep(guard, entry, number);
}

int
guard_take(struct guard *guard, const struct patch_names *names)
{
	AUTO_FREE char *cwd = getcwd(NULL, 0);
	unsigned long long tag = 0;

	if (getrandom(&tag, sizeof tag, 0) != (ssize_t)sizeof tag)
		return -1;
	*guard = (struct guard){ .list = alloc_zero(names->count + 1, sizeof *guard->list) };
	snprintf(guard->tag, sizeof guard->tag, "%016llx", tag);
	if (cwd != NULL)
		guard->dir = alloc_format("%s/.orchard-patch-%s", strcmp(cwd, "/") == 0 ? "" : cwd, guard->tag);
	if (guard->dir != NULL && mkdir(guard->dir, 0700) < 0) {
		free(guard->dir);
		guard->dir = NULL;
	}
	for (; guard->count < names->count; guard->count++) {
		guard->list[guard->count].path = names->list[guard->count];
		if (guard_enter(guard, &guard->list[guard->count], guard->count) < 0) {
			int errnum = errno;

			guard_release(guard);
			errno = errnum;
			return -1;
		}
	}
	return 0;
}

static void
guard_fini(struct guard *guard)
{
	if (guard->dir != NULL)
		rmdir(guard->dir);
	for (size_t i = 0; i < guard->count; i++)
		free(guard->list[i].keep);
	free(guard->list);
	free(guard->dir);
	*guard = (struct guard){ .dir = NULL };
}

/* The directories above path that are empty now, but for the first stop bytes of it. */
static void
guard_prune(const char *path, size_t stop)
{
	AUTO_FREE char *part = alloc_string(path);
	char *slash;

	while ((slash = strrchr(part, '/')) != NULL && (size_t)(slash - part) > stop) {
		*slash = '\0';
		if (rmdir(part) < 0)
			return;
	}
}

/* 0, or -1 with errno. What it had to make is gone again. */
static int
guard_try_parents(const struct guard_entry *entry)
{
	AUTO_FREE char *part = alloc_string(entry->path);
	int rc = 0, errnum = 0;

	for (char *slash = strchr(part, '/'); slash != NULL && rc == 0; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(part, 0777) < 0 && errno != EEXIST) {
			errnum = errno;
			rc = -1;
		}
		*slash = '/';
	}
	guard_prune(entry->path, entry->base_len);
	errno = errnum;
	return rc;
}

const char *
guard_find_left_out(const struct guard *guard)
{
	struct stat st;

	for (size_t i = 0; i < guard->count; i++) {
		const struct guard_entry *entry = &guard->list[i];
		const char *slash = strrchr(entry->path, '/');

		if (!guard_was_there(entry) && slash != NULL && (size_t)(slash - entry->path) > entry->base_len &&
			lstat(entry->path, &st) < 0 && guard_try_parents(entry) < 0)
			return entry->path;
	}
	return NULL;
}

static int
guard_compare(const void *path, const void *entry)
{
	return strcmp(path, ((const struct guard_entry *)entry)->path);
}

static bool
guard_has_below(const struct patch_names *targets, const char *path)
{
	size_t len = strlen(path);

	for (size_t i = 0; i < targets->count; i++)
		if (strncmp(targets->list[i], path, len) == 0 && targets->list[i][len] == '/')
			return true;
	return false;
}

static bool
guard_is_directory(const struct guard *guard, const char *path, const struct patch_names *targets)
{
	const struct guard_entry *entry = bsearch(
		path, guard->list, guard->count, sizeof *guard->list, guard_compare);
	bool was_there = entry != NULL && guard_was_there(entry);
	bool was_directory = was_there && S_ISDIR(entry->before.st_mode);
	struct stat st;

	if (lstat(path, &st) < 0)
		return was_directory;
	if (!S_ISDIR(st.st_mode))
		return false;
	/* Only a file that went may have made room for others. */
	return !was_there || was_directory || !guard_has_below(targets, path);
}

const char *
guard_find_directory(const struct guard *guard, const struct patch_names *targets)
{
	for (size_t i = 0; i < targets->count; i++)
		if (guard_is_directory(guard, targets->list[i], targets))
			return targets->list[i];
	return NULL;
}

void
guard_release(struct guard *guard)
{
	struct stat st;

	for (size_t i = 0; i < guard->count; i++) {
		struct guard_entry *entry = &guard->list[i];

		if (entry->keep == NULL)
			continue;
		unlink(entry->keep);
		if (lstat(entry->path, &st) < 0) /* a link beside it kept its directory */
			guard_prune(entry->path, 0);
	}
	guard_fini(guard);
}

static void
guard_make_parents(const struct guard_entry *entry)
{
	AUTO_FREE char *part = alloc_string(entry->path);

	for (char *slash = strchr(part, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(part, 0777) == 0 && strchr(slash + 1, '/') == NULL)
			(void)!chmod(part, entry->parent_mode);
		*slash = '/';
	}
}

/* A directory that is empty now was so before, but for files that come back after it. */
static bool
guard_put_back_directory(const struct guard_entry *entry)
{
	struct stat st;

	if (lstat(entry->path, &st) == 0 && S_ISDIR(st.st_mode))
		return true;
	unlink(entry->path);
	guard_make_parents(entry);
	if (mkdir(entry->path, 0700) < 0)
		return false;
	(void)!lchown(entry->path, entry->before.st_uid, entry->before.st_gid);
	return chmod(entry->path, entry->before.st_mode & 07777) == 0;
}

static bool
guard_put_back(struct guard_entry *entry)
{
	struct stat st;

	if (S_ISDIR(entry->before.st_mode))
		return guard_put_back_directory(entry);
	if (entry->keep == NULL)
		return true;
	if (lstat(entry->path, &st) == 0 && st.st_dev == entry->before.st_dev &&
		st.st_ino == entry->before.st_ino) {
		if (st.st_mode != entry->before.st_mode)
			(void)!chmod(entry->path, entry->before.st_mode & 07777);
		unlink(entry->keep);
		return true;
	}
	if (rename(entry->keep, entry->path) == 0)
		return true;
	rmdir(entry->path); /* the patch made a directory of it */
	guard_make_parents(entry);
	return rename(entry->keep, entry->path) == 0;
}

size_t
guard_roll_back(struct guard *guard)
{
	size_t lost = 0;

	/* What is new goes first: it may stand where a directory was. */
	for (size_t i = 0; i < guard->count; i++) {
		struct guard_entry *entry = &guard->list[i];

		if (guard_was_there(entry))
			continue;
		if (unlink(entry->path) == 0 || rmdir(entry->path) == 0 || errno == ENOENT)
			guard_prune(entry->path, entry->base_len);
	}
	for (size_t i = 0; i < guard->count; i++) {
		struct guard_entry *entry = &guard->list[i];

		if (guard_was_there(entry) && !guard_put_back(entry)) {
			fprintf(stderr, "error: %s could not be put back: %s; what it was is kept as %s\n",
				entry->path, strerror(errno), entry->keep != NULL ? entry->keep : "nothing");
			lost++;
		}
	}
	guard_fini(guard);
	return lost;
}
