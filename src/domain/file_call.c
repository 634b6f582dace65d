/* file_call.c - first the sandbox, then its agent; a transfer keeps the sandbox in use as long as it moves. */
/* SPDX-License-Identifier: MIT */
#include "domain/file_call.h"
#include "domain/sandbox/sandbox_priv.h"
#include "domain/sandbox/sandbox_ready.h"
#include "domain/service_priv.h"
#include "backend/agent_relay.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "conf/config.h"

#include <stdio.h>
#include <stdlib.h>

enum { TOUCH_MS = 5000 };

_Static_assert((int)FILE_CALL_HIGH == (int)AGENT_RELAY_HIGH, "what the user is told is what the connection does");

struct file_call {
	struct service *service;
	struct sandbox_ready *ready; /* NULL: not waiting for the sandbox (any more) */
	struct agent_relay *relay; /* NULL: not there yet */
	uint32_t slot;
	char uid[ID_UUID_SIZE];
	char *method, *target, *content_type;
	char *headers[2 * FILE_CALL_HEADERS + 1];
	int64_t length;
	int64_t touched_ms;
	const struct file_call_ops *ops;
	void *arg;
};

static void
call_free(struct file_call *call)
{
	service_count(call->service, METRIC_FILE_CALLS_OPEN, -1);
	free(call->method);
	free(call->target);
	free(call->content_type);
	for (size_t i = 0; call->headers[i] != NULL; i++)
		free(call->headers[i]);
	free(call);
}

void
file_call_cancel(struct file_call *call)
{
	if (call->ready != NULL)
		sandbox_ready_cancel(call->ready);
	if (call->relay != NULL)
		agent_relay_cancel(call->relay);
	call_free(call);
}

static void
call_end(struct file_call *call, const struct err *why)
{
	const struct file_call_ops *ops = call->ops;
	struct err copy = { 0 };
	void *arg = call->arg;

	if (why != NULL)
		copy = *why;
	call_free(call);
	ops->end(why != NULL ? &copy : NULL, arg);
}

/* --- the agent --- */

static void
call_touch(struct file_call *call)
{
	struct sandbox_record record;
	int64_t now = clock_boot_ms();

	if (now - call->touched_ms < TOUCH_MS)
		return;
	call->touched_ms = now;
	if (sandbox_read_life(call->service, call->slot, call->uid, &record))
		sandbox_touch(call->service, call->slot, &record);
}

static void
on_wanted(void *arg)
{
	struct file_call *call = arg;

	call->ops->wanted(call->arg);
}

static void
on_drained(void *arg)
{
	struct file_call *call = arg;

	call->ops->drained(call->arg);
}

static void
on_head(const struct http_head *head, void *arg)
{
	struct file_call *call = arg;

	call->ops->head(head, call->arg);
}

static void
on_data(struct evbuffer *data, void *arg)
{
	struct file_call *call = arg;

	call_touch(call);
	call->ops->data(data, call->arg);
}

/* Its end and its silence look alike; whether it is gone for good is for others to find out. */
static void
on_end(const struct err *why, void *arg)
{
	struct file_call *call = arg;
	struct sandbox_record record;
	struct err err;

	call->relay = NULL;
	if (why == NULL) {
		call_end(call, NULL);
		return;
	}
	service_count(call->service, METRIC_AGENT_ERRORS, 1);
	if (!sandbox_read_life(call->service, call->slot, call->uid, &record) ||
		record.status == SANDBOX_DELETING) {
		err_set(&err, ERR_DELETED, "the sandbox was deleted meanwhile");
		call_end(call, &err);
		return;
	}
	sandbox_check(call->service, call->slot, &record);
	err = *why;
	if (err.code == ERR_TIMEOUT)
		err.code = ERR_AGENT_UNREACHABLE;
	call_end(call, &err);
}

static const struct agent_relay_ops relay_ops = {
	.wanted = on_wanted,
	.drained = on_drained,
	.head = on_head,
	.data = on_data,
	.end = on_end,
};

static void
on_ready(uint32_t slot, const struct sandbox_record *record, const struct err *why, void *arg)
{
	struct file_call *call = arg;
	struct agent_target target;
	struct agent_relay_ask ask = {
		.method = call->method,
		.target = call->target,
		.content_type = call->content_type,
		.headers = (const char *const *)call->headers,
		.length = call->length,
		.stall_ms = call->service->config->file_timeout_seconds * 1000,
	};
	struct err err;

	call->ready = NULL;
	if (record == NULL) {
		call_end(call, why);
		return;
	}
	call->slot = slot;
	snprintf(call->uid, sizeof call->uid, "%s", record->uid);
	call->touched_ms = clock_boot_ms();
	target = service_target(record);
	if (service_agent_admit(call->service, record->uid, AGENT_SHARE_WRITES, &err) != 0 ||
		agent_relay_start(call->service->agents, &target, &ask, &relay_ops, call, &call->relay, &err) != 0)
		call_end(call, &err);
}

/* --- the call --- */

static char *
copy_or_null(const char *text)
{
	return text != NULL ? alloc_string(text) : NULL;
}

int
file_call_start(struct service *service, const char *tenant, const struct file_call_ask *ask,
	const struct file_call_ops *ops, void *arg, struct file_call **ret_call, struct err *err)
{
	struct file_call *call = alloc_zero(1, sizeof *call);

	call->service = service;
	call->ops = ops;
	call->arg = arg;
	call->length = ask->length;
	call->method = alloc_string(ask->method);
	call->target = alloc_string(ask->target);
	call->content_type = copy_or_null(ask->content_type);
	for (size_t i = 0; ask->headers != NULL && ask->headers[i] != NULL && i < 2 * FILE_CALL_HEADERS; i++)
		call->headers[i] = alloc_string(ask->headers[i]);
	service_count(service, METRIC_FILE_CALLS, 1);
	service_count(service, METRIC_FILE_CALLS_OPEN, 1);
	if (sandbox_ready_start(service, tenant, ask->sandbox_id, on_ready, call, &call->ready, err) != 0) {
		call_free(call);
		return -1;
	}
	*ret_call = call;
	return 0;
}

size_t
file_call_send(struct file_call *call, struct evbuffer *piece)
{
	call_touch(call);
	return agent_relay_send(call->relay, piece);
}

void
file_call_send_end(struct file_call *call)
{
	agent_relay_send_end(call->relay);
}

void
file_call_resume(struct file_call *call)
{
	agent_relay_resume(call->relay);
}
