/*
 * claim.c - looks at the Lease, takes it when it is free, renews it, gives it back.
 *
 * Its requests have a client of their own: a renewal must not wait behind a thousand creates.
 */
/* SPDX-License-Identifier: MIT */
#include "controller/claim.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "conf/config.h"
#include "controller/claim_rule.h"
#include "controller/control.h"
#include "controller/ground.h"
#include "controller/orders.h"
#include "kube/kube_client.h"
#include "master/replica_id.h"

#include <event2/event.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	RENEW_MS = 3000,
	AGAIN_MS = CLAIM_BLIND_MS - CLAIM_ATTEMPT_MS, /* after trouble; and while another has it */
	CONFLICT_MS = 100, /* somebody else has just written */
	UNUSABLE_MS = 60000, /* until it is tried whether it may be used by now */
	HOST_SIZE = 64
};

#define SHARED "servers-with-redis"

struct claim {
	struct control *control;
	struct kube_client *client;
	struct kube_call *call;
	struct event *timer;
	struct json_object *standing; /* as it was last seen; NULL: none, or look first */
	struct claim_sight sight;
	int64_t sent_ms; /* when what is under way was asked for */
	int64_t trusted_ms; /* ours until then */
	bool shared; /* with others, by Redis */
	bool unusable; /* we may not use Leases */
	bool proven; /* there is one, so to be refused it is no sign that there are none */
	struct err trouble; /* the last try's; ERR_NONE: it had none */
	bool begun, leaving, left;
	bool taken; /* another has it: problem says who */
	struct err problem;
	struct err doubt; /* as claim_why() has told it */
	char self[CLAIM_HOLDER_SIZE];
};

static void look(struct claim *claim);

/* After what is asked was sent, not after its answer: of one that is slow as much time is left as of a quick one. */
static void
again_in(struct claim *claim, int64_t ms)
{
	int64_t left_ms = claim->sent_ms + ms - clock_boot_ms();
	struct timeval tv = clock_tv(left_ms > 0 ? left_ms : 0);

	if (!claim->leaving)
		event_add(claim->timer, &tv);
}

static void
forget(struct claim *claim)
{
	if (claim->standing != NULL)
		json_object_put(claim->standing);
	claim->standing = NULL;
}

static void
see(struct claim *claim, struct json_object *lease)
{
	forget(claim);
	claim->standing = lease != NULL ? json_object_get(lease) : NULL;
	claim_rule_see(&claim->sight, lease, clock_boot_ms());
}

static void
ask(struct claim *claim, enum kube_method method, struct json_object *body, kube_done_f *done)
{
	AUTO_FREE char *path = control_path(
		claim->control, CONTROL_LEASES, method == KUBE_POST ? NULL : CLAIM_LEASE);
	struct kube_request request = { .method = method, .path = path, .body = body };
	struct err err;

	claim->sent_ms = clock_boot_ms();
	if (kube_call_start(claim->client, &request, done, claim, &claim->call, &err) != 0)
		abort();
}

/* --- what it comes to --- */

/* held: it was so before. */
static void
now_ours(struct claim *claim, bool held)
{
	if (claim->taken)
		log_info("the namespace %s is this server's now", claim->control->config->sandbox_namespace);
	claim->taken = false;
	if (held)
		return;
	ground_go(claim->control->ground);
	orders_start(claim->control);
}

static void
name_holder(struct claim *claim)
{
	const char *space = claim->control->config->sandbox_namespace, *holder = claim->sight.holder;

	if (claim->shared)
		err_set(&claim->problem, ERR_UNAVAILABLE,
			"the server %.100s, which has not our Redis, holds the namespace %.63s: each removes the "
			"other's pods; let it use Redis, or another sandbox_namespace",
			holder, space);
	else
		err_set(&claim->problem, ERR_UNAVAILABLE,
			"another server, %.100s, holds the namespace %.63s (its Lease " CLAIM_LEASE
			"), where this one makes and removes nothing: let both use Redis, give one another "
			"sandbox_namespace, or stop that one; this one takes over when it leaves, or when nothing "
			"was heard of it for %d s",
			holder, space, (int)(claim->sight.duration_ms / 1000));
}

