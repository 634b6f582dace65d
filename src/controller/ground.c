/* ground.c - namespace, claim, then policy, then again after a while. */
/* SPDX-License-Identifier: MIT */
#include "controller/ground.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "conf/config.h"
#include "controller/claim.h"
#include "controller/control.h"
#include "controller/orders.h"
#include "controller/pod_policy.h"
#include "controller/pod_read.h"
#include "controller/pod_write.h"

#include <event2/event.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

enum { PAUSE_FIRST_MS = 500, PAUSE_LAST_MS = 15000, RECHECK_MS = 15000, DOUBT_MS = 1000 };

struct ground {
	struct control *control;
	char *server_namespace; /* NULL: not a pod */
	struct kube_call *call;
	struct event *timer;
	int64_t pause_ms;
	bool has_space; /* the namespace is there */
	bool stands;
	bool doubt; /* since it was last looked at */
	int64_t looked_ms; /* when that was */
	bool troubled, refused; /* problem says why; refused: it stays so until somebody changes something */
	struct err problem;
};

static void ask_policy(struct ground *ground);

static void
again_in(struct ground *ground, int64_t ms)
{
	struct timeval tv = clock_tv(ms);

	event_add(ground->timer, &tv);
}

static void
trouble(struct ground *ground, const struct kube_answer *answer, const char *what, const char *cure)
{
	struct err before = ground->problem;

	if (answer->why != NULL)
		ground->problem = *answer->why;
	else
		err_set(&ground->problem, ERR_UNAVAILABLE, "the API server gave no object");
	err_prefix(
		&ground->problem, "%s%s%s%s", what, cure[0] != '\0' ? " (" : "", cure, cure[0] != '\0' ? ")" : "");
	if (!ground->troubled || strcmp(before.msg, ground->problem.msg) != 0)
		log_error("no pods can be made: %s", ground->problem.msg);
	ground->troubled = true;
	ground->refused = control_is_final(answer);
	if (ground->refused)
		orders_refuse(ground->control, &ground->problem);
	again_in(ground, control_pause_ms(ground->pause_ms, answer->retry_after_ms));
	ground->pause_ms = ground->pause_ms * 2 < PAUSE_LAST_MS ? ground->pause_ms * 2 : PAUSE_LAST_MS;
}

static void
all_is_well(struct ground *ground)
{
	if (ground->troubled)
		log_info("the namespace and its policy stand: pods can be made");
	ground->stands = true;
	ground->troubled = ground->refused = false;
	ground->pause_ms = PAUSE_FIRST_MS;
	again_in(ground, ground->doubt ? DOUBT_MS : RECHECK_MS);
	orders_start(ground->control);
}

/* --- the policy --- */

static void
on_policy_written(const struct kube_answer *answer, void *arg)
{
	struct ground *ground = arg;

	ground->call = NULL;
	if (answer->why == NULL)
		all_is_well(ground);
	else if (strcmp(answer->reason, "AlreadyExists") == 0)
		ask_policy(ground);
	else
		trouble(ground, answer,
			"the policy " POD_POLICY_DEFAULT_NAME " that denies everything cannot be set", "");
}

static void
on_policy_seen(const struct kube_answer *answer, void *arg)
{
	struct ground *ground = arg;
	struct control *c = ground->control;
	AUTO_JSON struct json_object *wanted = pod_policy_default(c->config, ground->server_namespace);

	ground->call = NULL;
	if (!claim_holds(c->claim)) {
		again_in(ground, RECHECK_MS);
	} else if (control_is_missing(answer)) {
		ground->stands = false;
		ground->call = control_ask(c, KUBE_POST, CONTROL_POLICIES, NULL, wanted, on_policy_written, ground);
	} else if (answer->why != NULL) {
		trouble(ground, answer, "network policies cannot be read", "");
	} else if (pod_policy_equal(answer->body, wanted)) {
		all_is_well(ground);
	} else {
		log_warn("the policy " POD_POLICY_DEFAULT_NAME
			 " says something else than the settings: it is replaced");
		ground->stands = false;
		pod_write_text(pod_read_object(wanted, "metadata"), "resourceVersion",
			pod_read_text(pod_read_object(answer->body, "metadata"), "resourceVersion"));
		ground->call = control_ask(
			c, KUBE_PUT, CONTROL_POLICIES, POD_POLICY_DEFAULT_NAME, wanted, on_policy_written, ground);
	}
}

