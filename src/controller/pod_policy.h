/*
 * pod_policy.h - who may connect to sandboxes, and where they may connect to, as NetworkPolicies.
 *
 * The namespace's own policy denies everything but what the servers ask of agents; a sandbox with a network gets one more
 * that its pod owns, so that it goes with the pod. Policies only add up, so the first must stand before any pod does.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CONTROLLER_POD_POLICY_H
#define ORCHARD_CONTROLLER_POD_POLICY_H

#include "base/cleanup.h"

#include <stdbool.h>

struct config;
struct err;
struct json_object;
struct spawn_create;

#define POD_POLICY_DEFAULT_NAME "orchard-default"

/* Checks the settings that policies are made of; ERR_INVALID names the setting. */
int pod_policy_check(const struct config *config, struct err *err) MUSTCHECK;

/*
 * The policy of sandbox_namespace. server_namespace: where the servers' pods run when orchestrator_namespace does not say;
 * NULL or "": not in the cluster, so agents are reached from agent_ingress_cidrs alone.
 */
struct json_object *pod_policy_default(const struct config *config, const char *server_namespace);

/* The policy of one sandbox that may use the network; named as its pod, owned by it. */
struct json_object *
pod_policy_allow(const struct config *config, const struct spawn_create *create, const char *pod_uid);

/* Does what stands in the cluster say the same as wanted? Order, defaults and what the API server adds do not count. */
bool pod_policy_equal(struct json_object *standing, struct json_object *wanted);

#endif
