/* removal.c - look where it must, delete, and make sure. */
/* SPDX-License-Identifier: MIT */
#include "controller/removal.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "conf/config.h"
#include "controller/claim.h"
#include "controller/control.h"
#include "controller/orders.h"
#include "controller/pod_spec.h"
#include "controller/pod_write.h"
#include "controller/pods.h"
#include "spawn/destroyed.h"

#include <event2/event.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* FORCE_MS: how long beyond its grace a node may leave a deletion undone, as one that is lost does. */
enum { CHECK_FIRST_MS = 1000, CHECK_LAST_MS = 5000, CONFLICT_FIRST_MS = 50, FORCE_MS = 30000 };

struct removal {
	struct control *control;
	struct waiters waiters;
	struct kube_call *call;
	struct event *timer; /* looks whether it is gone, should the watch be late */
	int64_t pause_ms; /* before it is looked for again */
	int64_t conflict_ms; /* the same, after a conflict */
	int64_t force_ms; /* when to wait for its node no longer; 0: not deleted yet */
	char id[64], uid[ID_UUID_SIZE];
	char pod_uid[ORDER_POD_UID_SIZE];
};

static void
removal_free(struct removal *removal)
{
	if (removal->call != NULL)
		kube_call_cancel(removal->call);
	event_free(removal->timer);
	id_map_remove(removal->control->removals, removal->uid);
	free(removal);
}

/* why NULL: it is gone. */
static void
removal_end(struct removal *removal, const struct err *why)
{
	if (why == NULL)
		pods_forget(removal->control, removal->id, removal->uid);
	waiters_refuse(removal->control, &removal->waiters, why, NULL);
	removal_free(removal);
}

void
removal_on_gone(struct removal *removal)
{
	removal_end(removal, NULL);
}

/* --- the steps --- */

/* Looks again after a pause, which grows. */
static void
look_later(struct removal *removal, int64_t *pause_ms)
{
	struct timeval tv = clock_tv(*pause_ms);

	event_add(removal->timer, &tv);
	*pause_ms = *pause_ms * 2 < CHECK_LAST_MS ? *pause_ms * 2 : CHECK_LAST_MS;
}

static void
wait_for_end(struct removal *removal)
{
	look_later(removal, &removal->pause_ms);
}

static void
on_deleted(const struct kube_answer *answer, void *arg)
{
	struct removal *removal = arg;

	removal->call = NULL;
	if (control_is_missing(answer))
		removal_end(removal, NULL);
	else if (answer->http_status == 409) /* the name is another's by now, or it changed in this moment */
		look_later(removal, &removal->conflict_ms);
	else if (answer->why != NULL)
		removal_end(removal, answer->why);
	else
		wait_for_end(removal);
}

struct kube_call *
removal_delete_pod(
	struct control *c, const char *id, const char *pod_uid, int64_t grace, kube_done_f *done, void *arg)
{
	AUTO_JSON struct json_object *options = pod_write_object();
	char name[POD_SPEC_NAME_SIZE];

	pod_write_text(pod_write_text(options, "apiVersion", "v1"), "kind", "DeleteOptions");
	pod_write_int(options, "gracePeriodSeconds", grace);
	pod_write_text(pod_write_in(options, "preconditions", pod_write_object()), "uid", pod_uid);
	pod_spec_name(id, name);
	return control_ask(c, KUBE_DELETE, CONTROL_PODS, name, options, done, arg);
}

static void
ask_delete(struct removal *removal)
{
	int64_t now = clock_boot_ms(), grace = removal->control->config->pod_grace_seconds;

	if (!claim_holds(removal->control->claim)) {
		removal_end(removal, claim_why(removal->control->claim));
		return;
	}
	if (removal->force_ms == 0)
		removal->force_ms = now + grace * 1000 + FORCE_MS;
	else if (now >= removal->force_ms)
		grace = 0;
	removal->call = removal_delete_pod(
		removal->control, removal->id, removal->pod_uid, grace, on_deleted, removal);
}

static void
on_looked(const struct kube_answer *answer, void *arg)
{
	struct removal *removal = arg;
	struct pod_status status = { 0 };

	removal->call = NULL;
	if (answer->body != NULL && answer->why == NULL)
		pod_status_read(answer->body, NULL, clock_boot_ms(), &status);
	if (answer->why != NULL && !control_is_missing(answer)) {
		removal_end(removal, answer->why);
		return;
	}
	if (strcmp(status.uid, removal->uid) != 0 || strcmp(status.id, removal->id) != 0 ||
		(removal->pod_uid[0] != '\0' && strcmp(removal->pod_uid, status.pod_uid) != 0)) {
		removal_end(removal, NULL);
		return;
	}
	memcpy(removal->pod_uid, status.pod_uid, sizeof removal->pod_uid);
	if (removal->force_ms == 0 || status.phase != POD_GOING || clock_boot_ms() >= removal->force_ms)
		ask_delete(removal);
	else
		wait_for_end(removal);
}

static void
ask_look(struct removal *removal)
{
	char name[POD_SPEC_NAME_SIZE];

	pod_spec_name(removal->id, name);
	removal->call = control_ask(removal->control, KUBE_GET, CONTROL_PODS, name, NULL, on_looked, removal);
}

static void
on_time(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	ask_look(arg);
}

void
removal_go(struct removal *removal, const char *pod_uid)
{
	const struct pod *pod = pods_find(removal->control, removal->id, removal->uid);

	if (pod != NULL)
		pod_uid = pod->status.pod_uid;
	snprintf(removal->pod_uid, sizeof removal->pod_uid, "%s", pod_uid);
	if (pod_uid[0] != '\0')
		ask_delete(removal);
	else
		ask_look(removal);
}

/* --- a request --- */

static struct removal *
removal_new(struct control *c, const char *id, const char *uid)
{
	struct removal *removal = alloc_zero(1, sizeof *removal);

	removal->control = c;
	removal->pause_ms = CHECK_FIRST_MS;
	removal->conflict_ms = CONFLICT_FIRST_MS;
	removal->timer = must_alloc(event_new(c->base, -1, 0, on_time, removal));
	snprintf(removal->id, sizeof removal->id, "%s", id);
	snprintf(removal->uid, sizeof removal->uid, "%s", uid);
	STAILQ_INIT(&removal->waiters);
	id_map_add(c->removals, removal->uid, removal);
	return removal;
}

void
removal_ask(struct control *c, const char *id, const char *uid, uint64_t peer, uint64_t seq)
{
	struct removal *removal = id_map_find(c->removals, uid);
	struct order *order = id_map_find(c->orders, uid);
	char pod_uid[ORDER_POD_UID_SIZE] = "";
	bool made = true;

	destroyed_add(c->destroyed, uid);
	if (removal != NULL) {
		waiters_add(&removal->waiters, peer, seq);
		return;
	}
	removal = removal_new(c, id, uid);
	waiters_add(&removal->waiters, peer, seq);
	if (order != NULL && !order_abandon(order, pod_uid, &made))
		return;
	if (made)
		removal_go(removal, pod_uid);
	else
		removal_end(removal, NULL);
	orders_start(c);
}

void
removals_free_all(struct control *c)
{
	AUTO_FREE void **removals = id_map_all(c->removals);
	struct waiter *waiter;

	for (size_t i = 0; removals[i] != NULL; i++) {
		struct removal *removal = removals[i];

		while ((waiter = STAILQ_FIRST(&removal->waiters)) != NULL) {
			STAILQ_REMOVE_HEAD(&removal->waiters, link);
			free(waiter);
		}
		removal_free(removal);
	}
}