static void
now_theirs(struct claim *claim)
{
	struct err before = claim->problem;

	claim->trusted_ms = 0;
	claim->unusable = false;
	claim->proven = true;
	claim->trouble.code = ERR_NONE;
	name_holder(claim);
	if (!claim->taken || strcmp(before.msg, claim->problem.msg) != 0)
		log_error("%s", claim->problem.msg);
	claim->taken = true;
	if (!claim->shared)
		orders_refuse(claim->control, &claim->problem);
	again_in(claim, AGAIN_MS);
}

/* What we have of it lasts as long as it does. */
static void
in_trouble(struct claim *claim, const struct err *why)
{
	if (claim->trouble.code == ERR_NONE)
		log_warn("the Lease " CLAIM_LEASE " of the namespace %s is tried again: %s",
			claim->control->config->sandbox_namespace, why->msg);
	claim->trouble = *why;
	again_in(claim, AGAIN_MS);
}

/*
 * We may not use it, or there is no such thing: all goes on as before there was one. But where there is one, others may
 * have it while it is refused to us: its namespace is just going, an API server is not quite up, a right was taken away.
 */
static void
now_unusable(struct claim *claim, const struct err *why)
{
	bool held = claim_holds(claim);

	if (claim->proven) {
		in_trouble(claim, why);
		return;
	}
	if (!claim->unusable)
		log_warn("no Lease guards the namespace %s, where a second server would remove this one's pods "
			 "(give the account the rights of k8s/base/rbac.yaml on leases): %s",
			claim->control->config->sandbox_namespace, why->msg);
	claim->unusable = true;
	forget(claim);
	again_in(claim, UNUSABLE_MS);
	now_ours(claim, held);
}

static void
refused(struct claim *claim, const struct kube_answer *answer)
{
	struct err none;

	err_set(&none, ERR_UNAVAILABLE, "the API server's answer is empty");
	if (control_is_final(answer))
		now_unusable(claim, answer->why);
	else
		in_trouble(claim, answer->why != NULL ? answer->why : &none);
}

/* --- requests --- */

static void
on_written(const struct kube_answer *answer, void *arg)
{
	struct claim *claim = arg;
	bool new = claim->standing == NULL, held = claim_holds(claim);

	claim->call = NULL;
	if (answer->why == NULL && answer->body != NULL) {
		see(claim, answer->body);
		claim->trusted_ms = claim->sent_ms + CLAIM_TRUST_MS;
		claim->unusable = false;
		claim->proven = true;
		claim->trouble.code = ERR_NONE;
		again_in(claim, RENEW_MS);
		if (!claim->leaving)
			now_ours(claim, held);
		return;
	}
	forget(claim);
	if (answer->http_status == 409 || (control_is_missing(answer) && !new))
		again_in(claim, CONFLICT_MS);
	else
		refused(claim, answer);
}

static void
take(struct claim *claim)
{
	struct json_object *lease = claim_rule_make(
		claim->standing, claim->control->config->sandbox_namespace, claim->self, clock_wall_us());

	ask(claim, claim->standing != NULL ? KUBE_PUT : KUBE_POST, lease, on_written);
	json_object_put(lease);
}

static void
on_seen(const struct kube_answer *answer, void *arg)
{
	struct claim *claim = arg;

	claim->call = NULL;
	if (claim->leaving)
		return;
	if (!control_is_missing(answer) && (answer->why != NULL || answer->body == NULL)) {
		refused(claim, answer);
		return;
	}
	see(claim, control_is_missing(answer) ? NULL : answer->body);
	if (claim_rule_owner(&claim->sight, claim->self, clock_boot_ms()) == CLAIM_THEIRS)
		now_theirs(claim);
	else
		take(claim);
}

static void
look(struct claim *claim)
{
	ask(claim, KUBE_GET, NULL, on_seen);
}

