/* controller.h - the role that makes sandboxes as pods: the only process that talks to the API server of a cluster. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CONTROLLER_CONTROLLER_H
#define ORCHARD_CONTROLLER_CONTROLLER_H

#include "base/cleanup.h"

struct config;
struct err;
struct role_env;

/*
 * Serves ipc/spawn_msg.h on env->spawner_fd until TERM, INT or the end of the master. Pods live on; the next controller
 * finds them by their labels.
 */
int controller_main(struct role_env *env);
/* What can be found wrong with the settings of pods and of the cluster without asking it. */
int controller_check(const struct config *config, struct err *err) MUSTCHECK;

#endif
