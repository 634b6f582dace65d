/*
 * orders.h - creates, from the request until the agent of the pod answers.
 *
 * A create waits for its turn (spawn/turns.h) at one of max_concurrent_creates places, holds that while it asks the API server,
 * and not while the cluster works or while it pauses after trouble. A pod whose creation may have been carried out is
 * looked for before it is asked for again.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CONTROLLER_ORDERS_H
#define ORCHARD_CONTROLLER_ORDERS_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stdint.h>

struct control;
struct err;
struct order;
struct pod_status;
struct spawn_create;

/* Begins it or joins the one of the same uid; both borrowed. */
void
orders_create(struct control *c, const struct spawn_create *spec, const char *env, uint64_t peer, uint64_t seq);
/* As many of those in line as there are places, if pods can be made now. */
void orders_start(struct control *c);
/* What those in line are told; owner: an order. For turns_create(). */
void orders_tell_place(void *owner, uint32_t place, void *arg);
/* No pod can be made, and that will not change by itself. */
void orders_refuse(struct control *c, const struct err *why);
void orders_free_all(struct control *c);

/* Its pod, as it is now; the order may be gone afterwards. */
void order_on_pod(struct order *order, const struct pod_status *status);

enum { ORDER_POD_UID_SIZE = 64 };
/*
 * Nobody wants it any more: those who waited hear so. True: it is gone, ret_pod_uid is its pod ("" : not known), and
 * ret_made false says that there can be none. False: its pod is being asked for right now; removal_go() comes later.
 */
bool order_abandon(struct order *order, char ret_pod_uid[ORDER_POD_UID_SIZE], bool *ret_made) MUSTCHECK;

#endif
