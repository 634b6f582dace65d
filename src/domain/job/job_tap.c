/*
 * job_tap.c - where the bytes are: the agent, the store, or nowhere any more.
 *
 * An ended job leaves the agent only after its result is stored, so whoever the
 * agent does not know looks at the table and the store once more. Of another server's job Redis says
 * whether it runs, and once it does, its agent is asked without a word to Redis until that says that it has ended.
 */
/* SPDX-License-Identifier: MIT */
#include "domain/job/job_tap_impl.h"
#include "domain/job/job_priv.h"
#include "domain/sandbox/sandbox_priv.h"
#include "domain/service_priv.h"
#include "backend/agent_client.h"
#include "backend/job_store.h"
#include "base/alloc.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text.h"

#include <event2/event.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REST_MAX = 4 * 1024 * 1024 }; /* a stored result that is cheaper to read again than to keep */

const char *const job_tap_streams[JOB_STREAMS] = { "stdout", "stderr" };

static void tap_look(struct job_tap *tap);
static void tap_look_far(struct job_tap *tap);

/* --- telling --- */

/* The piece is the callback's until it returns; the tap may be gone by then. */
void
job_tap_tell(struct job_tap *tap, const struct err *why)
{
	struct job_tap_answer answer = tap->answer;
	uint8_t *out = STEAL_PTR(tap->piece[JOB_STDOUT]), *err = STEAL_PTR(tap->piece[JOB_STDERR]);
	struct json_object *job = json_object_get(answer.job);

	tap->answer = (struct job_tap_answer){ 0 };
	tap->done(why == NULL ? &answer : NULL, why, tap->arg);
	json_object_put(job);
	free(out);
	free(err);
}

static void
tap_tell_state(struct job_tap *tap, enum job_tap_state state, const char *status)
{
	tap->answer.state = state;
	tap->answer.status = status;
	job_tap_tell(tap, NULL);
}

void
job_tap_not_found(struct job_tap *tap)
{
	struct err err;

	err_set(&err, ERR_NOT_FOUND, "there is no job \"%.64s\", or its time to be kept is over", tap->job_id);
	job_tap_tell(tap, &err);
}

/* --- the agent's answer --- */

static bool
read_int(struct json_object *object, const char *name, int64_t *ret)
{
	struct json_object *value;

	if (!json_object_object_get_ex(object, name, &value) || !json_object_is_type(value, json_type_int))
		return false;
	*ret = json_object_get_int64(value);
	return *ret >= 0;
}

/* What runs in the sandbox may have got hold of its agent: nothing of an answer is taken on trust. */
static bool
tap_read_part(struct job_tap *tap, enum job_stream stream, struct json_object *body)
{
	struct job_tap_part *part = &tap->answer.parts[stream];
	struct json_object *object, *base64;

	if (!json_object_object_get_ex(body, job_tap_streams[stream], &object) ||
		!read_int(object, "offset", &part->offset) || !read_int(object, "bytes", &part->bytes) ||
		!json_object_object_get_ex(object, "base64", &base64) ||
		!json_object_is_type(base64, json_type_string) ||
		text_base64_decode(json_object_get_string(base64), (size_t)json_object_get_string_len(base64),
			&tap->piece[stream], &part->len) != 0)
		return false;
	part->data = tap->piece[stream];
	return part->len <= tap->ask.limit && part->offset <= part->bytes &&
		(int64_t)part->len <= part->bytes - part->offset &&
		(part->offset >= tap->ask.offset[stream] || part->len == 0);
}

bool
job_tap_wants_of_agent(const struct job_tap *tap, enum job_stream stream)
{
	return tap->ask.offset[stream] >= 0 && !tap->answer.parts[stream].whole && !tap->answer.parts[stream].gone;
}

void
job_tap_on_body(struct job_tap *tap, struct json_object *body)
{
	const char *state = json_object_get_string(json_object_object_get(body, "state"));
	bool sound = state != NULL;
	struct err err;

	for (int i = 0; i < JOB_STREAMS; i++)
		if (job_tap_wants_of_agent(tap, (enum job_stream)i))
			sound = sound && tap_read_part(tap, (enum job_stream)i, body);
	if (!sound) {
		err_set(&err, ERR_UNAVAILABLE, "the agent's answer about the output makes no sense");
		job_tap_tell(tap, &err);
	} else if (tap->result != NULL) {
		job_tap_tell(tap, NULL);
	} else {
		if (tap->ask.reader && !read_int(body, "hold_ms", &tap->answer.hold_ms))
			tap->answer.hold_ms = 0;
		tap_tell_state(tap, strcmp(state, "ended") == 0 ? JOB_TAP_ENDING : JOB_TAP_RUNNING, "running");
	}
}

