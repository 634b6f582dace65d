/*
 * resources.c - nodes, then pods, then the answer in pieces.
 *
 * Between the two lists a pod may come or go. Who asks wants to know whether there is room, and that changes as
 * quickly.
 */
/* SPDX-License-Identifier: MIT */
#include "controller/resources.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "controller/control.h"
#include "controller/node_sum.h"
#include "controller/pod_spec.h"
#include "ipc/spawn_msg.h"
#include "kube/kube_list.h"
#include "spawn/peer.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

enum { FRESH_MS = 3000 };

struct resources {
	struct control *control;
	struct waiters waiters;
	struct kube_list *list; /* NULL: none goes on */
	struct node_sum *sum; /* of the lists that go on */
	struct json_object *last; /* NULL: none yet */
	int64_t last_ms; /* when it was summed up */
};

static void
send_pieces(struct resources *resources, const struct waiter *waiter)
{
	struct control *c = resources->control;
	struct spawn_piece piece = { .head = { SPAWN_VERSION, SPAWN_PIECE, waiter->seq } };
	size_t len;
	const char *text = json_text(resources->last, &len);

	for (size_t at = 0; at < len; at += piece.len) {
		piece.len = (uint32_t)(len - at < sizeof piece.text ? len - at : sizeof piece.text);
		memcpy(piece.text, text + at, piece.len);
		peers_send(c->peers, waiter->peer, &piece, sizeof piece);
	}
	control_reply(c, waiter->peer, waiter->seq, NULL);
}

static void
finish(struct resources *resources)
{
	struct waiter *waiter;

	json_object_put(resources->last);
	resources->last = node_sum_json(resources->sum);
	resources->last_ms = clock_boot_ms();
	node_sum_free(STEAL_PTR(resources->sum));
	while ((waiter = STAILQ_FIRST(&resources->waiters)) != NULL) {
		send_pieces(resources, waiter);
		STAILQ_REMOVE_HEAD(&resources->waiters, link);
		free(waiter);
	}
}

static void
give_up(struct resources *resources, const struct err *why, const char *what)
{
	struct err err;

	err_set(&err, ERR_UNAVAILABLE, "%s cannot be listed: %s", what, why->msg);
	node_sum_free(STEAL_PTR(resources->sum));
	waiters_refuse(resources->control, &resources->waiters, &err, NULL);
}

/* --- pods --- */

static void
on_pods_again(void *arg)
{
	struct resources *resources = arg;

	node_sum_drop_pods(resources->sum);
}

static void
on_pod(void *arg, struct json_object *pod)
{
	struct resources *resources = arg;

	node_sum_pod(resources->sum, pod);
}

static void
on_pods(void *arg, const char *version, const struct err *why)
{
	struct resources *resources = arg;

	(void)version;
	resources->list = NULL;
	if (why != NULL)
		give_up(resources, why, "the pods of sandboxes");
	else
		finish(resources);
}

/* --- nodes --- */

static void
on_nodes_again(void *arg)
{
	struct resources *resources = arg;

	node_sum_drop_nodes(resources->sum);
}

static void
on_node(void *arg, struct json_object *node)
{
	struct resources *resources = arg;

	node_sum_node(resources->sum, node);
}

static void
on_nodes(void *arg, const char *version, const struct err *why)
{
	static const struct kube_list_ops ops = { .again = on_pods_again, .item = on_pod, .done = on_pods };
	struct resources *resources = arg;
	struct control *c = resources->control;
	AUTO_FREE char *path = control_path(c, CONTROL_PODS, NULL);

	(void)version;
	resources->list = NULL;
	if (why != NULL)
		give_up(resources, why, "the nodes of the cluster");
	else
		resources->list = kube_list_start(c->client,
			&(struct kube_list_ask){ .path = path, .selector = POD_SPEC_SELECTOR }, &ops, resources);
}

/* --- whoever asks --- */

void
resources_ask(struct resources *resources, uint64_t peer, uint64_t seq)
{
	static const struct kube_list_ops ops = { .again = on_nodes_again, .item = on_node, .done = on_nodes };
	struct control *c = resources->control;
	AUTO_FREE char *path = control_path(c, CONTROL_NODES, NULL);

	if (resources->last != NULL && clock_boot_ms() - resources->last_ms < FRESH_MS) {
		send_pieces(resources, &(struct waiter){ .peer = peer, .seq = seq });
		return;
	}
	waiters_add(&resources->waiters, peer, seq);
	if (resources->list != NULL)
		return;
	resources->sum = node_sum_create(c->config);
	resources->list = kube_list_start(c->client, &(struct kube_list_ask){ .path = path }, &ops, resources);
}

struct resources *
resources_create(struct control *c)
{
	struct resources *resources = alloc_zero(1, sizeof *resources);

	resources->control = c;
	STAILQ_INIT(&resources->waiters);
	return resources;
}

void
resources_free(struct resources *resources)
{
	struct waiter *waiter;

	if (resources == NULL)
		return;
	if (resources->list != NULL)
		kube_list_cancel(resources->list);
	while ((waiter = STAILQ_FIRST(&resources->waiters)) != NULL) {
		STAILQ_REMOVE_HEAD(&resources->waiters, link);
		free(waiter);
	}
	node_sum_free(resources->sum);
	json_object_put(resources->last);
	free(resources);
}
