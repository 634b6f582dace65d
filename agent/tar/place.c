/* place.c - names as text, then as the kernel sees them. */
/* SPDX-License-Identifier: MIT */
#include "agent/tar/place.h"

#include "base/alloc.h"
#include "base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

void
place_init(struct place *place, int root_fd, const char *root, bool any_link)
{
	*place = (struct place){ .root_fd = root_fd, .root = root, .any_link = any_link, .parent_fd = -1 };
}

static void
place_leave(struct place *place)
{
	if (place->parent_fd >= 0)
		close(place->parent_fd);
	place->parent_fd = -1;
	free(place->parent);
	place->parent = NULL;
}

void
place_fini(struct place *place)
{
	place_leave(place);
}

/* The next part of a path, between slashes; len 0: none is left. */
static const char *
next_part(const char **at, size_t *ret_len)
{
	const char *part = *at + strspn(*at, "/");

	*ret_len = strcspn(part, "/");
	*at = part + *ret_len;
	return part;
}

static bool
part_is(const char *part, size_t len, const char *word)
{
	return len == strlen(word) && memcmp(part, word, len) == 0;
}

char *
place_name(const char *name, struct err *err)
{
	AUTO_FREE char *plain = alloc_zero(1, strlen(name) + 1);
	const char *at = name, *part;
	size_t len;
	char *end = plain;

	if (*name == '/') {
		err_set(err, ERR_DENIED, "its name is absolute");
		return NULL;
	}
	while (part = next_part(&at, &len), len > 0) {
		if (part_is(part, len, "..")) {
			err_set(err, ERR_DENIED, "its name leads upwards");
			return NULL;
		}
		if (part_is(part, len, "."))
			continue;
		if (end > plain)
			*end++ = '/';
		memcpy(end, part, len);
		end += len;
	}
	return STEAL_PTR(plain);
}

static bool
is_same(int fd, int other_fd)
{
	struct stat st, other;

	return fstat(fd, &st) == 0 && fstat(other_fd, &other) == 0 && st.st_ino == other.st_ino &&
		st.st_dev == other.st_dev;
}

/* Takes `.` and `..` from the head of a target as the kernel would, from the directory that the link is in. */
static bool
climbs_out(const struct place *place, const char **target)
{
	AUTO_FD fd = fcntl(place->parent_fd, F_DUPFD_CLOEXEC, 0);

	for (;;) {
		const char *at = *target, *part;
		size_t len;
		int above;

		part = next_part(&at, &len);
		if (!part_is(part, len, ".") && !part_is(part, len, ".."))
			return fd < 0;
		*target = at;
		if (len == 1)
			continue;
		if (fd < 0 || is_same(fd, place->root_fd))
			return true;
		above = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		close(fd);
		fd = above;
	}
}

/* A name may be, or become, a link to somewhere higher up, so what a `..` behind it leads to is not known. */
static bool
only_descends(const char *target)
{
	const char *part;
	size_t len;

	while (part = next_part(&target, &len), len > 0)
		if (part_is(part, len, ".."))
			return false;
	return true;
}

/* An absolute target is inside when it goes on where the root's own path ends. */
static bool
absolute_stays_inside(const char *root, const char *target)
{
	const char *root_part, *part;
	size_t root_len, len;

	if (*root != '/' || strstr(root, "..") != NULL)
		return false;
	while (root_part = next_part(&root, &root_len), root_len > 0) {
		part = next_part(&target, &len);
		if (len != root_len || memcmp(part, root_part, len) != 0)
			return false;
	}
	return only_descends(target);
}

int
place_check_link(const struct place *place, const char *target, struct err *err)
{
	const char *rest = target;
	bool inside;

	if (place->any_link || strcmp(place->root, "/") == 0)
		return 0;
	if (*target == '/')
		inside = absolute_stays_inside(place->root, target);
	else
		inside = !climbs_out(place, &rest) && only_descends(rest);
	if (inside)
		return 0;
	return err_set(err, ERR_DENIED,
		"it is a link that leads out, or may, to %.200s; links=any takes such links", target);
}

/* Part by part, for kernels before 5.6 and where a filter refuses what it does not know. */
static int
walk_parts(int root_fd, const char *name)
{
	int fd = fcntl(root_fd, F_DUPFD_CLOEXEC, 0);
	const char *part;
	size_t len;

	while (fd >= 0 && (part = next_part(&name, &len), len > 0)) {
		AUTO_FREE char *copy = alloc_format("%.*s", (int)len, part);
		int next = openat(fd, copy, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), errnum = errno;

		close(fd);
		errno = errnum;
		fd = next;
	}
	return fd;
}

int
place_open_dir(const struct place *place, const char *name)
{
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_BENEATH };
	int fd;

	if (*name == '\0')
		return fcntl(place->root_fd, F_DUPFD_CLOEXEC, 0);
	if (strcmp(place->root, "/") == 0)
		how.resolve = RESOLVE_IN_ROOT;
	fd = (int)syscall(SYS_openat2, place->root_fd, name, &how, sizeof how);
	if (fd >= 0 || (errno != ENOSYS && errno != EPERM && errno != EINVAL))
		return fd;
	return walk_parts(place->root_fd, name);
}

/* The directory at name, made if it is missing. */
static int
open_or_make(const struct place *place, const char *name)
{
	AUTO_FREE char *above = NULL;
	const char *slash = strrchr(name, '/');
	AUTO_FD above_fd = -1;
	int fd = place_open_dir(place, name);

	if (fd >= 0 || errno != ENOENT || *name == '\0')
		return fd;
	above = alloc_format("%.*s", slash != NULL ? (int)(slash - name) : 0, name);
	above_fd = open_or_make(place, above);
	if (above_fd < 0)
		return -1;
	if (mkdirat(above_fd, slash != NULL ? slash + 1 : name, 0777) < 0 && errno != EEXIST)
		return -1;
	return place_open_dir(place, name);
}

int
place_open_parent(struct place *place, const char *name, const char **ret_base)
{
	const char *slash = strrchr(name, '/');
	AUTO_FREE char *parent = alloc_format("%.*s", slash != NULL ? (int)(slash - name) : 0, name);
	struct stat st;

	*ret_base = slash != NULL ? slash + 1 : name;
	if (place->parent != NULL && strcmp(place->parent, parent) == 0)
		return place->parent_fd;
	place_leave(place);
	place->parent_fd = open_or_make(place, parent);
	if (place->parent_fd < 0)
		return -1;
	place->parent = STEAL_PTR(parent);
	place->parent_sets_gid = fstat(place->parent_fd, &st) == 0 && (st.st_mode & S_ISGID) != 0;
	place->parent_gid = st.st_gid;
	return place->parent_fd;
}
