/* reaper_priv.h - the reaper's parts, for the files of this directory. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_REAPER_REAPER_PRIV_H
#define ORCHARD_REAPER_REAPER_PRIV_H

#include "base/cleanup.h"

#include "ipc/scoreboard.h"

#include <stdbool.h>
#include <stdint.h>

struct cluster;
struct config;
struct err;
struct event_base;
struct hearing;
struct membership;
struct orphans;
struct reconcile;
struct service;
struct service_share;
struct shm_scoreboard;

/* --- sweep.c: what is over by a rule --- */
/*
 * Removes what is over, with at most 64 removals of this process under way. True: there was no more room, call again
 * soon. *cursor: where the call before has ended; 0 at first.
 */
bool sweep_sandboxes(struct service *service, uint32_t *cursor);
/* Asks some of the agents, others with each number: all of them in 15 numbers, or in more of very many. */
void sweep_agents(struct service *service, uint32_t number);
/* Drops what the record log no longer needs. */
void sweep_record_log(struct service *service);

/* --- recovery.c: what dead processes left --- */
void recovery_scan(struct service *service);

/* --- adoption.c: pods of servers that are gone --- */
void adoption_scan(struct service *service, const struct membership *membership);

/* --- prefetch.c: images that are to be here --- */
void prefetch_images(struct service *service);

/* --- membership.c: this server among others at one Redis --- */
/* All borrowed. */
struct membership_options {
	struct event_base *base;
	const struct config *config;
	struct cluster *cluster;
	struct shm_scoreboard *board;
	struct proc_ref self;
};
struct membership *membership_create(const struct membership_options *options);
/* Jobs of servers that are gone are taken over by that service; NULL: no more, it is about to be freed. */
void membership_serve(struct membership *membership, struct service *service);
/* This server does what all need done once. Ask before each piece of it. */
bool membership_is_elected(const struct membership *membership);
/* False while nobody can tell. */
bool membership_is_gone(const struct membership *membership, const char *server);
const char *membership_self(const struct membership *membership); /* this server's id */
void membership_count(struct membership *membership); /* for /metrics; now and then */
void membership_free(struct membership *membership);

/* --- reconcile.c: the table against what the driver really has --- */
/* membership: NULL without others. */
struct reconcile *
reconcile_create(struct event_base *base, struct service *service, const struct membership *membership);
/* After service_free(): the driver may not call it any more. */
void reconcile_free(struct reconcile *reconcile);

/* --- orphan.c: removing what nobody has a record of --- */
struct orphans_options {
	struct service *service; /* both borrowed */
	const struct membership *membership; /* NULL: this server alone decides */
	void (*done)(
		void *arg); /* those of the last orphans_remove() are gone, or stay; may come before that returns */
	void *arg;
};
struct orphans *orphans_create(const struct orphans_options *options);
/* Has that life a record here, and not one of ours that has failed? */
bool orphans_is_wanted(const struct orphans *orphans, const char *id, const char *uid);
void orphans_add(struct orphans *orphans, const char *id, const char *uid);
void orphans_remove(struct orphans *orphans);
/* After service_free(). */
void orphans_free(struct orphans *orphans);

/* --- hearing.c: what other servers have changed, and are told; NULL is of a server without others --- */
struct hearing *
hearing_new(struct event_base *base, const struct config *config, struct cluster *cluster, struct proc_ref self);
/* For the service, which it outlives. */
const struct service_share *hearing_share(const struct hearing *hearing);
int hearing_begin(struct hearing *hearing, struct service *service, struct err *err) MUSTCHECK;
/* Each second. */
void hearing_tick(struct hearing *hearing);
/* The service hears nothing any more. */
void hearing_end(struct hearing *hearing);
void hearing_free(struct hearing *hearing);

#endif
