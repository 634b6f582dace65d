/* sink.c - see sink.h. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/copy/sink.h"

#include "base/alloc.h"
#include "base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

char *
sink_temporary_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t directory = slash != NULL ? (size_t)(slash - path) + 1 : 0;

	return alloc_format("%.*s.%.200s.orchardctl-XXXXXX", (int)directory, path, path + directory);
}

static mode_t
mode_of_new(mode_t mode)
{
	mode_t mask = umask(0);

	umask(mask);
	return mode & 0777 & ~mask;
}

/* A name that leads to a file is taken for that file, as cp does it. */
static int
open_beside(struct sink *sink, const char *path, mode_t mode, struct err *err)
{
	char *real = realpath(path, NULL);

	sink->path = real != NULL ? real : alloc_string(path);
	sink->temporary = sink_temporary_name(sink->path);
	sink->fd = mkostemp(sink->temporary, O_CLOEXEC);
	if (sink->fd >= 0 && fchmod(sink->fd, mode) == 0)
		return 0;
	err_set(err, ERR_INVALID, "%s can't be written: %s", path, strerror(errno));
	if (sink->fd < 0) {
		free(sink->temporary);
		sink->temporary = NULL;
	}
	sink_close(sink);
	return -1;
}

int
sink_open(struct sink *sink, const char *path, mode_t mode, struct err *err)
{
	struct stat stat_;

	*sink = (struct sink){ .fd = -1, .owns_fd = true };
	if (stat(path, &stat_) != 0)
		return open_beside(sink, path, mode_of_new(mode), err);
	if (S_ISREG(stat_.st_mode))
		return open_beside(sink, path, stat_.st_mode & 0777, err);
	sink->fd = open(path, O_WRONLY | O_CLOEXEC);
	return sink->fd >= 0 ? 0 : err_set_errno(err, errno, "%s can't be written", path);
}

void
sink_open_stdout(struct sink *sink)
{
	*sink = (struct sink){ .fd = STDOUT_FILENO };
}

int
sink_keep(struct sink *sink, struct err *err)
{
	if (sink->temporary == NULL)
		return 0;
	if (rename(sink->temporary, sink->path) != 0)
		return err_set_errno(err, errno, "%s can't be written", sink->path);
	free(sink->temporary);
	sink->temporary = NULL;
	return 0;
}

void
sink_close(struct sink *sink)
{
	if (sink->temporary != NULL)
		unlink(sink->temporary);
	if (sink->owns_fd && sink->fd >= 0)
		close(sink->fd);
	free(sink->temporary);
	free(sink->path);
	*sink = (struct sink){ .fd = -1 };
}

bool
sink_is_file(const struct sink *sink)
{
	return sink->path != NULL;
}
