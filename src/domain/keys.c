/* keys.c - what Idempotency-Keys stand for: this server's store, or what all servers at one Redis share. */
/* SPDX-License-Identifier: MIT */
#include "domain/keys.h"
#include "domain/service_priv.h"
#include "cluster/key_share.h"

#include <stddef.h>

void
keys_get(struct service *service, const struct record_key *key, key_store_f *done, void *arg)
{
	if (service->key_share != NULL)
		key_share_get(service->key_share, key, done, arg);
	else
		key_store_get(service->keys, key, done, arg);
}

void
keys_put(struct service *service, const struct record_key *key, const struct key_claim *claim, double expires_at,
	key_store_f *done, void *arg)
{
	if (service->key_share != NULL)
		key_share_put(service->key_share, key, claim, expires_at, done, arg);
	else
		key_store_put(service->keys, key, claim, expires_at, done, arg);
}

void
keys_renew(struct service *service, const struct record_key *key, const struct key_claim *claim, double expires_at,
	key_store_f *done, void *arg)
{
	if (service->key_share != NULL)
		key_share_renew(service->key_share, key, claim, expires_at, done, arg);
	else
		key_store_renew(service->keys, key, claim, expires_at, done, arg);
}

void
keys_give_up(struct service *service, const struct record_key *key, const struct record_location *place)
{
	if (service->key_share != NULL)
		key_share_give_up(service->key_share, key, place);
	else
		key_store_give_up(service->keys, key, place);
}

void
keys_settle(struct service *service, const struct record_key *key, double expires_at)
{
	if (service->key_share != NULL)
		key_share_settle(service->key_share, key, expires_at);
	else
		key_store_settle(service->keys, key, expires_at);
}
