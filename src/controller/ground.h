/*
 * ground.h - what must stand before the first pod does: the namespace, our claim to it, its policy that denies everything.
 *
 * It is made if it is missing, made right if it is another, and looked at again every 15 seconds, and when somebody
 * doubts it; no pod is made while it does not stand.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CONTROLLER_GROUND_H
#define ORCHARD_CONTROLLER_GROUND_H

#include <stdbool.h>

struct control;
struct err;
struct ground;

/* server_namespace: where this server runs as a pod; NULL: elsewhere. Begins at once. */
struct ground *ground_create(struct control *c, const char *server_namespace);
void ground_free(struct ground *ground); /* NULL is fine */

/* The namespace is ours, or ours again: its policy is looked at before anything stands. */
void ground_go(struct ground *ground);
/* It may have gone: looked at soon, at most once a second. */
void ground_doubt(struct ground *ground);

bool ground_stands(const struct ground *ground);
/* What is wrong with it, and the cure; NULL: nothing is known. */
const struct err *ground_problem(const struct ground *ground);
/* The same, if waiting will not help. */
const struct err *ground_refusal(const struct ground *ground);

#endif