/* --- live --- */

static bool
tap_is_live(struct job_tap *tap, struct job_record *ret_record)
{
	uint32_t slot;

	return job_find_live(tap->service, tap->tenant, tap->job_id, ret_record, &slot);
}

/* Its agent has it, and yet does not show its output. */
static void
tap_tell_unread(struct job_tap *tap, const struct agent_answer *answer)
{
	struct err err;

	if (answer->outcome == AGENT_LOST || answer->outcome == AGENT_NOT_SENT)
		err_set(&err, ERR_AGENT_UNREACHABLE, "%s", answer->err->msg);
	else
		err_set(&err, ERR_UNAVAILABLE, "the output can't be read: %s",
			answer->err != NULL ? answer->err->msg : "the agent refused");
	job_tap_tell(tap, &err);
}

static void
tap_on_live(const struct agent_answer *answer, void *arg)
{
	struct job_tap *tap = arg;
	struct job_record record;

	tap->call = NULL;
	if (answer->outcome == AGENT_JOB) {
		job_tap_on_body(tap, answer->body);
	} else if (!tap_is_live(tap, &record)) {
		tap_look(tap);
	} else if (answer->outcome == AGENT_UNKNOWN_JOB) {
		tap->answer.silent = true; /* it is on its way there, or its end on its way here */
		tap_tell_state(tap, JOB_TAP_RUNNING, "running");
	} else {
		tap_tell_unread(tap, answer);
	}
}

int
job_tap_ask_agent(struct job_tap *tap, const struct sandbox_record *sandbox, agent_done_f *done, struct err *err)
{
	struct agent_target target = service_target(sandbox);
	struct agent_output_ask ask = {
		.job_id = tap->job_id,
		.stdout_offset = job_tap_wants_of_agent(tap, JOB_STDOUT) ? tap->ask.offset[JOB_STDOUT] : -1,
		.stderr_offset = job_tap_wants_of_agent(tap, JOB_STDERR) ? tap->ask.offset[JOB_STDERR] : -1,
		.limit = tap->ask.limit,
		.wait_ms = tap->result == NULL ? tap->ask.wait_ms : 0,
		.reader = tap->ask.reader && tap->result == NULL,
	};

	return agent_output_get(tap->service->agents, &target, &ask, done, tap, &tap->call, err);
}

bool
job_tap_has_agent(const struct sandbox_record *sandbox)
{
	return sandbox->status == SANDBOX_READY && sandbox->endpoint[0] != '\0';
}

static void
tap_look_live(struct job_tap *tap, const struct job_record *record)
{
	struct sandbox_record sandbox;
	struct err err;

	if (record->state == JOB_QUEUED) {
		tap->answer.queue_position = job_queue_position(tap->service, record);
		tap_tell_state(tap, JOB_TAP_QUEUED, "queued");
	} else if (!sandbox_read_life(tap->service, record->sandbox_slot, record->sandbox_uid, &sandbox) ||
		!job_tap_has_agent(&sandbox)) {
		tap->answer.silent = true; /* whoever drives the job is about to end it */
		tap_tell_state(tap, JOB_TAP_RUNNING, "running");
	} else if (job_tap_ask_agent(tap, &sandbox, tap_on_live, &err) != 0) {
		err.code = ERR_AGENT_UNREACHABLE;
		job_tap_tell(tap, &err);
	}
}

/* --- live at another server --- */

static void
tap_on_far_agent(const struct agent_answer *answer, void *arg)
{
	struct job_tap *tap = arg;
	const char *state = answer->body != NULL
		? json_object_get_string(json_object_object_get(answer->body, "state"))
		: NULL;

	tap->call = NULL;
	if (answer->outcome == AGENT_JOB) {
		tap->far = state == NULL || strcmp(state, "ended") != 0;
		job_tap_on_body(tap, answer->body);
		return;
	}
	tap->far = false;
	if (answer->outcome == AGENT_UNKNOWN_JOB || answer->outcome == AGENT_FORGOTTEN) {
		/* On its way to the agent, or already on its way to Redis. */
		tap->answer.silent = true;
		tap_tell_state(tap, JOB_TAP_RUNNING, "running");
	} else {
		tap_tell_unread(tap, answer);
	}
}

