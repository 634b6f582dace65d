/*
 * job_stdin.c - one write on its way: until the job runs, until the agent has room, until it is known to be there.
 *
 * A write whose time is over while it waits for room is taken back by closing its connection. Whether the
 * agent took it at that very moment is asked by sending its id again, with nothing in it.
 */
/* SPDX-License-Identifier: MIT */
#include "domain/job/job_stdin.h"
#include "domain/job/job_priv.h"
#include "domain/sandbox/sandbox_priv.h"
#include "domain/service_priv.h"
#include "backend/agent_client.h"
#include "backend/job_store.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"
#include "base/json.h"
#include "conf/config.h"

#include <event2/event.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	ROOM_MS = 30000, /* for the command to read */
	PROBE_MS = 2000,
	PAUSE_MS = 50,
	UNREACHABLE_MS = 10000,
	WAITING_MAX = 64 * 1024 * 1024 /* bytes of all writes in this process */
};

struct job_stdin {
	LIST_ENTRY(job_stdin) link;
	struct service *service;
	char tenant[SANDBOX_TENANT_SIZE];
	char job_id[ID_UUID_SIZE];
	char write_id[ID_UUID_SIZE];
	struct watch watch;
	struct event *timer;
	struct agent_call *call;
	bool probing;
	bool in_store, cancelled;
	bool asking; /* Redis, whether another server has it */
	int64_t deadline_ms; /* for it to run */
	int64_t unreachable_ms; /* since when; 0: it can be reached */
	void *data;
	size_t len;
	bool eof;
	job_stdin_f *done;
	void *arg;
};

static const char not_there[] = "there is no such job, or its time to be kept is over";
static const char not_running[] = "the job is not running yet; write again when it is";

static void
stdin_free(struct job_stdin *write)
{
	watch_remove(&write->watch);
	event_free(write->timer);
	free(write->data);
	free(write);
}

/* The store may still owe its answer: that frees it then. */
void
job_stdin_cancel(struct job_stdin *write)
{
	LIST_REMOVE(write, link);
	write->service->stdin_bytes -= write->len;
	service_waiter_drop(write->service);
	event_del(write->timer);
	watch_remove(&write->watch);
	if (write->call != NULL)
		agent_call_cancel(STEAL_PTR(write->call));
	if (write->asking)
		job_far_forget(write->service, write);
	write->cancelled = true;
	if (!write->in_store)
		stdin_free(write);
}

static void
stdin_end(struct job_stdin *write, const struct job_stdin_result *result, const struct err *why)
{
	job_stdin_f *done = write->done;
	void *arg = write->arg;
	struct err copy = { 0 };

	if (why != NULL)
		copy = *why;
	if (result != NULL)
		service_count(write->service, METRIC_STDIN_BYTES, result->accepted);
	job_stdin_cancel(write);
	done(result, why != NULL ? &copy : NULL, arg);
}

static void
stdin_fail(struct job_stdin *write, enum err_code code, const char *words)
{
	struct err err;

	err_set(&err, code, "%s", words);
	stdin_end(write, NULL, &err);
}

/* --- the agent --- */

static bool
read_result(struct json_object *body, struct job_stdin_result *ret_result)
{
	struct json_object *accepted, *bytes, *closed;

	if (!json_object_object_get_ex(body, "accepted", &accepted) ||
		!json_object_object_get_ex(body, "stdin_bytes", &bytes) ||
		!json_object_object_get_ex(body, "closed", &closed))
		return false;
	*ret_result = (struct job_stdin_result){
		.accepted = json_object_get_int64(accepted),
		.bytes = json_object_get_int64(bytes),
		.closed = json_object_get_boolean(closed),
	};
	return true;
}

static void stdin_send(struct job_stdin *write, const struct sandbox_record *sandbox);

static void
stdin_pause(struct job_stdin *write)
{
	service_timer_set(write->timer, PAUSE_MS);
}

static void
stdin_on_lost(struct job_stdin *write, const struct err *why)
{
	int64_t now = clock_boot_ms();
	struct err err;

	if (write->unreachable_ms == 0)
		write->unreachable_ms = now;
	if (now - write->unreachable_ms < UNREACHABLE_MS) {
		stdin_pause(write);
		return;
	}
	err_set(&err, ERR_AGENT_UNREACHABLE, "whether it was written is not known, the agent does not answer: %s",
		why->msg);
	stdin_end(write, NULL, &err);
}

