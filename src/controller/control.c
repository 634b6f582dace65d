/* control.c - requests as all parts send them, and answers to peers. */
/* SPDX-License-Identifier: MIT */
#include "controller/control.h"

#include "base/alloc.h"
#include "conf/config.h"
#include "spawn/peer.h"
#include "spawn/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RETRY_AFTER_MAX_MS = 60000 };

char *
control_path(const struct control *c, enum control_kind kind, const char *name)
{
	AUTO_FREE char *space = kube_escape(c->config->sandbox_namespace);
	AUTO_FREE char *uid = kind == CONTROL_EVENTS ? kube_escape(name) : NULL;
	const char *slash = name != NULL ? "/" : "";

	name = name != NULL ? name : "";
	switch (kind) {
	case CONTROL_NAMESPACES:
		return alloc_format("/api/v1/namespaces%s%s", slash, name);
	case CONTROL_PODS:
		return alloc_format("/api/v1/namespaces/%s/pods%s%s", space, slash, name);
	case CONTROL_STRICT_PODS:
		return alloc_format("/api/v1/namespaces/%s/pods?fieldValidation=Strict", space);
	case CONTROL_NODES:
		return alloc_format("/api/v1/nodes%s%s", slash, name);
	case CONTROL_EVENTS:
		return alloc_format("/api/v1/namespaces/%s/"
				    "events?fieldSelector=involvedObject.uid%%3D%s%%2Ctype%%3DWarning&limit=500",
			space, uid);
	case CONTROL_LEASES:
		return alloc_format("/apis/coordination.k8s.io/v1/namespaces/%s/leases%s%s", space, slash, name);
	case CONTROL_POLICIES:
		break;
	}
	return alloc_format("/apis/networking.k8s.io/v1/namespaces/%s/networkpolicies%s%s", space, slash, name);
}

/* A DELETE names the life it means, and a PUT the version it replaces: both may come twice. */
static enum kube_retry
retry_of(enum kube_method method)
{
	return method == KUBE_GET     ? KUBE_RETRY_READ
		: method == KUBE_POST ? KUBE_RETRY_NEVER
				      : KUBE_RETRY_IDEMPOTENT;
}

struct kube_call *
control_ask(struct control *c, enum kube_method method, enum control_kind kind, const char *name,
	struct json_object *body, kube_done_f *done, void *arg)
{
	AUTO_FREE char *path = control_path(c, kind, name);
	struct kube_request request = { .method = method, .path = path, .body = body, .retry = retry_of(method) };
	struct kube_call *call;
	struct err err;

	/* Only of a path that is none, and each of ours is one. */
	if (kube_call_start(c->client, &request, done, arg, &call, &err) != 0)
		abort();
	return call;
}

bool
control_is_final(const struct kube_answer *answer)
{
	switch (answer->http_status) {
	case 401: /* credentials are renewed */
	case 408:
	case 409: /* somebody else was quicker: look */
	case 429:
		return false;
	default:
		return answer->why != NULL && answer->http_status >= 400 && answer->http_status < 500;
	}
}

bool
control_is_missing(const struct kube_answer *answer)
{
	return answer->http_status == 404;
}

int64_t
control_pause_ms(int64_t pause_ms, int64_t retry_after_ms)
{
	if (retry_after_ms <= pause_ms)
		return pause_ms;
	return retry_after_ms < RETRY_AFTER_MAX_MS ? retry_after_ms : RETRY_AFTER_MAX_MS;
}

void
waiters_add(struct waiters *waiters, uint64_t peer, uint64_t seq)
{
	struct waiter *waiter = alloc_zero(1, sizeof *waiter);

	waiter->peer = peer;
	waiter->seq = seq;
	STAILQ_INSERT_TAIL(waiters, waiter, link);
}

void
waiters_refuse(struct control *c, struct waiters *waiters, const struct err *why, const char *other_uid)
{
	struct waiter *waiter;
	struct spawn_reply reply;

	while ((waiter = STAILQ_FIRST(waiters)) != NULL) {
		spawn_reply_fill(&reply, SPAWN_DONE, waiter->seq, why);
		if (other_uid != NULL)
			snprintf(reply.other_uid, sizeof reply.other_uid, "%s", other_uid);
		peers_send(c->peers, waiter->peer, &reply, sizeof reply);
		STAILQ_REMOVE_HEAD(waiters, link);
		free(waiter);
	}
}

void
control_reply(struct control *c, uint64_t peer, uint64_t seq, const struct err *why)
{
	struct spawn_reply reply;

	spawn_reply_fill(&reply, SPAWN_DONE, seq, why);
	peers_send(c->peers, peer, &reply, sizeof reply);
}
