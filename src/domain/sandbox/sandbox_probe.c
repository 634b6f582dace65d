/*
 * sandbox_probe.c - asking an agent that fell silent until it answers again.
 *
 * `ready` is what the last attempt to reach the agent showed. Whoever sees it
 * fail clears it and probes; the reaper does the same for records whose prober
 * died, and checks in turn those that nobody has a reason to doubt. A probe ends
 * with an answer or with the sandbox.
 */
/* SPDX-License-Identifier: MIT */
#include "domain/exec/exec_priv.h"
#include "domain/sandbox/sandbox_priv.h"
#include "domain/service_priv.h"
#include "backend/agent_client.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHECK_TIMEOUT_MS = 10000, PROBE_TIMEOUT_MS = 5000, PROBE_FIRST_MS = 100, PROBE_LAST_MS = 5000 };

struct sandbox_probe {
	LIST_ENTRY(sandbox_probe) link;
	struct service *service;
	struct event *timer;
	struct agent_call *call;
	uint32_t slot;
	char uid[ID_UUID_SIZE];
	int64_t pause_ms;
	bool checking; /* the first question to an agent that is taken to be well */
};

static void
probe_free(struct sandbox_probe *probe)
{
	if (probe->call != NULL)
		agent_call_cancel(probe->call);
	event_free(probe->timer);
	LIST_REMOVE(probe, link);
	free(probe);
}

void
sandbox_probe_free_all(struct service *service)
{
	struct sandbox_probe *probe;

	while ((probe = LIST_FIRST(&service->probes)) != NULL)
		probe_free(probe);
}

static int
change_ready(struct sandbox_record *record, void *arg, struct err *err)
{
	const bool *ready = arg;

	if (record->status != SANDBOX_READY || record->ready == *ready)
		return err_set(err, ERR_CONFLICT, "nothing to change");
	record->ready = *ready;
	if (*ready)
		record->message[0] = '\0';
	record->status_ms = clock_boot_ms();
	return 0;
}

/* Since when it was not ready stays what it was. */
static int
change_to_silent(struct sandbox_record *record, void *arg, struct err *err)
{
	if (record->status != SANDBOX_READY)
		return err_set(err, ERR_CONFLICT, "not ready");
	if (record->ready)
		record->status_ms = clock_boot_ms();
	record->ready = false;
	snprintf(record->message, sizeof record->message, "%s", (const char *)arg);
	return 0;
}

static void
set_ready(struct service *service, uint32_t slot, const char *uid, bool ready)
{
	struct err err;

	if (sandbox_table_change(service_sandboxes(service), slot, uid, change_ready, &ready, &err) == 0)
		sandbox_post(service, slot);
}

void
sandbox_reached(struct service *service, uint32_t slot, const struct sandbox_record *record)
{
	if (record->status == SANDBOX_READY && !record->ready)
		set_ready(service, slot, record->uid, true);
}

static void
probe_again(struct sandbox_probe *probe)
{
	service_timer_set(probe->timer, probe->pause_ms);
	probe->pause_ms = probe->pause_ms * 2 < PROBE_LAST_MS ? probe->pause_ms * 2 : PROBE_LAST_MS;
}

static void
probe_on_answer(const struct agent_answer *answer, void *arg)
{
	struct sandbox_probe *probe = arg;
	struct sandbox_record record;

	probe->call = NULL;
	if (answer->outcome == AGENT_DENIED) {
		/* Not the one that was made: nothing of ours may ever reach it. */
		sandbox_lost(probe->service, probe->slot, probe->uid, "another agent answers in its place");
		probe_free(probe);
		return;
	}
	if (answer->outcome != AGENT_JOB) {
		if (probe->checking)
			set_ready(probe->service, probe->slot, probe->uid, false);
		probe->checking = false;
		probe_again(probe);
		return;
	}
	set_ready(probe->service, probe->slot, probe->uid, true);
	/* The results of another server's commands are not ours to acknowledge. */
	if (sandbox_read_life(probe->service, probe->slot, probe->uid, &record) && !sandbox_is_foreign(&record))
		exec_tidy_if_due(probe->service, probe->slot, probe->uid, answer->body);
	probe_free(probe);
}

static void
probe_on_time(evutil_socket_t fd, short what, void *arg)
{
	struct sandbox_probe *probe = arg;
	struct sandbox_record record;
	struct agent_target target;
	struct err err;

	(void)fd;
	(void)what;
	if (!sandbox_read_life(probe->service, probe->slot, probe->uid, &record) ||
		record.status != SANDBOX_READY || (record.ready && !probe->checking)) {
		probe_free(probe);
		return;
	}
	target = service_target(&record);
	if (agent_health(probe->service->agents, &target, probe->checking ? CHECK_TIMEOUT_MS : PROBE_TIMEOUT_MS,
		    probe_on_answer, probe, &probe->call, &err) != 0)
		probe_again(probe);
}

static void
probe_begin(struct service *service, uint32_t slot, const char *uid, bool checking)
{
	struct sandbox_probe *probe;

	LIST_FOREACH(probe, &service->probes, link)
	if (probe->slot == slot && strcmp(probe->uid, uid) == 0)
		return;
	probe = alloc_zero(1, sizeof *probe);
	probe->service = service;
	probe->slot = slot;
	probe->pause_ms = PROBE_FIRST_MS;
	probe->checking = checking;
	snprintf(probe->uid, sizeof probe->uid, "%s", uid);
	probe->timer = service_timer(service, probe_on_time, probe);
	LIST_INSERT_HEAD(&service->probes, probe, link);
	probe_again(probe);
}

void
sandbox_unreachable(struct service *service, uint32_t slot, const struct sandbox_record *record)
{
	set_ready(service, slot, record->uid, false);
	probe_begin(service, slot, record->uid, false);
}

void
sandbox_silent(struct service *service, uint32_t slot, const char *uid, const char *words)
{
	AUTO_FREE char *message = alloc_string(words);
	struct err err;

	if (sandbox_table_change(service_sandboxes(service), slot, uid, change_to_silent, message, &err) != 0)
		return;
	sandbox_post(service, slot);
	probe_begin(service, slot, uid, false);
}

void
sandbox_silent_err(struct service *service, const char *tenant, const char *id, struct err *ret_err)
{
	struct sandbox_record record = { .message = "" };
	char since[64] = "does not answer";
	struct err err;
	uint32_t slot;

	if (sandbox_lookup(service, tenant, id, &record, &slot, &err) == 0 && record.status == SANDBOX_READY &&
		!record.ready && record.status_ms <= clock_boot_ms())
		snprintf(since, sizeof since, "has not answered for %lld s",
			(long long)(clock_boot_ms() - record.status_ms) / 1000);
	else
		record.message[0] = '\0';
	err_set(ret_err, ERR_AGENT_UNREACHABLE,
		"the agent of sandbox \"%s\" %s%s%s%s; try again, or delete the sandbox", id, since,
		record.message[0] != '\0' ? " (" : "", record.message, record.message[0] != '\0' ? ")" : "");
}

void
sandbox_probe(struct service *service, uint32_t slot)
{
	struct sandbox_record record;

	if (sandbox_table_read(service_sandboxes(service), slot, &record) && record.status == SANDBOX_READY &&
		!record.ready)
		probe_begin(service, slot, record.uid, false);
}

void
sandbox_check(struct service *service, uint32_t slot, const struct sandbox_record *record)
{
	probe_begin(service, slot, record->uid, true);
}
