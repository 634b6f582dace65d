/*
 * control.h - what the parts of the controller share.
 *
 * Three registries: pods (by sandbox id, as the watch tells of them), orders (creates, by uid) and removals (by uid).
 * An order or a removal is the only one of its uid; whoever asks for the same again waits for the same end.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CONTROLLER_CONTROL_H
#define ORCHARD_CONTROLLER_CONTROL_H

#include "base/cleanup.h"
#include "base/err.h"
#include "controller/id_map.h"
#include "kube/kube_client.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct agent_client;
struct claim;
struct config;
struct counts;
struct destroyed;
struct event_base;
struct ground;
struct json_object;
struct kube_watch;
struct order;
struct peers;
struct pod_spec;
struct resources;
struct turns;

/* Whom to answer. */
struct waiter {
	STAILQ_ENTRY(waiter) link;
	uint64_t peer, seq;
};
STAILQ_HEAD(waiters, waiter);

struct control {
	struct event_base *base;
	const struct config *config;
	struct kube_client *client;
	struct kube_watch *watch;
	struct agent_client *agents;
	struct peers *peers;
	struct pod_spec *spec;
	struct destroyed *destroyed;
	struct ground *ground;
	struct claim *claim;
	struct resources *resources;
	struct counts *counts;
	struct id_map *pods, *orders, *removals;
	struct turns *turns; /* of orders that wait for a place */
	bool starting; /* orders_start() is at work */
	uint32_t places; /* free ones: requests that make something at the same time */
	bool synced; /* the pods are known */
	bool listing; /* a fresh list goes on: until it is whole, nothing can be said of all pods */
	uint32_t round; /* of lists */
	struct err trouble; /* the watch's last one */
	int64_t trouble_ms, trouble_since_ms; /* when that was, and the first of them; 0: it went on since */
};

enum control_kind {
	CONTROL_NAMESPACES,
	CONTROL_PODS,
	CONTROL_STRICT_PODS, /* for new ones: what the API server does not know is refused, not passed over */
	CONTROL_POLICIES,
	CONTROL_NODES,
	CONTROL_EVENTS,
	CONTROL_LEASES
};

/* Starts a request to the API server. name NULL: the collection. body: borrowed. done comes once, from the loop. */
struct kube_call *control_ask(struct control *c, enum kube_method method, enum control_kind kind, const char *name,
	struct json_object *body, kube_done_f *done, void *arg);
/* Where it is, escaped; name NULL: the collection; of EVENTS the uid of whose warnings are meant. malloc'ed. */
char *control_path(const struct control *c, enum control_kind kind, const char *name);
/* Asking again in the same way would get the same answer. */
bool control_is_final(const struct kube_answer *answer);
bool control_is_missing(const struct kube_answer *answer);
/* Before the next try: as long as the API server wants (-1: it does not say), a minute at most, but not less than pause_ms. */
int64_t control_pause_ms(int64_t pause_ms, int64_t retry_after_ms);

void waiters_add(struct waiters *waiters, uint64_t peer, uint64_t seq);
/* SPAWN_DONE for all of them, who are forgotten. other_uid: after ERR_EXISTS; else NULL. */
void waiters_refuse(struct control *c, struct waiters *waiters, const struct err *why, const char *other_uid);
void control_reply(struct control *c, uint64_t peer, uint64_t seq, const struct err *why);

#endif