/* It was taken back; was it, really? */
static void
stdin_on_probed(struct job_stdin *write, const struct agent_answer *answer)
{
	struct job_stdin_result result;

	if (answer->outcome == AGENT_STDIN_CLOSED)
		stdin_fail(write, ERR_CLOSED, "the command's stdin is closed");
	else if (answer->outcome == AGENT_JOB && read_result(answer->body, &result) &&
		result.accepted == (int64_t)write->len && result.closed == write->eof &&
		(write->len > 0 || write->eof))
		stdin_end(write, &result, NULL);
	else
		stdin_fail(write, ERR_BUSY,
			"the command does not read its stdin, and what waits for it is at its limit: nothing was "
			"written");
}

static void
stdin_on_answer(const struct agent_answer *answer, void *arg)
{
	struct job_stdin *write = arg;
	struct job_stdin_result result;

	write->call = NULL;
	if (write->probing && (answer->outcome == AGENT_LOST || answer->outcome == AGENT_NOT_SENT)) {
		stdin_on_lost(write, answer->err);
		return;
	}
	if (write->probing) {
		stdin_on_probed(write, answer);
		return;
	}
	switch (answer->outcome) {
	case AGENT_JOB:
		if (read_result(answer->body, &result))
			stdin_end(write, &result, NULL);
		else
			stdin_fail(write, ERR_UNAVAILABLE, "the agent's answer to a write makes no sense");
		return;
	case AGENT_STDIN_CLOSED:
		stdin_fail(write, ERR_CLOSED, "the command's stdin is closed");
		return;
	case AGENT_UNKNOWN_JOB: /* it is on its way there */
		if (clock_boot_ms() >= write->deadline_ms)
			stdin_fail(write, ERR_NOT_READY, not_running);
		else
			stdin_pause(write);
		return;
	case AGENT_LOST:
	case AGENT_NOT_SENT:
		write->probing = answer->outcome == AGENT_LOST && answer->err->code == ERR_TIMEOUT;
		if (write->probing)
			stdin_pause(write);
		else
			stdin_on_lost(write, answer->err);
		return;
	case AGENT_BUSY:
	case AGENT_STALE:
	case AGENT_FORGOTTEN:
	case AGENT_REFUSED:
	case AGENT_DENIED:
		break;
	}
	if (answer->err != NULL && answer->err->code == ERR_BUSY)
		stdin_end(write, NULL, answer->err);
	else
		stdin_fail(write, ERR_UNAVAILABLE,
			answer->err != NULL ? answer->err->msg : "the agent refused the write");
}

static void
stdin_send(struct job_stdin *write, const struct sandbox_record *sandbox)
{
	struct agent_target target = service_target(sandbox);
	struct agent_stdin_write ask = {
		.job_id = write->job_id,
		.write_id = write->write_id,
		.data = write->data,
		.len = write->probing ? 0 : write->len,
		.eof = !write->probing && write->eof,
		.timeout_ms = write->probing ? PROBE_MS : ROOM_MS,
	};
	struct err err;

	if ((!write->probing && service_agent_admit(write->service, sandbox->uid, AGENT_SHARE_WRITES, &err) != 0) ||
		agent_stdin_write(
			write->service->agents, &target, &ask, stdin_on_answer, write, &write->call, &err) != 0)
		stdin_end(write, NULL, &err);
}

/* --- is it running? --- */

/* Another server's: its slot is watched, but what is heard of it may be lost. */
static void
stdin_wait_far(struct job_stdin *write)
{
	int64_t left = write->deadline_ms - clock_boot_ms(), pause = write->service->far_look_ms;

	if (left <= 0) {
		stdin_fail(write, ERR_NOT_READY, not_running);
	} else if (!write->watch.armed) {
		/* Once more, now that its start would be heard of. */
		watch_add(&write->service->watches, &write->watch, NOTIFY_JOB,
			job_far_slot(write->service, write->job_id));
		service_timer_set(write->timer, 0);
	} else {
		service_timer_set(write->timer, left < pause ? left : pause);
	}
}

static void
stdin_on_far(const struct board_answer *answer, const struct err *why, void *arg)
{
	struct job_stdin *write = arg;
	AUTO_JSON struct json_object *job = answer != NULL ? job_far_json(answer, write->tenant) : NULL;
	struct sandbox_record sandbox;
	struct err err;

	write->asking = false;
	if (answer == NULL && why->code != ERR_NOT_FOUND)
		stdin_end(write, NULL, why);
	else if (job == NULL)
		stdin_fail(write, ERR_NOT_FOUND, not_there);
	else if (job_far_has_ended(answer))
		stdin_fail(write, ERR_CLOSED, "the command has ended");
	else if (strcmp(answer->state, "queued") == 0)
		stdin_wait_far(write);
	else if (job_far_sandbox(write->service, write->tenant, answer->sandbox_id, answer->sandbox_uid, &sandbox,
			 &err) == 0)
		stdin_send(write, &sandbox);
	else if (err.code == ERR_UNAVAILABLE)
		stdin_end(write, NULL, &err);
	else
		stdin_wait_far(write);
}

