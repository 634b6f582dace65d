/*
 * claim.h - whose the namespace is: one server without Redis, or all that share one.
 *
 * A server without Redis makes and removes nothing while it does not hold the namespace's Lease, since to it another one's
 * pods are lost ones. It stops some seconds before anybody else may take over. Servers with Redis hold it together, to
 * keep those without away, and do not wait for it. Where the Lease may not be used, and nobody has been seen to, all goes on
 * without it.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CONTROLLER_CLAIM_H
#define ORCHARD_CONTROLLER_CLAIM_H

#include "base/cleanup.h"

#include <stdbool.h>

struct claim;
struct control;
struct err;
struct kube_config;

/* cluster is borrowed. ERR_INVALID, ERR_INTERNAL: this server has no name, or the library refuses. */
int
claim_create(struct control *c, struct kube_config *cluster, struct claim **ret_claim, struct err *err) MUSTCHECK;
void claim_free(struct claim *claim); /* NULL is fine */
/* The namespace is there, or there again. When it is ours, ground_go() and orders_start() are called. */
void claim_begin(struct claim *claim);

/* Pods and policies may be made and removed now. */
bool claim_holds(const struct claim *claim);
/* Somebody else has it: who, and what to do; NULL: that is not known. */
const struct err *claim_problem(const struct claim *claim);
/* Why nothing can be done now, whatever that is; until it is asked again. */
const struct err *claim_why(struct claim *claim);

/* Gives it back, once nothing is under way that needs it. True: that is done, or cannot be. Ask again until then. */
bool claim_leave(struct claim *claim);

#endif
