/*
 * idempotency.h - an Idempotency-Key, and what makes two requests the same.
 *
 * Two bodies are the same when they are the same JSON: order of members, white space
 * and members that are null do not count. Settings do not come in: a reload
 * changes no digest.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_DOMAIN_IDEMPOTENCY_H
#define ORCHARD_DOMAIN_IDEMPOTENCY_H

#include "base/text.h"

enum { IDEMPOTENCY_KEY_MAX = 255 };

struct json_object;

struct idempotency_key {
	const char *name; /* as the client sent it; borrowed */
	char digest[TEXT_SHA256_HEX_SIZE];
};

/* skipped: members of the body that say nothing about what is asked for; NULL behind the last. */
void idempotency_digest(const char *route, const char *id, struct json_object *body, const char *const *skipped,
	char ret_digest[TEXT_SHA256_HEX_SIZE]);

#endif
