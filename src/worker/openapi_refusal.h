/* openapi_refusal.h - every refusal of an operation, as responses of the description. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_WORKER_OPENAPI_REFUSAL_H
#define ORCHARD_WORKER_OPENAPI_REFUSAL_H

#include <stdbool.h>

struct json_object;
struct route;

/*
 * Gives the operation a response for each status that it can be refused with: what its "x-problems" names, and
 * what every route of its kind has. Each is made once, in responses, and referred to. words: code -> description.
 */
void openapi_add_refusals(struct json_object *operation, const struct route *route, struct json_object *words,
	struct json_object *responses);
/* Whether there is such a refusal, so that "x-problems" may name it. */
bool openapi_has_code(const char *code);

#endif
