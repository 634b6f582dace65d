/*
 * sink.h - where a downloaded file goes: a temporary file beside its name, which takes it at the end; or a pipe or device,
 * which gets the bytes as they come.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARDCTL_COPY_SINK_H
#define ORCHARDCTL_COPY_SINK_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <sys/types.h>

struct err;

struct sink {
	int fd;
	char *temporary, *path; /* owned; NULL: as it comes */
	bool owns_fd;
};

/* mode: of the file in the sandbox; one that is there already keeps its own. */
int sink_open(struct sink *sink, const char *path, mode_t mode, struct err *err) MUSTCHECK;
void sink_open_stdout(struct sink *sink);
/* Gives the file its name. */
int sink_keep(struct sink *sink, struct err *err) MUSTCHECK;
/* Closes; what was not kept is gone. */
void sink_close(struct sink *sink);
/* A file that can be begun anew. */
bool sink_is_file(const struct sink *sink);

/* A fresh name ".NAME.orchardctl-XXXXXX" beside path, for mkostemp() and mkdtemp(); malloc'ed. */
char *sink_temporary_name(const char *path);

#endif
