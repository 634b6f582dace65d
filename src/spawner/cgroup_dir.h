/* cgroup_dir.h - a few things one does in a cgroup's directory; for cgroup.c and cgroup_host.c. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_CGROUP_DIR_H
#define ORCHARD_SPAWNER_CGROUP_DIR_H

#include "spawner/cgroup.h"

#include <stdbool.h>

extern const char *const cgroup_controller_names[CGROUP_CONTROLLERS];

int cgroup_open_dir(int at, const char *name);
/* mkdir (an existing one is fine) and open. */
int cgroup_make_dir(int at, const char *name);
/* 0 or -1 with errno. */
int cgroup_put(int dir, const char *file, const char *text);
/* Whether the space-separated file holds word. */
bool cgroup_file_has_word(int dir, const char *file, const char *word);

#endif
