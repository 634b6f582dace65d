/* merge.c - rename(2), one name after the other. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/copy/merge.h"

#include "base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

static int merge_entry(int from, int to, const char *name, struct err *err);

static DIR *
open_directory(int dirfd, const char *name)
{
	int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

	if (dir == NULL && fd >= 0)
		close(fd);
	return dir;
}

static int
merge_directory(int from, int to, const char *name, struct err *err)
{
	AUTO_DIR *source = open_directory(from, name);
	AUTO_FD target = openat(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct dirent *entry;

	if (source == NULL || target < 0)
		return err_set(
			err, ERR_INVALID, "%s: is a directory in the sandbox, and here is something else", name);
	while ((entry = readdir(source)) != NULL) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (merge_entry(dirfd(source), target, entry->d_name, err) != 0)
			return err_prefix(err, "%s", name);
	}
	return 0;
}

static int
merge_entry(int from, int to, const char *name, struct err *err)
{
	struct stat source, target;

	if (fstatat(from, name, &source, AT_SYMLINK_NOFOLLOW) != 0)
		return err_set(err, ERR_INVALID, "%s: %s", name, strerror(errno));
	if (S_ISDIR(source.st_mode) && fstatat(to, name, &target, AT_SYMLINK_NOFOLLOW) == 0)
		return merge_directory(from, to, name, err);
	if (renameat(from, name, to, name) != 0)
		return err_set(err, ERR_INVALID, "%s: %s", name, strerror(errno));
	return 0;
}

int
merge_run(int from, int to, struct err *err)
{
	AUTO_DIR *source = open_directory(from, ".");
	struct dirent *entry;

	if (source == NULL)
		return err_set_errno(err, errno, "what has come can't be read");
	while ((entry = readdir(source)) != NULL) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (merge_entry(from, to, entry->d_name, err) != 0)
			return -1;
	}
	return 0;
}
