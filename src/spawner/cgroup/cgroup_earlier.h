/*
 * cgroup_earlier.h - sandboxes that were made in another place than new ones are.
 *
 * Where groups lie follows cgroup_parent, or the group that the server was started in: both may be
 * others at the next start, while sandboxes live. Each place is remembered before anything is made
 * in it, for as long as something is there.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_CGROUP_EARLIER_H
#define ORCHARD_SPAWNER_CGROUP_EARLIER_H

#include "spawner/cgroup/cgroup.h"

/* Opens what is left of earlier places, and remembers all of them. memory_fd: run_dir/spawner. */
void cgroup_earlier_open(struct cgroup_host *host, int memory_fd);
/* Removes our directories where no sandbox is left in them. */
void cgroup_earlier_trim(struct cgroup_host *host);
void cgroup_earlier_close(struct cgroup_host *host);

#endif
