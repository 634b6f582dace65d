/*
 * sandbox_heard.c - what becomes of this server's work when another server says something about a sandbox.
 *
 * The table has it already. Each process may hear the same, and none need: whoever waits or drives a command looks at
 * the record when its slot is posted. Only what nobody would do otherwise is done here.
 */
/* SPDX-License-Identifier: MIT */
#include "domain/exec/exec.h"
#include "domain/sandbox/sandbox.h"
#include "domain/sandbox/sandbox_priv.h"
#include "domain/service_priv.h"
#include "backend/agent_client.h"
#include "base/log.h"

/* It can't be found from now on; what is remembered of it is as after a deletion here. */
static void
hear_end(struct service *service, const struct mirror_place *place)
{
	char words[SANDBOX_MESSAGE_SIZE];

	sandbox_tombstone_put(service, &place->record);
	sandbox_post(service, place->slot);
	sandbox_gone_words(place->record.reap_rule, words, sizeof words);
	exec_end_all(service, place->record.uid, "sandbox_deleted", words);
}

static void
hear_gone(struct service *service, const struct mirror_place *place)
{
	if (place->record.status != SANDBOX_DELETING)
		hear_end(service, place);
	else
		sandbox_post(service, place->slot);
	agent_client_forget(service->agents, place->record.uid);
}

void
sandbox_heard(struct service *service, enum mirror_outcome what, const struct mirror_place *place)
{
	switch (what) {
	case MIRROR_MADE:
	case MIRROR_CHANGED:
		sandbox_post(service, place->slot);
		return;
	case MIRROR_FAILED:
		sandbox_post(service, place->slot);
		exec_end_all(service, place->record.uid, "agent_lost", place->record.message);
		return;
	case MIRROR_ENDS:
		hear_end(service, place);
		return;
	case MIRROR_GONE:
		hear_gone(service, place);
		return;
	case MIRROR_UNWANTED:
		sandbox_unwanted(service, place->slot, place->record.uid);
		return;
	case MIRROR_NO_ROOM:
		log_warn("no room for one more sandbox of another server: raise max_sandboxes");
		return;
	case MIRROR_SAME:
	case MIRROR_UNKNOWN:
	case MIRROR_IN_PLACE:
		return;
	}
}
