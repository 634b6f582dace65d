/*
 * removal.h - deletes, until the API server says that the pod is gone.
 *
 * A pod is only deleted with its labels saying that it is that life of that sandbox, and by its own uid: whoever has
 * taken the name meanwhile is left alone.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CONTROLLER_REMOVAL_H
#define ORCHARD_CONTROLLER_REMOVAL_H

#include "kube/kube_client.h"

#include <stdint.h>

struct control;
struct removal;

/* Begins it or joins the one of the same uid. id and uid are well-formed. */
void removal_ask(struct control *c, const char *id, const char *uid, uint64_t peer, uint64_t seq);
/* The order that made its pod knows now which it is; "": it doesn't. The removal may be gone afterwards. */
void removal_go(struct removal *removal, const char *pod_uid);
/* The watch has seen the end of its pod. The removal is gone afterwards. */
void removal_on_gone(struct removal *removal);
/* One request: that life of the pod, whatever its labels say. */
struct kube_call *removal_delete_pod(
	struct control *c, const char *id, const char *pod_uid, int64_t grace, kube_done_f *done, void *arg);
void removals_free_all(struct control *c);

#endif
