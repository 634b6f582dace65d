/*
 * host.h - from where this server's sandboxes can be reached, as others are told.
 *
 * Its host's boot id; of pods, which every server of the cluster reaches, a word that all of them have in common.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CLUSTER_HOST_H
#define ORCHARD_CLUSTER_HOST_H

#include "base/id.h"

struct config;

void cluster_host(const struct config *config, char ret_host[ID_UUID_SIZE]);

#endif
