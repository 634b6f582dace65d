/* gateway.h - the process that owns every terminal's WebSocket. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_GATEWAY_GATEWAY_H
#define ORCHARD_GATEWAY_GATEWAY_H

struct role_env;

/*
 * Takes connections from env->terminal_fd and relays them to agents until told to leave; a role_main_f.
 * HUP: takes nothing new and leaves when the last terminal has ended, or after terminal_drain_seconds. TERM and
 * the master's death: ends all of them with 1012. INT: at once.
 */
int gateway_main(struct role_env *env);

#endif
