/* workdir.c - runs once, before any user code, so no one can swap what it touches. */
/* SPDX-License-Identifier: MIT */
#include "agent/workdir.h"

#include "agent/user.h"
#include "base/err.h"
#include "base/file.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

int
workdir_make(const char *path, const char *user, struct err *err)
{
	struct user owner;
	struct stat st;

	if (stat(path, &st) == 0)
		return 0;
	if (file_mkdirs(path, 0755, err) < 0)
		return err_prefix(err, "working directory");
	if (user_find("", user, &owner, err) < 0)
		return err_prefix(err, "working directory %s", path);
	if (owner.uid != geteuid() && chown(path, owner.uid, owner.gid) < 0)
		return err_set_errno(err, errno, "give working directory %s to its user", path);
	return 0;
}