static void
ask_policy(struct ground *ground)
{
	ground->call = control_ask(
		ground->control, KUBE_GET, CONTROL_POLICIES, POD_POLICY_DEFAULT_NAME, NULL, on_policy_seen, ground);
}

void
ground_go(struct ground *ground)
{
	ground->stands = false;
	if (ground->has_space && ground->call == NULL)
		ask_policy(ground);
}

/* --- the namespace --- */

/* Who has it comes first. */
static void
has_space(struct ground *ground)
{
	struct claim *claim = ground->control->claim;

	ground->has_space = true;
	claim_begin(claim);
	if (claim_holds(claim))
		ask_policy(ground);
	else
		again_in(ground, RECHECK_MS);
}

static void
on_space_made(const struct kube_answer *answer, void *arg)
{
	struct ground *ground = arg;

	ground->call = NULL;
	if (answer->why != NULL && strcmp(answer->reason, "AlreadyExists") != 0) {
		trouble(ground, answer, "the namespace of sandboxes does not exist and cannot be made",
			"make it with `kubectl create namespace`, or name another one in sandbox_namespace");
		return;
	}
	has_space(ground);
}

static void
make_space(struct ground *ground)
{
	AUTO_JSON struct json_object *space = pod_write_object();
	struct control *c = ground->control;

	pod_write_text(pod_write_text(space, "apiVersion", "v1"), "kind", "Namespace");
	pod_write_text(pod_write_in(space, "metadata", pod_write_object()), "name", c->config->sandbox_namespace);
	ground->call = control_ask(c, KUBE_POST, CONTROL_NAMESPACES, NULL, space, on_space_made, ground);
}

static void
on_space_seen(const struct kube_answer *answer, void *arg)
{
	struct ground *ground = arg;

	ground->call = NULL;
	if (control_is_missing(answer)) {
		ground->stands = false;
		make_space(ground);
	} else if (answer->why != NULL && answer->http_status != 403) {
		trouble(ground, answer, "the namespace of sandboxes cannot be read", "");
	} else {
		/* Who may not look may still work in it. */
		has_space(ground);
	}
}

static void
on_time(evutil_socket_t fd, short what, void *arg)
{
	struct ground *ground = arg;

	(void)fd;
	(void)what;
	if (ground->call != NULL)
		return;
	ground->doubt = false;
	ground->looked_ms = clock_boot_ms();
	if (ground->has_space && ground->stands && claim_holds(ground->control->claim))
		ask_policy(ground);
	else /* a claim that is lost may have gone with it */
		ground->call = control_ask(ground->control, KUBE_GET, CONTROL_NAMESPACES,
			ground->control->config->sandbox_namespace, NULL, on_space_seen, ground);
}

void
ground_doubt(struct ground *ground)
{
	int64_t wait_ms = ground->looked_ms + DOUBT_MS - clock_boot_ms();

	if (ground->doubt)
		return;
	ground->doubt = true;
	if (ground->stands && ground->call == NULL)
		again_in(ground, wait_ms > 0 ? wait_ms : 0);
}

struct ground *
ground_create(struct control *c, const char *server_namespace)
{
	struct ground *ground = alloc_zero(1, sizeof *ground);

	ground->control = c;
	ground->server_namespace = server_namespace != NULL ? alloc_string(server_namespace) : NULL;
	ground->pause_ms = PAUSE_FIRST_MS;
	ground->timer = must_alloc(event_new(c->base, -1, 0, on_time, ground));
	again_in(ground, 0);
	return ground;
}

void
ground_free(struct ground *ground)
{
	if (ground == NULL)
		return;
	if (ground->call != NULL)
		kube_call_cancel(ground->call);
	event_free(ground->timer);
	free(ground->server_namespace);
	free(ground);
}

bool
ground_stands(const struct ground *ground)
{
	return ground->stands;
}

const struct err *
ground_problem(const struct ground *ground)
{
	return ground->troubled ? &ground->problem : NULL;
}

const struct err *
ground_refusal(const struct ground *ground)
{
	return ground->refused ? &ground->problem : NULL;
}
