/* worker.h - the process that speaks HTTP with clients. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_WORKER_WORKER_H
#define ORCHARD_WORKER_WORKER_H

struct role_env;

/*
 * Serves the REST API on env->listen_fd until it is told to leave; a role_main_f.
 * TERM: no new connections, open requests get drain_timeout_seconds. INT: at once.
 * The master's death: as TERM, but short.
 */
int worker_main(struct role_env *env);

#endif
