/*
 * order_events.c - a pod that has a node and does not get on there.
 *
 * Of what comes before its containers (an address, volumes, the runtime's class) a node tells in events alone. They are
 * asked for only while a pod waits for longer than that takes, and never decide anything.
 */
/* SPDX-License-Identifier: MIT */
#include "controller/order.h"

#include "controller/pod_event.h"
#include "controller/pods.h"

#include <stdio.h>
#include <string.h>

enum { ASK_FIRST_MS = 5000, ASK_AGAIN_MS = 10000 };

static bool
is_stuck(const struct pod_status *status)
{
	return status->phase == POD_WAITING && status->trouble == POD_TROUBLE_NONE && status->node[0] != '\0';
}

static void
tell_event(struct order *order, const struct pod_status *status, const char *event)
{
	char words[sizeof order->words];

	snprintf(words, sizeof words, "%.100s; its node says: %s", status->words, event);
	order_tell(order, words, SPAWN_WAIT_WORK);
}

static void
on_events(const struct kube_answer *answer, void *arg)
{
	struct order *order = arg;
	const struct pod *pod = pods_find(order->control, order->spec.id, order->spec.uid);
	char event[POD_EVENT_WORDS_SIZE];

	order->call = NULL;
	if (order->phase != ORDER_WAITING || pod == NULL || !is_stuck(&pod->status))
		return;
	if (control_is_final(answer)) /* rights that are missing: it goes without */
		return;
	pod_event_newest(answer->why == NULL ? answer->body : NULL, pod->status.pod_uid, event);
	if (event[0] != '\0')
		tell_event(order, &pod->status, event);
	order_timer_set(order, ASK_AGAIN_MS);
}

void
order_events_later(struct order *order, const struct pod_status *status)
{
	if (is_stuck(status))
		order_timer_set(order, ASK_FIRST_MS);
}

bool
order_events_ask(struct order *order, const struct pod_status *status)
{
	if (!is_stuck(status))
		return false;
	if (order->call == NULL)
		order->call = control_ask(
			order->control, KUBE_GET, CONTROL_EVENTS, status->pod_uid, NULL, on_events, order);
	return true;
}

bool
order_events_told(const struct order *order, const struct pod_status *status)
{
	return is_stuck(status) && strncmp(order->words, status->words, strlen(status->words)) == 0;
}
