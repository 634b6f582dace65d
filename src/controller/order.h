/* order.h - one create, for the files that move it on: orders.c, order_make.c, order_wait.c, order_events.c. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CONTROLLER_ORDER_H
#define ORCHARD_CONTROLLER_ORDER_H

#include "controller/control.h"
#include "controller/orders.h"
#include "ipc/spawn_msg.h"
#include "spawn/turns.h"

struct agent_call;
struct event;

enum order_phase {
	ORDER_QUEUED, /* in line */
	ORDER_PAUSED, /* after trouble, until its timer */
	ORDER_MAKING, /* holds a place; the API server is asked */
	ORDER_WAITING, /* for the cluster */
	ORDER_PROBING /* its agent is asked */
};

struct order {
	struct control *control;
	struct turn turn; /* ORDER_QUEUED */
	enum order_phase phase;
	struct waiters waiters;
	struct kube_call *call;
	struct agent_call *probe;
	/* PAUSED: line up again; WAITING: trouble has lasted, or nothing has come for long; PROBING: ask again */
	struct event *timer;
	char pod_uid[ORDER_POD_UID_SIZE]; /* "" : not known to be there */
	bool posting; /* the call under way makes the pod, or deletes what became of it */
	bool posted; /* it may be there: look first */
	bool open; /* its policy stands, or it needs none */
	bool doomed; /* removed while it was posting: goes with the answer */
	int64_t pause_ms; /* before the next try */
	int64_t patience_ms; /* PROBING: clock_boot_ms() when it is lost; 0: its container is not known to run */
	char endpoint[108];
	struct event *news; /* set: words are yet to be told */
	char words[512]; /* how far it is */
	enum spawn_wait wait;
	struct spawn_create spec;
	char env[]; /* spec.env_len bytes */
};

/* orders.c */
/* What lasts for a moment alone is not told: each word wakes whoever looks at the sandbox, on every server. */
void order_tell(struct order *order, const char *words, enum spawn_wait wait);
/* Answers all who wait, and frees it. */
void order_end(struct order *order, const struct err *why, const char *other_uid);
void
order_fail(struct order *order, enum err_code code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void order_free(struct order *order);
/* Gives its place back, and lines up again after a pause that grows, or the one that the server wants (-1: none); why: told
 * as progress. */
void order_pause(struct order *order, const struct err *why, int64_t retry_after_ms);
void order_timer_set(struct order *order, int64_t ms);

/* order_make.c: the next step towards a pod that may be waited for. Holds a place. */
void order_make(struct order *order);

/* order_wait.c: the pod is there, its place was given back. */
void order_wait(struct order *order);
void order_on_time(struct order *order);

/* order_events.c: its pod waits, as status says. */
void order_events_later(struct order *order, const struct pod_status *status);
/* False: it does not wait for its node. */
bool order_events_ask(struct order *order, const struct pod_status *status);
/* Its words say that too, and perhaps why. */
bool order_events_told(const struct order *order, const struct pod_status *status);

#endif
