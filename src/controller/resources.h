/*
 * resources.h - GET /resources on a cluster: all nodes and pods, listed when somebody asks.
 *
 * One round of lists serves all who ask meanwhile, and those who ask soon after.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CONTROLLER_RESOURCES_H
#define ORCHARD_CONTROLLER_RESOURCES_H

#include <stdint.h>

struct control;
struct resources;

struct resources *resources_create(struct control *c);
void resources_free(struct resources *resources); /* NULL is fine */

/* Answers SPAWN_RESOURCES, now or later. */
void resources_ask(struct resources *resources, uint64_t peer, uint64_t seq);

#endif
