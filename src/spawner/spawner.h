/* spawner.h - the role that makes sandboxes on this host: the only process that stays root. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_SPAWNER_H
#define ORCHARD_SPAWNER_SPAWNER_H

#include "base/cleanup.h"

#include <stdint.h>

struct config;
struct role_env;

/*
 * Serves ipc/spawn_msg.h on env->spawner_fd until TERM, INT or the end of the
 * master. Sandboxes live on; the next spawner finds them by their records.
 */
int spawner_main(struct role_env *env);
/* Sandboxes of this boot whose agents live, by their records; for when no spawner runs. */
uint32_t spawner_count_living(const struct config *config);

#endif