static void
stdin_look_far(struct job_stdin *write)
{
	struct err err;

	write->asking = true;
	if (job_far_get(write->service, write->job_id, stdin_on_far, write, &err) == 0)
		return;
	write->asking = false;
	stdin_end(write, NULL, &err);
}

static void
stdin_on_result(struct json_object *value, const struct err *why, void *arg)
{
	struct job_stdin *write = arg;

	write->in_store = false;
	if (write->cancelled)
		stdin_free(write);
	else if (value != NULL && job_unseal(value, write->tenant, NULL))
		stdin_fail(write, ERR_CLOSED, "the command has ended");
	else if (value == NULL && why != NULL && why->code != ERR_NOT_FOUND)
		stdin_end(write, NULL, why);
	else if (value == NULL && write->service->board != NULL)
		stdin_look_far(write);
	else
		stdin_fail(write, ERR_NOT_FOUND, not_there);
}

static void
stdin_look_at_live(struct job_stdin *write, const struct job_record *record)
{
	struct sandbox_record sandbox;

	if (!record->stdin_open)
		stdin_fail(write, ERR_CLOSED, "the command was not started with stdin_open");
	else if (record->state == JOB_SAVING)
		stdin_fail(write, ERR_CLOSED, "the command has ended");
	else if (record->state == JOB_RUNNING &&
		sandbox_read_life(write->service, record->sandbox_slot, record->sandbox_uid, &sandbox) &&
		sandbox.status == SANDBOX_READY)
		stdin_send(write, &sandbox);
	else if (clock_boot_ms() >= write->deadline_ms)
		stdin_fail(write, ERR_NOT_READY, not_running);
	else
		service_timer_set(write->timer, write->deadline_ms - clock_boot_ms());
}

static void
stdin_look(struct job_stdin *write)
{
	struct job_record record;
	uint32_t slot;

	/* One look at a time: what is asked now must not be asked again when the time is up. */
	event_del(write->timer);
	if (job_find_live(write->service, write->tenant, write->job_id, &record, &slot)) {
		if (!write->watch.armed && record.state == JOB_QUEUED) {
			/* Once more, now that its start will be told. */
			watch_add(&write->service->watches, &write->watch, NOTIFY_JOB, slot);
			job_follow(write->service, slot, write->job_id);
			service_timer_set(write->timer, 0);
			return;
		}
		stdin_look_at_live(write, &record);
		return;
	}
	write->in_store = true;
	job_store_get_result(write->service->store, write->job_id, stdin_on_result, write);
}

static void
stdin_on_change(void *arg)
{
	struct job_stdin *write = arg;

	if (write->call == NULL && !write->in_store && !write->asking)
		stdin_look(write);
}

static void
stdin_on_time(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	stdin_look(arg);
}

/* --- the write --- */

int
job_stdin_start(struct service *service, const char *tenant, const struct job_stdin_ask *ask, job_stdin_f *done,
	void *arg, struct job_stdin **ret_write, struct err *err)
{
	struct job_stdin *write;

	if (ask->len > JOB_STDIN_MAX)
		return err_set(err, ERR_TOO_LARGE, "a write has at most %d bytes", JOB_STDIN_MAX);
	if (service->stdin_bytes + ask->len > WAITING_MAX)
		return err_set(err, ERR_BUSY, "too much input waits for commands on this server; try again soon");
	if (service_waiter_add(service, err) != 0)
		return -1;
	write = alloc_zero(1, sizeof *write);
	write->service = service;
	write->done = done;
	write->arg = arg;
	write->eof = ask->eof;
	write->len = ask->len;
	write->data = alloc_bytes(ask->len + 1);
	memcpy(write->data, ask->len > 0 ? ask->data : "", ask->len);
	snprintf(write->tenant, sizeof write->tenant, "%s", tenant);
	snprintf(write->job_id, sizeof write->job_id, "%s", ask->job_id);
	id_uuid4(write->write_id);
	write->deadline_ms = clock_boot_ms() + service->config->readiness_wait_seconds * 1000;
	write->timer = service_timer(service, stdin_on_time, write);
	write->watch = (struct watch){ .on_change = stdin_on_change, .arg = write };
	service->stdin_bytes += write->len;
	LIST_INSERT_HEAD(&service->job_stdins, write, link);
	service_timer_set(write->timer, 0);
	*ret_write = write;
	return 0;
}

void
job_stdin_end_all(struct service *service)
{
	struct job_stdin *write;

	while ((write = LIST_FIRST(&service->job_stdins)) != NULL)
		stdin_fail(write, ERR_UNAVAILABLE,
			"this server process stops; whether it was written, a write of nothing tells");
}
