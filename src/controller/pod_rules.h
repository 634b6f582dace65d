/* pod_rules.h - settings about pods that are small languages of their own: labels, tolerations, paths. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CONTROLLER_POD_RULES_H
#define ORCHARD_CONTROLLER_POD_RULES_H

#include "base/cleanup.h"

struct config;
struct config_list;
struct err;
struct json_object;

/* Checks every setting that pods are made of but the template; ERR_INVALID names it. */
int pod_rules_check(const struct config *config, struct err *err) MUSTCHECK;

/* A list of "name=value": ERR_INVALID when it is none that Kubernetes takes for labels. */
int pod_rules_check_labels(const char *setting, const struct config_list *list, struct err *err) MUSTCHECK;

/* What has been checked, as the cluster has it: an object of names and values. Owned by the caller. */
struct json_object *pod_rules_labels(const struct config_list *list);
/* The same for pod_tolerations: an array. */
struct json_object *pod_rules_tolerations(const struct config *config);

#endif
