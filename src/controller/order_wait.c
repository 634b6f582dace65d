/*
 * order_wait.c - a pod on its way to an agent that answers.
 *
 * The watch says how far it is. As soon as the container may run its agent is asked, again and again with short pauses:
 * what kubelet thinks of its readiness, and when it next looks, does not count. Silence counts from when kubelet has
 * seen it run.
 */
/* SPDX-License-Identifier: MIT */
#include "controller/order.h"

#include "backend/agent_client.h"
#include "base/clock.h"
#include "conf/config.h"
#include "controller/pod_spec.h"
#include "controller/pods.h"
#include "spawn/peer.h"
#include "spawn/request.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Pauses grow by half: what they add to the time of a pod is at most a third of it. The patience with one question grows
 * with them, since the first one may be lost where the network of the pod is not yet complete.
 */
enum {
	PROBE_PAUSE_FIRST_MS = 2,
	PROBE_PAUSE_LAST_MS = 500,
	PROBE_FIRST_MS = 250,
	PROBE_LAST_MS = 5000,
	PROBE_PAUSES = 10 /* one question lasts as long as so many pauses, within those bounds */
};

/* --- the agent --- */

static void
order_done(struct order *order)
{
	struct control *c = order->control;
	struct waiter *waiter;
	struct spawn_reply reply;

	while ((waiter = STAILQ_FIRST(&order->waiters)) != NULL) {
		spawn_reply_fill(&reply, SPAWN_DONE, waiter->seq, NULL);
		memcpy(reply.endpoint, order->endpoint, sizeof reply.endpoint);
		peers_send(c->peers, waiter->peer, &reply, sizeof reply);
		STAILQ_REMOVE_HEAD(&order->waiters, link);
		free(waiter);
	}
	order_free(order);
}

static void
probe_later(struct order *order, const char *why)
{
	struct err err;

	err_set(&err, ERR_UNAVAILABLE, "its container runs, but its agent does not answer at %s: %s",
		order->endpoint, why);
	if (order->patience_ms > 0 && clock_boot_ms() >= order->patience_ms) {
		order_end(order, &err, NULL);
		return;
	}
	if (order->patience_ms > 0 && order->pause_ms == PROBE_PAUSE_LAST_MS)
		order_tell(order, err.msg, SPAWN_WAIT_WORK);
	order_timer_set(order, order->pause_ms);
	order->pause_ms = order->pause_ms * 3 / 2 < PROBE_PAUSE_LAST_MS ? order->pause_ms * 3 / 2
									: PROBE_PAUSE_LAST_MS;
}

static void
on_health(const struct agent_answer *answer, void *arg)
{
	struct order *order = arg;

	order->probe = NULL;
	if (answer->outcome == AGENT_JOB)
		order_done(order);
	else
		probe_later(order, answer->err != NULL ? answer->err->msg : "no health in the answer");
}

static int64_t
probe_ms(const struct order *order)
{
	int64_t ms = order->pause_ms * PROBE_PAUSES;

	if (ms < PROBE_FIRST_MS)
		return PROBE_FIRST_MS;
	return ms < PROBE_LAST_MS ? ms : PROBE_LAST_MS;
}

static void
probe(struct order *order)
{
	struct agent_target target = {
		.endpoint = order->endpoint,
		.sandbox_id = order->spec.id,
		.sandbox_uid = order->spec.uid,
		.token = order->spec.token,
	};
	struct err err;

	if (agent_health(order->control->agents, &target, probe_ms(order), on_health, order, &order->probe, &err) !=
		0)
		probe_later(order, err.msg);
}

static void
probe_stop(struct order *order)
{
	if (order->probe != NULL)
		agent_call_cancel(STEAL_PTR(order->probe));
	event_del(order->timer);
	order->phase = ORDER_WAITING;
}

/* There is a word of its pod, such as that it is ready: no time for a pause. */
static void
probe_now(struct order *order)
{
	if (order->probe != NULL)
		return;
	event_del(order->timer);
	probe(order);
}

static void
probe_start(struct order *order, const struct pod_status *status)
{
	char endpoint[sizeof order->endpoint];
	bool v6 = strchr(status->ip, ':') != NULL, runs = status->phase == POD_RUNNING;

	snprintf(endpoint, sizeof endpoint, "tcp:%s%s%s:%d", v6 ? "[" : "", status->ip, v6 ? "]" : "",
		POD_SPEC_PORT);
	if (order->phase == ORDER_PROBING && strcmp(endpoint, order->endpoint) == 0 &&
		runs == (order->patience_ms > 0)) {
		probe_now(order);
		return;
	}
	probe_stop(order);
	memcpy(order->endpoint, endpoint, sizeof order->endpoint);
	order->phase = ORDER_PROBING;
	order->pause_ms = PROBE_PAUSE_FIRST_MS;
	order->patience_ms = runs ? clock_boot_ms() + order->control->config->pod_agent_timeout_seconds * 1000 : 0;
	order_tell(order, runs ? "its container runs; its agent is asked" : status->words, SPAWN_WAIT_WORK);
	probe(order);
}

/* --- the pod --- */

/* Trouble may pass: it counts when it has lasted. */
static void
on_trouble(struct order *order, const struct pod_status *status)
{
	int64_t left = status->trouble_since_ms + order->control->config->image_pull_failure_seconds * 1000 -
		clock_boot_ms();

	if (left <= 0)
		order_fail(order, ERR_UNAVAILABLE, "%s", status->words);
	else
		order_timer_set(order, left);
}

void
order_on_pod(struct order *order, const struct pod_status *status)
{
	if (order->phase != ORDER_WAITING && order->phase != ORDER_PROBING)
		return;
	if (status->phase == POD_RUNNING || status->phase == POD_STARTING) {
		probe_start(order, status);
		return;
	}
	probe_stop(order);
	if (status->phase == POD_FAILED || status->phase == POD_GOING) {
		order_fail(order, ERR_CONFLICT, "%s", status->words);
		return;
	}
	if (status->words[0] != '\0' && !order_events_told(order, status))
		order_tell(order, status->words,
			status->phase == POD_UNSCHEDULABLE ? SPAWN_WAIT_PLACE : SPAWN_WAIT_WORK);
	if (status->trouble != POD_TROUBLE_NONE)
		on_trouble(order, status);
	else
		order_events_later(order, status);
}

void
order_on_time(struct order *order)
{
	const struct pod *pod = pods_find(order->control, order->spec.id, order->spec.uid);

	if (order->phase == ORDER_PROBING)
		probe(order);
	else if (pod != NULL && !order_events_ask(order, &pod->status))
		order_on_pod(order, &pod->status);
}

void
order_wait(struct order *order)
{
	struct control *c = order->control;
	const struct pod *pod = pods_find(c, order->spec.id, order->spec.uid);

	order->phase = ORDER_WAITING;
	c->places++;
	if (pod != NULL)
		order_on_pod(order, &pod->status);
	else
		order_fail(order, ERR_CONFLICT, "its pod was deleted by somebody else");
	orders_start(c);
}
