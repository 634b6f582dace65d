/* file_call.c - paths and directories, as the other file calls need them. */
/* SPDX-License-Identifier: MIT */
#include "agent/files/file_call.h"
#include "agent/files/helper_side.h"

#include "base/alloc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void
file_call_free(void *arg)
{
	struct file_call *call = arg;

	free(call->path);
	free(call->to);
	free(call->after);
	free(call->range);
	free(call->if_range);
	free(call->if_none_match);
	free(call);
}

bool
file_path_check(struct helper_side *side, const char *path)
{
	if (path[0] == '/' || helper_cwd_errno(side) == 0)
		return true;
	helper_refuse_errno(side, helper_cwd_errno(side), "the working directory, from which %s counts", path);
	return false;
}

char *
file_path_parent(const char *path)
{
	size_t len = strlen(path);
	char *parent;

	while (len > 0 && path[len - 1] == '/')
		len--;
	while (len > 0 && path[len - 1] != '/')
		len--;
	if (len == 0)
		return alloc_string(".");
	while (len > 1 && path[len - 1] == '/')
		len--;
	parent = alloc_string(path);
	parent[len] = '\0';
	return parent;
}

/* Another call may make it at the same moment, or it is a link to a directory. */
static int
make_dir(const char *path, int mode)
{
	struct stat st;
	int errnum;

	if (mkdir(path, (mode_t)mode) == 0)
		return 0;
	errnum = errno;
	if (stat(path, &st) == 0) {
		errno = ENOTDIR;
		return S_ISDIR(st.st_mode) ? 0 : -1;
	}
	errno = errnum;
	return -1;
}

int
file_make_dirs(const char *path, int mode)
{
	AUTO_FREE char *copy = NULL;
	struct stat st;

	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return 0;
	copy = alloc_string(path);
	for (char *at = copy + strspn(copy, "/"); (at = strchr(at, '/')) != NULL; at += strspn(at, "/")) {
		*at = '\0';
		if (make_dir(copy, mode) < 0)
			return -1;
		*at = '/';
	}
	return make_dir(copy, mode);
}
