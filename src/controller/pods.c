/* pods.c - from events of the watch to what orders, removals and watchers hear. */
/* SPDX-License-Identifier: MIT */
#include "controller/pods.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "conf/config.h"
#include "controller/control.h"
#include "controller/ground.h"
#include "controller/orders.h"
#include "controller/pod_spec.h"
#include "controller/removal.h"
#include "ipc/spawn_msg.h"
#include "kube/kube_watch.h"
#include "spawn/peer.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The watch is seldom behind an answer by more; a question that got none is asked again. */
enum { LOOK_MS = 3000 };

static void
tell_watchers(struct control *c, const struct pod *pod, enum spawn_op what, const char *words)
{
	struct spawn_item item = { .head = { SPAWN_VERSION, what, 0 },
		.wait_status = -1,
		.oom_killed = pod->status.oom_killed,
		.alive = what == SPAWN_SILENT };

	memcpy(item.id, pod->status.id, sizeof item.id);
	memcpy(item.uid, pod->status.uid, sizeof item.uid);
	snprintf(item.reason, sizeof item.reason, "%.*s", (int)sizeof item.reason - 1, words);
	log_write(LOG_LEVEL_WARN, &(struct log_ctx){ .sandbox_id = item.id }, "sandbox %s: %s",
		what == SPAWN_GONE ? "has ended" : "may not answer", words);
	peers_broadcast(c->peers, &item, sizeof item);
}

static void
announce(struct control *c, struct pod *pod, const char *words)
{
	pod->told_gone = true;
	tell_watchers(c, pod, SPAWN_GONE, words);
}

static void
announce_silence(struct control *c, struct pod *pod)
{
	pod->told_silent = true;
	tell_watchers(c, pod, SPAWN_SILENT, pod->status.words);
}

static bool
has_ended(const struct pod *pod)
{
	return pod->status.phase == POD_FAILED || pod->status.phase == POD_GOING;
}

static const char *
words_of(const struct pod *pod)
{
	return pod->status.words[0] != '\0' ? pod->status.words : "its pod has ended";
}

/* Something about it is new. */
static void
judge(struct control *c, struct pod *pod)
{
	struct order *order = id_map_find(c->orders, pod->status.uid);

	if (id_map_find(c->removals, pod->status.uid) != NULL)
		return;
	if (order != NULL)
		order_on_pod(order, &pod->status);
	else if (has_ended(pod) && !pod->told_gone)
		announce(c, pod, words_of(pod));
	else if (pod->status.phase == POD_LOST && !pod->told_silent)
		announce_silence(c, pod);
	else if (pod->status.phase == POD_RUNNING)
		pod->told_silent = false;
}

static void
pod_free(struct pod *pod)
{
	if (pod->confirm != NULL)
		kube_call_cancel(pod->confirm);
	event_free(pod->look);
	id_map_remove(pod->control->pods, pod->status.id);
	free(pod);
}

/* The API server does not have it any more. */
static void
pod_gone(struct control *c, struct pod *pod)
{
	struct removal *removal = id_map_find(c->removals, pod->status.uid);
	struct order *order = id_map_find(c->orders, pod->status.uid);
	struct pod_status last = pod->status;

	if (last.phase != POD_GOING && last.phase != POD_FAILED)
		snprintf(last.words, sizeof last.words, "its pod was deleted by somebody else");
	last.phase = POD_GOING;
	/* With the namespace its policy goes, too. */
	if (removal == NULL)
		ground_doubt(c->ground);
	if (removal == NULL && order == NULL && !pod->told_gone)
		announce(c, pod, last.words[0] != '\0' ? last.words : words_of(pod));
	pod_free(pod);
	if (removal != NULL)
		removal_on_gone(removal);
	else if (order != NULL)
		order_on_pod(order, &last);
}

static void
look_later(struct pod *pod)
{
	struct timeval tv = clock_tv(LOOK_MS);

	event_add(pod->look, &tv);
}

static void on_look(evutil_socket_t fd, short what, void *arg);

