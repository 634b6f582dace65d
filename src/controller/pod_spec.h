/*
 * pod_spec.h - the pod of a sandbox, as JSON: what was asked, what the settings say, and the operator's template over both.
 *
 * A pod is made so that its agent is PID 1 of the container "sandbox", reachable at POD_SPEC_PORT, with the SHA-256 of its
 * token alone. What a template says that would break this is refused when it is read, before any pod is made.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CONTROLLER_POD_SPEC_H
#define ORCHARD_CONTROLLER_POD_SPEC_H

#include "base/cleanup.h"

#include <stdbool.h>

struct config;
struct err;
struct json_object;
struct spawn_create;

enum { POD_SPEC_PORT = 9090, POD_SPEC_NAME_SIZE = 64 };

/* Labels of every pod and policy of ours; watches select by the first. */
#define POD_SPEC_LABEL_APP    "app"
#define POD_SPEC_APP          "sandbox"
#define POD_SPEC_SELECTOR     POD_SPEC_LABEL_APP "=" POD_SPEC_APP
#define POD_SPEC_LABEL_ID     "sandbox-id"
#define POD_SPEC_LABEL_UID    "sandbox-uid"
#define POD_SPEC_LABEL_TENANT "orchard/tenant"
#define POD_SPEC_LABEL_USER   "labels.orchard/" /* before the name of each label that the sandbox was given */
#define POD_SPEC_CONTAINER    "sandbox"

/* What the settings make of every pod; read once, borrows config. */
struct pod_spec;

/* ERR_INVALID names the setting, or the place in the template, and what is allowed. */
int pod_spec_create(const struct config *config, struct pod_spec **ret_spec, struct err *err) MUSTCHECK;
void pod_spec_free(struct pod_spec *spec);
bool pod_spec_has_template(const struct pod_spec *spec);

/* What is asked; all borrowed. */
struct pod_order {
	const struct spawn_create *create;
	const char *env; /* create->env_len bytes: NUL-terminated "NAME=value" strings */
	const char *tenant; /* NULL: not said */
	struct json_object *labels; /* the sandbox's own: string map, or NULL */
};

/* *ret_pod is owned by the caller. ERR_TOO_LARGE: more environment than a pod can carry. */
int pod_spec_make(const struct pod_spec *spec, const struct pod_order *order, struct json_object **ret_pod,
	struct err *err) MUSTCHECK;

/* "sandbox-ID". */
void pod_spec_name(const char *id, char ret_name[POD_SPEC_NAME_SIZE]);

#endif
