/* answers.c - requests handed on, and what is known told. */
/* SPDX-License-Identifier: MIT */
#include "controller/answers.h"

#include "base/clock.h"
#include "base/id.h"
#include "controller/claim.h"
#include "controller/control.h"
#include "controller/ground.h"
#include "controller/orders.h"
#include "controller/pods.h"
#include "controller/removal.h"
#include "controller/resources.h"
#include "spawn/peer.h"
#include "spawn/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One break is none. */
enum { TROUBLE_COUNTS_MS = 5000 };

static void
on_create(const struct spawn_create *spec, const char *env, uint64_t peer, void *arg)
{
	orders_create(arg, spec, env, peer, spec->head.seq);
}

static void
on_destroy(const struct spawn_target *target, uint64_t peer, void *arg)
{
	struct control *c = arg;
	struct err err;

	if (id_is_sandbox_id(target->id) && id_is_uuid(target->uid)) {
		removal_ask(c, target->id, target->uid, peer, target->head.seq);
		return;
	}
	err_set(&err, ERR_INVALID, "sandbox id or uid is malformed");
	control_reply(c, peer, target->head.seq, &err);
}

static void
send_item(struct control *c, uint64_t peer, uint64_t seq, const struct pod *pod)
{
	struct spawn_item item = { .head = { SPAWN_VERSION, SPAWN_ITEM, seq },
		.known_ms = clock_boot_ms() - pod->known_ms,
		.wait_status = -1,
		.oom_killed = pod->status.oom_killed,
		.alive = pod->status.phase != POD_FAILED && pod->status.phase != POD_GOING };

	memcpy(item.id, pod->status.id, sizeof item.id);
	memcpy(item.uid, pod->status.uid, sizeof item.uid);
	snprintf(item.reason, sizeof item.reason, "%.*s", (int)sizeof item.reason - 1, pod->status.words);
	peers_send(c->peers, peer, &item, sizeof item);
}

/* Half of a list proves nothing, so there is none. */
static void
on_list(uint64_t peer, uint64_t seq, void *arg)
{
	struct control *c = arg;
	AUTO_FREE void **pods = NULL;
	struct err err;

	if (!c->synced || c->listing) {
		err_set(&err, ERR_UNAVAILABLE, "the pods of the cluster are being listed%s%s",
			c->trouble_ms != 0 ? ": " : "", c->trouble_ms != 0 ? c->trouble.msg : "");
		control_reply(c, peer, seq, &err);
		return;
	}
	if (!claim_holds(c->claim)) { /* whoever knows nothing of them would take them for lost ones */
		control_reply(c, peer, seq, claim_why(c->claim));
		return;
	}
	pods = id_map_all(c->pods);
	for (size_t i = 0; pods[i] != NULL; i++)
		send_item(c, peer, seq, pods[i]);
	control_reply(c, peer, seq, NULL);
}

static void
on_watch(uint64_t peer, uint64_t seq, void *arg)
{
	struct control *c = arg;

	(void)seq;
	peers_watch(c->peers, peer);
	pods_tell_all(c);
}

const char *
answers_problem(const struct control *c)
{
	const struct err *problem = claim_problem(c->claim);
	bool broken = c->trouble_ms != 0 && clock_boot_ms() - c->trouble_ms < TROUBLE_LASTS_MS &&
		c->trouble_ms - c->trouble_since_ms >= TROUBLE_COUNTS_MS;

	if (problem == NULL)
		problem = ground_problem(c->ground);
	if (problem != NULL)
		return problem->msg;
	if (c->trouble_ms != 0 && (broken || !c->synced))
		return c->trouble.msg;
	if (c->synced && !claim_holds(c->claim))
		return claim_why(c->claim)->msg;
	return c->synced && ground_stands(c->ground) ? "" : "the API server has not answered yet";
}

static void
on_host(uint64_t peer, uint64_t seq, void *arg)
{
	struct control *c = arg;
	struct spawn_host host = { .head = { SPAWN_VERSION, SPAWN_HOST_INFO, seq },
		.sandboxes = (uint32_t)id_map_count(c->pods),
		.creating = (uint32_t)id_map_count(c->orders) };

	snprintf(host.problem, sizeof host.problem, "%s", answers_problem(c));
	snprintf(host.cgroup_mode, sizeof host.cgroup_mode, "pods");
	host.usable = host.problem[0] == '\0';
	peers_send(c->peers, peer, &host, sizeof host);
}

static void
on_resources(uint64_t peer, uint64_t seq, void *arg)
{
	struct control *c = arg;

	resources_ask(c->resources, peer, seq);
}

/* Nodes keep images by rules of their own: what is to be there beforehand, a DaemonSet fetches. */
static void
on_prefetch(const struct spawn_prefetch *order, uint64_t peer, void *arg)
{
	control_reply(arg, peer, order->head.seq, NULL);
}

static void
on_refused(uint64_t peer, uint64_t seq, const struct err *why, void *arg)
{
	control_reply(arg, peer, seq, why);
}

int
answers_on_message(uint64_t peer, const void *data, size_t len, void *arg)
{
	static const struct spawn_server server = {
		.create = on_create,
		.destroy = on_destroy,
		.list = on_list,
		.host = on_host,
		.watch = on_watch,
		.resources = on_resources,
		.prefetch = on_prefetch,
		.refuse = on_refused,
	};

	return spawn_request_read(&server, peer, data, len, arg);
}
