/*
 * kube_client_impl.h - the inside of a client.
 *
 * kube_client.c has the queue and the slots, kube_call.c requests with their further tries; lists and watches stand
 * on these. An attempt is one request that goes out once, by an exchange (kube_exchange.h) on a wire (kube_wire.h).
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_KUBE_KUBE_CLIENT_IMPL_H
#define ORCHARD_KUBE_KUBE_CLIENT_IMPL_H

#include "kube/kube_client.h"
#include "kube/kube_exchange.h"

#include <sys/queue.h>

struct event;
struct kube_auth;
struct kube_list;
struct kube_watch;
struct kube_wire;

TAILQ_HEAD(kube_attempts, kube_attempt);
TAILQ_HEAD(kube_calls, kube_call);
TAILQ_HEAD(kube_lists, kube_list);
TAILQ_HEAD(kube_watches, kube_watch);
TAILQ_HEAD(kube_wires, kube_wire);

struct kube_client {
	struct event_base *base;
	const struct kube_config *config;
	struct kube_options options; /* without zeros */
	struct kube_auth *auth;
	struct kube_wire *wire; /* where exchanges begin; NULL: made when needed */
	struct kube_wires retired; /* where some still go on */
	struct kube_attempts queue; /* the oldest first */
	struct event *pump; /* active: the queue is to be looked at */
	struct kube_calls calls;
	struct kube_lists lists;
	struct kube_watches watches;
	struct kube_stats stats;
	uint32_t depth; /* callbacks of ours that run now, from the loop */
	bool freed; /* by a callback of a user's; nobody is called any more */
};

/* Around whatever calls users. The last leave frees a client that was freed meanwhile. */
void kube_client_enter(struct kube_client *client);
void kube_client_leave(struct kube_client *client);

/* One time out. Zero it, set what it sends and whom it tells; it may be started again when it has ended. */
struct kube_attempt {
	TAILQ_ENTRY(kube_attempt) entry; /* of the queue */
	struct kube_client *client;
	struct kube_send send; /* borrowed while it is under way */
	const struct kube_exchange_ops *ops;
	void *arg;
	bool again; /* counts as another try */
	bool queued;
	struct kube_exchange *exchange; /* NULL: not under way */
	uint64_t identity; /* that it went out with */
};
void kube_attempt_start(struct kube_attempt *attempt);
/* Also fine when it is not under way. */
void kube_attempt_cancel(struct kube_attempt *attempt);
/* It was refused by 401: true if there may be other credentials by now. */
bool kube_attempt_refused(struct kube_attempt *attempt);
/* Right after its start: one try, whatever comes. */
void kube_call_once(struct kube_call *call);
/* The same for the first page of a list: whoever starts it paces it. */
void kube_list_once(struct kube_list *list);
/* In done, what the server asked for; -1: nothing. */
int64_t kube_list_retry_after(const struct kube_list *list);

void kube_call_free_all(struct kube_client *client);
void kube_list_free_all(struct kube_client *client);
void kube_watch_free_all(struct kube_client *client);

#endif
