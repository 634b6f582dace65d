/*
 * order_make.c - what the API server is asked for: the pod, then its policy.
 *
 * The namespace denies everything before the first pod is asked for (ground.c); what a sandbox with a network may reach is
 * owned by its pod, so it comes after it, and before anybody hears that the sandbox is there.
 */
/* SPDX-License-Identifier: MIT */
#include "controller/order.h"

#include "base/clock.h"
#include "base/json.h"
#include "controller/claim.h"
#include "controller/ground.h"
#include "controller/pod_policy.h"
#include "controller/pod_read.h"
#include "controller/pod_spec.h"
#include "controller/pod_status.h"
#include "controller/pod_write.h"
#include "controller/pods.h"
#include "controller/removal.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

/* --- the pod --- */

static void ask_look(struct order *order);

/* It is ours and there. */
static void
adopt(struct order *order, struct json_object *pod)
{
	pod_read_copy(pod_read_object(pod, "metadata"), "uid", order->pod_uid, sizeof order->pod_uid);
	order->open = order->spec.block_network;
	pods_learn(order->control, pod);
	order_make(order);
}

/* Is it an object of that name at all? */
static bool
shows_pod(const struct order *order, const struct kube_answer *answer, struct pod_status *ret_status)
{
	char name[POD_SPEC_NAME_SIZE];

	if (answer->why != NULL || answer->body == NULL)
		return false;
	pod_spec_name(order->spec.id, name);
	pod_status_read(answer->body, NULL, clock_boot_ms(), ret_status);
	return strcmp(ret_status->name, name) == 0 && ret_status->pod_uid[0] != '\0';
}

static bool
is_meant(const struct order *order, const struct pod_status *status)
{
	return strcmp(status->id, order->spec.id) == 0 && strcmp(status->uid, order->spec.uid) == 0;
}

static void
judge_standing(struct order *order, struct json_object *pod, const struct pod_status *status)
{
	struct err err;

	if (is_meant(order, status)) {
		adopt(order, pod);
	} else if (strcmp(status->id, order->spec.id) != 0) {
		order_fail(order, ERR_CONFLICT,
			"the cluster has a pod %s that is no sandbox of ours: remove it, or choose another "
			"sandbox_id",
			status->name);
	} else {
		err_set(&err, ERR_EXISTS, "sandbox %s is there already, as another one", order->spec.id);
		order_end(order, &err, status->uid);
	}
}

static void
on_looked(const struct kube_answer *answer, void *arg)
{
	struct order *order = arg;
	struct pod_status status;
	struct err err;

	order->call = NULL;
	if (shows_pod(order, answer, &status)) {
		judge_standing(order, answer->body, &status);
	} else if (control_is_missing(answer)) {
		order->posted = false;
		err_set(&err, ERR_UNAVAILABLE, "the API server did not make the pod; it is asked again");
		order_pause(order, &err, -1);
	} else if (control_is_final(answer)) {
		order_end(order, answer->why, NULL);
	} else {
		err_set(&err, ERR_UNAVAILABLE, "the answer has no pod in it");
		order_pause(order, answer->why != NULL ? answer->why : &err, answer->retry_after_ms);
	}
}

static void
ask_look(struct order *order)
{
	char name[POD_SPEC_NAME_SIZE];

	pod_spec_name(order->spec.id, name);
	order->call = control_ask(order->control, KUBE_GET, CONTROL_PODS, name, NULL, on_looked, order);
}

/* Its removal has waited for what became of the pod. */
static void
hand_over(struct order *order, struct json_object *pod)
{
	struct control *c = order->control;
	struct removal *removal = id_map_find(c->removals, order->spec.uid);
	char pod_uid[ORDER_POD_UID_SIZE] = "";

	if (pod != NULL)
		pod_read_copy(pod_read_object(pod, "metadata"), "uid", pod_uid, sizeof pod_uid);
	order_free(order);
	if (removal != NULL)
		removal_go(removal, pod_uid);
	orders_start(c);
}

/* What came of it cannot be told from others', and is gone again. */
static void
on_unknowable_deleted(const struct kube_answer *answer, void *arg)
{
	struct order *order = arg;
	const char *what =
		"the cluster changed the labels app, sandbox-id or sandbox-uid of its pod, by which it is "
		"known: has it a webhook that does?";
	struct err err;

	order->call = NULL;
	order->posting = false;
	if (answer->why != NULL && !control_is_missing(answer))
		err_set(&err, ERR_CONFLICT, "%s And it could not be deleted: %s", what, answer->why->msg);
	else
		err_set(&err, ERR_CONFLICT, "%s", what);
	if (order->doomed)
		hand_over(order, NULL);
	else
		order_end(order, &err, NULL);
}