static void
tap_ask_far(struct job_tap *tap)
{
	struct sandbox_record sandbox;
	struct err err;

	if (job_far_sandbox(tap->service, tap->tenant, tap->far_sandbox, tap->far_uid, &sandbox, &err) == 0 &&
		(tap->ask.wait_ms == 0 ||
			service_agent_admit(tap->service, sandbox.uid, AGENT_SHARE_STREAMS, &err) == 0)) {
		if (job_tap_ask_agent(tap, &sandbox, tap_on_far_agent, &err) == 0)
			return;
		err.code = ERR_AGENT_UNREACHABLE;
	}
	tap->far = false;
	if (err.code == ERR_UNAVAILABLE || err.code == ERR_AGENT_UNREACHABLE || err.code == ERR_BUSY) {
		job_tap_tell(tap, &err);
	} else {
		tap->answer.silent = true; /* whoever drives it is about to end it */
		tap_tell_state(tap, JOB_TAP_RUNNING, "running");
	}
}

static void
tap_on_far(const struct board_answer *answer, const struct err *why, void *arg)
{
	struct job_tap *tap = arg;
	AUTO_JSON struct json_object *job = answer != NULL ? job_far_json(answer, tap->tenant) : NULL;

	if (answer == NULL && why->code != ERR_NOT_FOUND) {
		job_tap_tell(tap, why);
	} else if (job == NULL) {
		job_tap_not_found(tap);
	} else if (job_far_has_ended(answer)) {
		job_tap_take_result(tap, job);
	} else if (strcmp(answer->state, "queued") == 0) {
		tap_tell_state(tap, JOB_TAP_QUEUED, "queued");
	} else {
		tap->far = true;
		snprintf(tap->far_sandbox, sizeof tap->far_sandbox, "%s", answer->sandbox_id);
		snprintf(tap->far_uid, sizeof tap->far_uid, "%s", answer->sandbox_uid);
		tap_ask_far(tap);
	}
}

static void
tap_look_far(struct job_tap *tap)
{
	struct err err;

	if (tap->service->board == NULL)
		job_tap_not_found(tap);
	else if (job_far_get(tap->service, tap->job_id, tap_on_far, tap, &err) != 0)
		job_tap_tell(tap, &err);
}

/* --- ended --- */

static void
tap_on_result(struct json_object *value, const struct err *why, void *arg)
{
	struct job_tap *tap = arg;
	bool wanted = !tap->stopped;

	tap->in_store = tap->stopped = false;
	if (tap->closed) {
		job_tap_close(tap);
		return;
	}
	if (!wanted)
		return;
	if (why != NULL && why->code != ERR_NOT_FOUND)
		job_tap_tell(tap, why);
	else if (value != NULL)
		job_tap_take_result(tap, value);
	else
		tap_look_far(tap);
}

static void
tap_look(struct job_tap *tap)
{
	struct job_record record;

	tap->answer = (struct job_tap_answer){ .queue_position = UINT32_MAX };
	if (tap->result != NULL) {
		job_tap_serve_result(tap);
	} else if (!id_is_uuid(tap->job_id)) {
		job_tap_not_found(tap);
	} else if (tap_is_live(tap, &record)) {
		tap_look_live(tap, &record);
	} else if (tap->far) {
		tap_ask_far(tap);
	} else {
		if (tap->in_store) { /* of a read that was stopped */
			tap->stopped = false;
			return;
		}
		tap->in_store = true;
		job_store_get_result(tap->service->store, tap->job_id, tap_on_result, tap);
	}
}

/* --- the tap --- */

static void
tap_on_soon(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	tap_look(arg);
}

struct job_tap *
job_tap_open(struct service *service, const char *tenant, const char *job_id, job_tap_f *done, void *arg)
{
	struct job_tap *tap = alloc_zero(1, sizeof *tap);

	tap->service = service;
	tap->done = done;
	tap->arg = arg;
	snprintf(tap->tenant, sizeof tap->tenant, "%s", tenant);
	snprintf(tap->job_id, sizeof tap->job_id, "%s", job_id);
	tap->soon = service_timer(service, tap_on_soon, tap);
	return tap;
}

void
job_tap_read(struct job_tap *tap, const struct job_tap_ask *ask)
{
	tap->ask = *ask;
	service_timer_set(tap->soon, 0);
}

void
job_tap_stop(struct job_tap *tap)
{
	event_del(tap->soon);
	if (tap->call != NULL)
		agent_call_cancel(STEAL_PTR(tap->call));
	tap->stopped = tap->in_store;
	job_far_forget(tap->service, tap);
}

void
job_tap_rest(struct job_tap *tap)
{
	if (tap->result_size <= REST_MAX)
		job_tap_forget(tap);
}

void
job_tap_close(struct job_tap *tap)
{
	job_tap_stop(tap);
	tap->closed = true;
	if (tap->in_store)
		return;
	job_tap_forget(tap);
	event_free(tap->soon);
	free(tap->piece[JOB_STDOUT]);
	free(tap->piece[JOB_STDERR]);
	free(tap);
}
