/* links.c - a walk over a directory that stops at the first link that leads out. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/copy/links.h"

#include "base/err.h"

#include <ftw.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* nftw passes nothing on. */
static const char *root;
static char found[PATH_MAX], found_target[PATH_MAX];

static bool
is_dots(const char *part, size_t len)
{
	return len == 2 && part[0] == '.' && part[1] == '.';
}

/* False: it climbs more than `depth`, or climbs behind a name, which may be a link itself. */
static bool
descends(const char *target, int depth)
{
	bool named = false;

	for (size_t len; *target != '\0'; target += len) {
		target += strspn(target, "/");
		len = strcspn(target, "/");
		if (is_dots(target, len) && (named || depth-- == 0))
			return false;
		named = named || !(is_dots(target, len) || len == 0 || (len == 1 && *target == '.'));
	}
	return true;
}

static bool
stays(const char *target, int depth)
{
	size_t len = strlen(root);

	if (*target != '/')
		return descends(target, depth);
	if (*root != '/' || strstr(root, "..") != NULL || strstr(root, "//") != NULL)
		return true; /* the server knows */
	while (len > 0 && root[len - 1] == '/')
		len--;
	return strncmp(target, root, len) == 0 && (target[len] == '/' || target[len] == '\0') &&
		descends(target + len, 0);
}

static int
check_one(const char *path, const struct stat *stat, int type, struct FTW *at)
{
	char target[PATH_MAX];
	ssize_t len;

	(void)stat;
	if (type != FTW_SL)
		return 0;
	len = readlink(path, target, sizeof target - 1);
	if (len < 0)
		return 0;
	target[len] = '\0';
	if (stays(target, at->level - 1))
		return 0;
	snprintf(found, sizeof found, "%s", path);
	memcpy(found_target, target, (size_t)len + 1);
	return 1;
}

int
links_check(const char *directory, const char *to, struct err *err)
{
	root = to;
	if (strcmp(to, "/") == 0 || nftw(directory, check_one, 32, FTW_PHYS) != 1)
		return 0;
	return err_set(err, ERR_INVALID,
		"%.300s is a link that leads out of the directory, or may, to %.200s; --any-links takes such "
		"links, "
		"nothing was copied",
		found, found_target);
}