static void
on_posted(const struct kube_answer *answer, void *arg)
{
	struct order *order = arg;
	struct pod_status status;

	order->call = NULL;
	order->posting = false;
	if (order->doomed) {
		hand_over(order, answer->why == NULL ? answer->body : NULL);
	} else if (shows_pod(order, answer, &status) && is_meant(order, &status)) {
		adopt(order, answer->body);
	} else if (shows_pod(order, answer, &status)) {
		/* No watch, no list and no removal would find it. */
		order->posting = true;
		order->call = removal_delete_pod(
			order->control, order->spec.id, status.pod_uid, 0, on_unknowable_deleted, order);
	} else if (strcmp(answer->reason, "AlreadyExists") == 0 || answer->why == NULL) {
		order->posted = true;
		ask_look(order);
	} else if (control_is_final(answer) && !answer->maybe_done) {
		/* Perhaps its namespace is not there any more. */
		if (answer->http_status == 403 || control_is_missing(answer))
			ground_doubt(order->control->ground);
		order_end(order, answer->why, NULL);
	} else {
		order->posted = order->posted || answer->maybe_done;
		order_pause(order, answer->why, answer->retry_after_ms);
	}
}

static struct json_object *
labels_of(const struct spawn_create *spec)
{
	struct err err;

	return spec->labels[0] != '\0' ? json_parse(spec->labels, strlen(spec->labels), &err) : NULL;
}

static void
ask_pod(struct order *order)
{
	AUTO_JSON struct json_object *labels = labels_of(&order->spec);
	struct pod_order wanted = {
		.create = &order->spec, .env = order->env, .tenant = order->spec.tenant, .labels = labels
	};
	AUTO_JSON struct json_object *pod = NULL;
	struct err err;

	if (pod_spec_make(order->control->spec, &wanted, &pod, &err) != 0) {
		order_end(order, &err, NULL);
		return;
	}
	order->posting = true;
	order->call = control_ask(order->control, KUBE_POST,
		pod_spec_has_template(order->control->spec) ? CONTROL_STRICT_PODS : CONTROL_PODS, NULL, pod,
		on_posted, order);
}

/* --- the policy --- */

static void ask_policy(struct order *order);

static void
policy_failed(struct order *order, const struct kube_answer *answer)
{
	struct err err = *answer->why;

	err_prefix(&err, "its network policy");
	if (control_is_final(answer) && !control_is_missing(answer))
		order_end(order, &err, NULL);
	else
		order_pause(order, &err, answer->retry_after_ms);
}

static void
on_policy_stands(const struct kube_answer *answer, void *arg)
{
	struct order *order = arg;

	order->call = NULL;
	if (answer->why != NULL) {
		policy_failed(order, answer);
		return;
	}
	order->open = true;
	order_make(order);
}

/* An earlier sandbox of this id left it, or an earlier try of this one made it. */
static void
on_policy_seen(const struct kube_answer *answer, void *arg)
{
	struct order *order = arg;
	struct control *c = order->control;
	AUTO_JSON struct json_object *wanted = pod_policy_allow(c->config, &order->spec, order->pod_uid);
	struct json_object *metadata = pod_read_object(wanted, "metadata");

	order->call = NULL;
	if (answer->why != NULL) {
		policy_failed(order, answer);
	} else if (pod_policy_equal(answer->body, wanted)) {
		on_policy_stands(answer, order);
	} else {
		pod_write_text(metadata, "resourceVersion",
			pod_read_text(pod_read_object(answer->body, "metadata"), "resourceVersion"));
		order->call = control_ask(c, KUBE_PUT, CONTROL_POLICIES, pod_read_text(metadata, "name"), wanted,
			on_policy_stands, order);
	}
}

static void
on_policy_posted(const struct kube_answer *answer, void *arg)
{
	struct order *order = arg;
	char name[POD_SPEC_NAME_SIZE];

	if (answer->why == NULL || strcmp(answer->reason, "AlreadyExists") != 0) {
		on_policy_stands(answer, order);
		return;
	}
	pod_spec_name(order->spec.id, name);
	order->call = control_ask(order->control, KUBE_GET, CONTROL_POLICIES, name, NULL, on_policy_seen, order);
}

static void
ask_policy(struct order *order)
{
	struct control *c = order->control;
	AUTO_JSON struct json_object *policy = pod_policy_allow(c->config, &order->spec, order->pod_uid);

	order->call = control_ask(c, KUBE_POST, CONTROL_POLICIES, NULL, policy, on_policy_posted, order);
}

void
order_make(struct order *order)
{
	bool whole = order->pod_uid[0] != '\0' && order->open;

	if (!whole && !claim_holds(order->control->claim)) {
		order_pause(order, claim_why(order->control->claim), -1);
		return;
	}
	if (order->pod_uid[0] == '\0' && order->posted)
		ask_look(order);
	else if (order->pod_uid[0] == '\0')
		ask_pod(order);
	else if (!order->open)
		ask_policy(order);
	else
		order_wait(order);
}
