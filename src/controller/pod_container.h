/* pod_container.h - the containers of a pod, and the volumes that bring agent and tools into them. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CONTROLLER_POD_CONTAINER_H
#define ORCHARD_CONTROLLER_POD_CONTAINER_H

#include "base/cleanup.h"

struct config;
struct err;
struct json_object;
struct pod_order;

/* Adds "containers", "initContainers" and "volumes" to the spec of a pod. */
int pod_container_write(struct json_object *spec, const struct config *config, const struct pod_order *order,
	struct err *err) MUSTCHECK;

#endif
