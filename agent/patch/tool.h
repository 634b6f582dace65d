/*
 * tool.h - git or patch, found in the image and run once over the patch.
 *
 * git does not look for a repository: it is told which directory is one, so that owners do not matter and names
 * outside the working directory are not skipped. The system's and the user's configuration do not count, nor do
 * GIT_ variables; what a repository itself says (line ends, filters) does.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_PATCH_TOOL_H
#define ORCHARD_AGENT_PATCH_TOOL_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>

struct patch_tool {
	char *path;
	bool is_git, is_gnu;
};

/* False: the image has none. */
bool patch_tool_find(struct patch_tool *ret_tool) MUSTCHECK;

struct patch_run {
	int patch_fd; /* seekable */
	const char *temp_dir; /* NULL: none */
	int out_fd, err_fd; /* what it said; the caller's, at their start again */
};

/*
 * Applies it in the working directory. The exit code as a shell tells it; -1: a signal asks us to stop, and nothing
 * of the tool lives any more. Needs patch_block_signals().
 */
int patch_tool_run(const struct patch_tool *tool, struct patch_run *run) MUSTCHECK;
void patch_block_signals(void);
/* One that asks us to stop waits. */
bool patch_is_asked(void);

#endif
