/*
 * key_store.h - what an Idempotency-Key stands for: the request it came with, and the job or sandbox that is its answer.
 *
 * The first claim of a key stands until it expires or is given up, or makes room for a
 * new one some time after the end of what it stands for. Answers come by callback, as from job_store.h.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_BACKEND_KEY_STORE_H
#define ORCHARD_BACKEND_KEY_STORE_H

#include "base/cleanup.h"
#include "base/id.h"
#include "base/text.h"
#include "ipc/record_index.h"

#include <stdbool.h>

struct err;
struct json_object;
struct key_store;
struct record_log;

enum { KEY_CLAIM_ID_SIZE = 64 };

struct key_claim {
	char digest[TEXT_SHA256_HEX_SIZE]; /* of the request */
	char id[KEY_CLAIM_ID_SIZE]; /* of the job or the sandbox, whether or not it came to be */
	char sandbox_uid[ID_UUID_SIZE]; /* of a job: the life of the sandbox that it is for */
	double claimed_at; /* wall clock */
	struct json_object *answer; /* borrowed; of a sandbox that was made: what the client was told. NULL: none */
	struct record_location place; /* names this very claim */
	bool ended; /* what it stands for; read only */
	char home[ID_UUID_SIZE]; /* the server that has claimed it; "": this one, or it is shared with none */
};

/* claim is borrowed during the callback; NULL when there is none. why is NULL on success. */
typedef void key_store_f(const struct key_claim *claim, const struct err *why, void *arg);

/* log: opened with `keep`, and used for nothing else. */
struct key_store *key_store_create(struct record_log *log);
void key_store_free(struct key_store *store);
/* As of job_store.h. */
void key_store_flush(struct key_store *store);
void key_store_forget(struct key_store *store, const void *arg);
/* A claim as it is kept, without its place; what was read borrows its answer from the object. False: it is none. */
struct json_object *key_claim_json(const struct key_claim *claim);
bool key_claim_read(struct json_object *object, struct key_claim *ret_claim);
struct record_key key_store_key(const char *tenant, const char *name);

/* ERR_NOT_FOUND: nobody has claimed it. */
void key_store_get(struct key_store *store, const struct record_key *key, key_store_f *done, void *arg);
/* ERR_EXISTS, with the claim that was first. ERR_BUSY: as many keys are kept as may be, and none may go yet. */
void key_store_put(struct key_store *store, const struct record_key *key, const struct key_claim *claim,
	double expires_at, key_store_f *done, void *arg);
/* The same claim made anew, in the place of the one at claim->place. ERR_STALE: that is not there any more, or has ended. */
void key_store_renew(struct key_store *store, const struct record_key *key, const struct key_claim *claim,
	double expires_at, key_store_f *done, void *arg);
/* The claim made at place came to nothing: the key is free again. */
void key_store_give_up(struct key_store *store, const struct record_key *key, const struct record_location *place);
/* What the key stands for has ended: from now on it is known until then (not later than it was before). */
void key_store_settle(struct key_store *store, const struct record_key *key, double expires_at);

#endif
