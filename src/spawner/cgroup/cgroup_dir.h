/* cgroup_dir.h - a few things one does in a cgroup's directory; for cgroup.c and cgroup_host.c. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_CGROUP_DIR_H
#define ORCHARD_SPAWNER_CGROUP_DIR_H

#include "spawner/cgroup/cgroup.h"

#include <stdbool.h>

extern const char *const cgroup_v1_names[CGROUP_CONTROLLERS];
extern const char *const cgroup_v2_names[CGROUP_CONTROLLERS];

/* Our directories of that place, 0 being where new sandboxes are made; false: there are no more places. */
bool cgroup_place_dirs(const struct cgroup_host *host, unsigned place, int ret_dirs[CGROUP_HIERARCHIES]);
/* The sandbox's group in one hierarchy, wherever it is; -1 with errno. */
int cgroup_open_box(const struct cgroup_host *host, int which, const char *id);
int cgroup_open_dir(int at, const char *name);
/* mkdir (an existing one is fine) and open. */
int cgroup_make_dir(int at, const char *name);
/* 0 or -1 with errno. */
int cgroup_put(int dir, const char *file, const char *text);
/* Whether the space-separated file holds word. */
bool cgroup_file_has_word(int dir, const char *file, const char *word);

#endif
