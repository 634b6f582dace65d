/* reaper_priv.h - the reaper's parts, for the files of this directory. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_REAPER_REAPER_PRIV_H
#define ORCHARD_REAPER_REAPER_PRIV_H

#include "base/cleanup.h"

#include <stdint.h>

struct err;
struct event_base;
struct reconcile;
struct service;

/* --- sweep.c: what is over by a rule --- */
/* Removes at most 64 sandboxes; what is left over comes with the next call. */
void sweep_sandboxes(struct service *service);
/* Asks some of the agents, others with each number: all of them in 15 numbers, or in more of very many. */
void sweep_agents(struct service *service, uint32_t number);
/* Drops what the record log no longer needs. */
void sweep_record_log(struct service *service);

/* --- recovery.c: what dead processes left --- */
void recovery_scan(struct service *service);

/* --- reconcile.c: the table against what the driver really has --- */
struct reconcile *reconcile_create(struct event_base *base, struct service *service);
/* After service_free(): the driver may not call it any more. */
void reconcile_free(struct reconcile *reconcile);

#endif
