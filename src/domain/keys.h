/*
 * keys.h - what Idempotency-Keys stand for: the calls of backend/key_store.h, wherever keys are kept.
 *
 * Where servers share them, each may also end with ERR_UNAVAILABLE, and answers come later.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_DOMAIN_KEYS_H
#define ORCHARD_DOMAIN_KEYS_H

#include "backend/key_store.h"

struct service;

void keys_get(struct service *service, const struct record_key *key, key_store_f *done, void *arg);
void keys_put(struct service *service, const struct record_key *key, const struct key_claim *claim,
	double expires_at, key_store_f *done, void *arg);
void keys_renew(struct service *service, const struct record_key *key, const struct key_claim *claim,
	double expires_at, key_store_f *done, void *arg);
void keys_give_up(struct service *service, const struct record_key *key, const struct record_location *place);
void keys_settle(struct service *service, const struct record_key *key, double expires_at);

#endif
