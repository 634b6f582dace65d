/*
 * adoption.c - finds pods whose server is gone, so that this one takes them over.
 *
 * Every server does, and Redis gives each pod to the first that asks. A young record is left alone: whoever makes it may
 * not have said yet that it lives; and one that Redis has as this server's may be on its way into the table.
 */
/* SPDX-License-Identifier: MIT */
#include "reaper/reaper_priv.h"
#include "base/clock.h"
#include "conf/config.h"
#include "domain/sandbox/sandbox.h"
#include "domain/service.h"
#include "ipc/sandbox_table.h"
#include "ipc/shm.h"

#include <string.h>

enum { ADOPT_AT_ONCE = 64 };

static bool
has_lost_its_server(
	const struct service *service, const struct membership *membership, const struct sandbox_record *record)
{
	int64_t age_ms = clock_boot_ms() - record->created_ms;

	return sandbox_is_foreign(record) && !record->elsewhere &&
		age_ms > service_config(service)->redis_replica_seconds * 1000 &&
		(strcmp(record->home, membership_self(membership)) == 0 ||
			membership_is_gone(membership, record->home));
}

void
adoption_scan(struct service *service, const struct membership *membership)
{
	struct shm_sandboxes *table = shm_sandboxes(service_shm(service));
	struct sandbox_record record;

	if (!config_is_kubernetes(service_config(service)) || !service_may_judge(service) ||
		sandbox_adoptions(service) > 0)
		return;
	for (uint32_t slot = 0; slot < sandbox_table_bound(table) && sandbox_adoptions(service) < ADOPT_AT_ONCE;
		slot++)
		if (sandbox_table_read(table, slot, &record) && has_lost_its_server(service, membership, &record))
			sandbox_adopt(service, &record);
}