static void
on_time(evutil_socket_t fd, short what, void *arg)
{
	struct claim *claim = arg;

	(void)fd;
	(void)what;
	if (claim->call != NULL)
		return;
	if (claim->standing != NULL && !claim->shared && clock_boot_ms() < claim->trusted_ms)
		take(claim);
	else
		look(claim);
}

/* --- the end --- */

static void
on_left(const struct kube_answer *answer, void *arg)
{
	struct claim *claim = arg;

	claim->call = NULL;
	claim->left = true;
	if (answer->why != NULL)
		log_warn("the Lease " CLAIM_LEASE " could not be given back, and runs out by itself: %s",
			answer->why->msg);
}

static void
give_back(struct claim *claim)
{
	struct json_object *lease = claim_rule_make(
		claim->standing, claim->control->config->sandbox_namespace, "", clock_wall_us());

	ask(claim, KUBE_PUT, lease, on_left);
	json_object_put(lease);
}

bool
claim_leave(struct claim *claim)
{
	claim->leaving = true;
	event_del(claim->timer);
	if (claim->call != NULL || claim->left)
		return claim->left;
	if (claim->standing == NULL || claim->shared || clock_boot_ms() >= claim->trusted_ms)
		claim->left = true;
	else
		give_back(claim);
	claim->trusted_ms = 0;
	claim->unusable = false;
	return claim->left;
}

/* --- beginning and asking --- */

/* Its host's name is for people; the rest stays with state_dir, so that a server that is started anew goes on at once. */
static int
name_self(struct claim *claim, struct err *err)
{
	char host[HOST_SIZE] = "", id[ID_UUID_SIZE];

	if (claim->shared) {
		snprintf(claim->self, sizeof claim->self, SHARED);
		return 0;
	}
	if (replica_id_read(claim->control->config, id, err) != 0)
		return -1;
	if (gethostname(host, sizeof host - 1) != 0 || host[0] == '\0')
		snprintf(host, sizeof host, "orchard");
	snprintf(claim->self, sizeof claim->self, "%s_%s", host, id);
	return 0;
}

int
claim_create(struct control *c, struct kube_config *cluster, struct claim **ret_claim, struct err *err)
{
	const struct kube_options options = { .connect_ms = CLAIM_ATTEMPT_MS, .attempt_ms = CLAIM_ATTEMPT_MS };
	struct claim *claim = alloc_zero(1, sizeof *claim);

	claim->control = c;
	claim->shared = c->config->use_redis;
	claim->timer = must_alloc(event_new(c->base, -1, 0, on_time, claim));
	if (name_self(claim, err) != 0 ||
		kube_client_create(c->base, cluster, &options, &claim->client, err) != 0) {
		claim_free(claim);
		return -1;
	}
	*ret_claim = claim;
	return 0;
}

void
claim_free(struct claim *claim)
{
	if (claim == NULL)
		return;
	if (claim->call != NULL)
		kube_call_cancel(claim->call);
	kube_client_free(claim->client);
	event_free(claim->timer);
	forget(claim);
	free(claim);
}

void
claim_begin(struct claim *claim)
{
	if ((!claim->begun || claim->unusable) && !claim->leaving && claim->call == NULL)
		look(claim);
	claim->begun = true;
}

bool
claim_holds(const struct claim *claim)
{
	return claim->shared || claim->unusable || clock_boot_ms() < claim->trusted_ms;
}

const struct err *
claim_problem(const struct claim *claim)
{
	return claim->taken && !claim->shared ? &claim->problem : NULL;
}

const struct err *
claim_why(struct claim *claim)
{
	const char *space = claim->control->config->sandbox_namespace;
	bool troubled = claim->trouble.code != ERR_NONE;

	if (claim_problem(claim) != NULL)
		return claim_problem(claim);
	err_set(&claim->doubt, ERR_UNAVAILABLE, "%s the namespace %s is this server's%s%s%s",
		claim->trusted_ms == 0 ? "whether" : "the API server has not said for a while that", space,
		claim->trusted_ms == 0 ? " is being asked" : "", troubled ? ": " : "",
		troubled ? claim->trouble.msg : "");
	return &claim->doubt;
}
