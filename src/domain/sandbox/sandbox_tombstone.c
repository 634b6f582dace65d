/*
 * sandbox_tombstone.c - what is still known of an id whose sandbox is gone: that it was, and which rule took it.
 *
 * Kept on disk for idempotency_ttl_seconds, so that a client that cleans up late
 * is not told an error, and one that still uses it is told why it is gone.
 */
/* SPDX-License-Identifier: MIT */
#include "domain/sandbox/sandbox_priv.h"
#include "domain/service_priv.h"
#include "backend/record_log.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "conf/config.h"
#include "ipc/record_index.h"
#include "ipc/shm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The newest deletion counts. */
void
sandbox_tombstone_put(struct service *service, const struct sandbox_record *record)
{
	struct record_key key = record_key_named(RECORD_TOMBSTONE, record->tenant, record->id);
	double expires_at = clock_steady() + (double)service->config->idempotency_ttl_seconds;
	struct record_location place;
	struct err err;

	record_index_drop(shm_index(service->shm), &key);
	if (record_log_append(service->log, RECORD_TOMBSTONE, &key, expires_at, record->reap_rule,
		    strlen(record->reap_rule), true, &place, &err) != 0 &&
		err.code != ERR_EXISTS)
		log_write(LOG_LEVEL_WARN, &(struct log_ctx){ .sandbox_id = record->id },
			"its deletion could not be noted, deleting it again will say not found: %s", err.msg);
}

bool
sandbox_tombstone_find(
	struct service *service, const char *tenant, const char *id, char ret_rule[SANDBOX_RULE_SIZE])
{
	struct record_key key = record_key_named(RECORD_TOMBSTONE, tenant, id);
	AUTO_FREE char *data = NULL;
	struct err err;
	size_t len;

	if (record_log_find(service->log, RECORD_TOMBSTONE, &key, &data, &len, &err) != 0)
		return false;
	snprintf(ret_rule, SANDBOX_RULE_SIZE, "%s", data);
	return true;
}
