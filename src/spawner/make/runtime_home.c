/* runtime_home.c - makes and removes such a directory. */
/* SPDX-License-Identifier: MIT */
#include "spawner/make/runtime_home.h"

#include "base/err.h"
#include "base/file.h"
#include "runtime/runtime_bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

int
runtime_home_make(
	int runtimes_fd, const char *run_dir, const char *uid, struct runtime_home *ret_home, struct err *err)
{
	static const char *const dirs[] = { BUNDLE_ROOT, BUNDLE_DEV, "state" };
	AUTO_FD fd = -1;
	AUTO_FD place = -1;

	if ((size_t)snprintf(ret_home->path, sizeof ret_home->path, "%s/runtime/%s", run_dir, uid) >=
		sizeof ret_home->path)
		return err_set(err, ERR_INVALID, "run_dir is too long");
	/* root of the sandbox, who is nobody out here, passes through on the way to its root filesystem */
	if (mkdirat(runtimes_fd, uid, 0711) != 0 ||
		(fd = openat(runtimes_fd, uid, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)
		return err_set_errno(err, errno, "make %s", ret_home->path);
	for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
		if (mkdirat(fd, dirs[i], 0711) != 0)
			return err_set_errno(err, errno, "make %s/%s", ret_home->path, dirs[i]);
	}
	place = openat(fd, BUNDLE_RESOLV, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (place < 0)
		return err_set_errno(err, errno, "make %s/" BUNDLE_RESOLV, ret_home->path);
	ret_home->fd = STEAL_FD(fd);
	return 0;
}

int
runtime_home_remove(int runtimes_fd, const char *uid, struct err *err)
{
	return file_remove_tree_at(runtimes_fd, uid, err);
}
