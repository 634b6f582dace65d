/*
 * node_sum.h - what the nodes have and the sandboxes' pods ask of it: the answer of GET /resources.
 *
 * Counted are the nodes that pod_node_selector names. Those that are not ready or take no new pods have capacity, but nothing
 * to give. Pods that have ended ask for nothing.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CONTROLLER_NODE_SUM_H
#define ORCHARD_CONTROLLER_NODE_SUM_H

struct config;
struct json_object;
struct node_sum;

/* Settings that pod_rules_check() has passed. Nodes and pods are then given in any order, each once. */
struct node_sum *node_sum_create(const struct config *config);
void node_sum_free(struct node_sum *sum);
void node_sum_node(struct node_sum *sum, struct json_object *node);
/* A pod that has not our labels is left out. */
void node_sum_pod(struct node_sum *sum, struct json_object *pod);

/* Those of before do not count: they are given anew. */
void node_sum_drop_nodes(struct node_sum *sum);
void node_sum_drop_pods(struct node_sum *sum);

/* As docs/rest-api.md has it; owned by the caller. */
struct json_object *node_sum_json(const struct node_sum *sum);

#endif