/* NULL: not one that we would have made. */
static struct pod *
pod_of(struct control *c, const struct pod_status *status)
{
	struct pod *pod = id_map_find(c->pods, status->id);
	char name[POD_SPEC_NAME_SIZE];

	if (status->id[0] == '\0')
		return NULL;
	pod_spec_name(status->id, name);
	if (strcmp(name, status->name) != 0)
		return NULL;
	if (pod != NULL && strcmp(pod->status.pod_uid, status->pod_uid) != 0) {
		pod_gone(c, pod);
		pod = NULL;
	}
	if (pod == NULL) {
		pod = alloc_zero(1, sizeof *pod);
		pod->control = c;
		pod->known_ms = clock_boot_ms();
		pod->status = *status;
		pod->look = must_alloc(event_new(c->base, -1, 0, on_look, pod));
		id_map_add(c->pods, pod->status.id, pod);
	}
	return pod;
}

/* Its labels are its key, so they stay what they were when it was first seen. */
static void
pod_take(struct pod *pod, const struct pod_status *status)
{
	struct pod_status old = pod->status;

	pod->status = *status;
	memcpy(pod->status.id, old.id, sizeof old.id);
	memcpy(pod->status.uid, old.uid, sizeof old.uid);
}

static void
pod_news(struct control *c, struct pod *pod, struct json_object *object)
{
	struct pod_status status;

	pod_status_read(object, &pod->status, clock_boot_ms(), &status);
	pod_take(pod, &status);
	judge(c, pod);
}

static void confirm(struct pod *pod);

/* It has gone from what is watched. What nobody was seen to delete may still be there. */
static void
pod_left(struct control *c, struct pod *pod, const struct pod_status *status)
{
	bool going = status->phase == POD_GOING || id_map_find(c->removals, pod->status.uid) != NULL;

	pod_take(pod, status);
	if (going) {
		pod_gone(c, pod);
		return;
	}
	pod->left = true;
	confirm(pod);
}

static void
on_object(void *arg, enum kube_change change, struct json_object *object)
{
	struct control *c = arg;
	struct pod_status status;
	struct pod *pod;

	c->trouble_ms = 0;
	pod_status_read(object, NULL, clock_boot_ms(), &status);
	pod = id_map_find(c->pods, status.id);
	if (change == KUBE_DELETED) {
		if (pod != NULL && strcmp(pod->status.pod_uid, status.pod_uid) == 0)
			pod_left(c, pod, &status);
		return;
	}
	/* An answer was quicker than the watch, which has not come to the life that the answer showed. */
	if (pod != NULL && !pod->seen && strcmp(pod->status.pod_uid, status.pod_uid) != 0)
		return;
	pod = pod_of(c, &status);
	if (pod == NULL)
		return;
	pod->seen = true;
	pod->left = false;
	pod->round = c->round;
	pod_news(c, pod, object);
}

static void
on_reset(void *arg)
{
	struct control *c = arg;

	c->round++;
	c->listing = true;
}

/* It runs on, and no list and no watch shows it. As one that has failed it is deleted, by its uid. */
static void
pod_lost_labels(struct control *c, struct pod *pod)
{
	pod->left = false;
	pod->status.phase = POD_FAILED;
	snprintf(pod->status.words, sizeof pod->status.words,
		"somebody changed the labels app, sandbox-id or sandbox-uid of its pod, by which it is known");
	judge(c, pod);
}

/* What the watch has told may be newer than this answer, so of a pod that it knows only the being there counts. */
static void
on_confirmed(const struct kube_answer *answer, void *arg)
{
	struct pod *pod = arg;
	struct control *c = pod->control;
	struct pod_status status = { 0 };

	pod->confirm = NULL;
	if (answer->body != NULL && answer->why == NULL)
		pod_status_read(answer->body, NULL, clock_boot_ms(), &status);
	if (control_is_missing(answer)) {
		pod_gone(c, pod);
	} else if (answer->why == NULL && strcmp(status.pod_uid, pod->status.pod_uid) != 0) {
		pod_gone(c, pod);
		pods_learn(c, answer->body);
	} else if (answer->why != NULL) {
		look_later(pod);
	} else if (strcmp(status.uid, pod->status.uid) != 0) {
		pod_lost_labels(c, pod);
	} else if (pod->left) {
		look_later(pod);
	} else if (!pod->seen) {
		look_later(pod);
		pod_news(c, pod, answer->body);
	} else if (pod->round != c->round) {
		log_warn("a list of pods left out %s, which is there", pod->status.name);
		pod->round = c->round;
	}
}

