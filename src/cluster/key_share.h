/*
 * key_share.h - what Idempotency-Keys stand for where servers share them: kept in Redis, and there alone.
 *
 * The same calls as of backend/key_store.h, with the same words and errors; besides ERR_UNAVAILABLE, after which it may
 * have been done or not. A claim's place names it here, too, and lies nowhere.
 *
 * What this process has said in the last minute it says again to another Redis, which may be a copy that lacks it.
 * Until every server has done so, a key that is not there may be another server's: it is ERR_UNAVAILABLE then.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CLUSTER_KEY_SHARE_H
#define ORCHARD_CLUSTER_KEY_SHARE_H

#include "backend/key_store.h"

#include <stdbool.h>
#include <stdint.h>

struct key_share;
struct redis;

struct key_share_options {
	struct redis *redis; /* all borrowed */
	const char *prefix;
	const char *replica;
	uint32_t deadline_ms;
};

struct key_share *key_share_new(const struct key_share_options *options);
/* Whoever waits is told ERR_UNAVAILABLE, now and from then on. */
void key_share_end(struct key_share *share);
void key_share_free(struct key_share *share);
/* The connection has just come up, or ended. */
void key_share_on_redis(struct key_share *share, bool up);
void key_share_forget(struct key_share *share, const void *arg);

void key_share_get(struct key_share *share, const struct record_key *key, key_store_f *done, void *arg);
void key_share_put(struct key_share *share, const struct record_key *key, const struct key_claim *claim,
	double expires_at, key_store_f *done, void *arg);
void key_share_renew(struct key_share *share, const struct record_key *key, const struct key_claim *claim,
	double expires_at, key_store_f *done, void *arg);
void key_share_give_up(struct key_share *share, const struct record_key *key, const struct record_location *place);
void key_share_settle(struct key_share *share, const struct record_key *key, double expires_at);

#endif
