/* key.h - the Idempotency-Key of a request that creates something. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_WORKER_KEY_H
#define ORCHARD_WORKER_KEY_H

#include "base/cleanup.h"

#include <stdbool.h>

struct idempotency_key;
struct request;

/*
 * False: the header is wrong, and the request has been answered. ret_key->name is NULL when there is none. skipped:
 * members of the body that do not make it another request, NULL behind the last; may be NULL.
 */
bool key_read(struct request *request, const char *const *skipped, struct idempotency_key *ret_key) MUSTCHECK;

#endif