static void
confirm(struct pod *pod)
{
	if (pod->confirm == NULL)
		pod->confirm = control_ask(
			pod->control, KUBE_GET, CONTROL_PODS, pod->status.name, NULL, on_confirmed, pod);
}

static void
on_look(evutil_socket_t fd, short what, void *arg)
{
	struct pod *pod = arg;

	(void)fd;
	(void)what;
	if (!pod->seen || pod->left || pod->round != pod->control->round)
		confirm(pod);
}

static void
on_synced(void *arg)
{
	struct control *c = arg;
	AUTO_FREE void **pods = id_map_all(c->pods);

	c->synced = true;
	c->listing = false;
	c->trouble_ms = 0;
	for (size_t i = 0; pods[i] != NULL; i++) {
		struct pod *pod = pods[i];

		if (pod->round != c->round)
			confirm(pod);
	}
	orders_start(c);
}

static void
on_trouble(void *arg, const struct err *why)
{
	struct control *c = arg;

	int64_t now = clock_boot_ms();

	if (c->trouble_ms == 0 || now - c->trouble_ms >= TROUBLE_LASTS_MS) {
		log_warn("the watch of pods is interrupted, and tried again: %s", why->msg);
		c->trouble_since_ms = now;
	}
	c->trouble = *why;
	c->trouble_ms = now;
}

void
pods_watch(struct control *c)
{
	static const struct kube_watch_ops ops = {
		.reset = on_reset,
		.object = on_object,
		.synced = on_synced,
		.trouble = on_trouble,
	};
	AUTO_FREE char *path = control_path(c, CONTROL_PODS, NULL);

	c->watch = kube_watch_start(c->client, path, POD_SPEC_SELECTOR, &ops, c);
}

void
pods_free_all(struct control *c)
{
	AUTO_FREE void **pods = id_map_all(c->pods);

	for (size_t i = 0; pods[i] != NULL; i++)
		pod_free(pods[i]);
}

void
pods_learn(struct control *c, struct json_object *object)
{
	struct pod_status status;
	struct pod *pod;

	pod_status_read(object, NULL, clock_boot_ms(), &status);
	pod = id_map_find(c->pods, status.id);
	if (pod != NULL &&
		(strcmp(pod->status.pod_uid, status.pod_uid) == 0 || pod->status.created_ms > status.created_ms))
		return;
	pod = pod_of(c, &status);
	if (pod == NULL)
		return;
	pod->round = c->round;
	look_later(pod);
}

struct pod *
pods_find(const struct control *c, const char *id, const char *uid)
{
	struct pod *pod = id_map_find(c->pods, id);

	return pod != NULL && strcmp(pod->status.uid, uid) == 0 ? pod : NULL;
}

void
pods_forget(struct control *c, const char *id, const char *uid)
{
	struct pod *pod = pods_find(c, id, uid);

	if (pod != NULL)
		pod_free(pod);
}

void
pods_tell_all(struct control *c)
{
	AUTO_FREE void **pods = id_map_all(c->pods);

	for (size_t i = 0; pods[i] != NULL; i++) {
		struct pod *pod = pods[i];

		if (id_map_find(c->removals, pod->status.uid) != NULL ||
			id_map_find(c->orders, pod->status.uid) != NULL)
			continue;
		if (has_ended(pod))
			announce(c, pod, words_of(pod));
		else if (pod->status.phase == POD_LOST)
			announce_silence(c, pod);
	}
}
