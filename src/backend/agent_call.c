/* agent_call.c - one request to an agent, and what its answer means. */
/* SPDX-License-Identifier: MIT */
#include "backend/agent_priv.h"

#include "base/alloc.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text.h"
#include "http/http_parser.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>
#include <json-c/json.h>
#include <json-c/linkhash.h>

enum {
	/* Two streams of the most the settings allow, in base64, and what stands around them. */
	MAX_JOB = 192 * 1024 * 1024,
	MAX_HEALTH = 64 * 1024,
	MAX_LIST = 8 * 1024 * 1024,
	EXEC_GUARD_MS = 60000, /* beyond the command's own end, which the agent enforces */
	GET_GUARD_MS = 30000,
	CANCEL_TIMEOUT_MS = 120000
};

struct agent_call {
	struct agent_peer *peer;
	struct http_call *http;
	char job_id[ID_UUID_SIZE]; /* "" for health */
	struct json_object *acks; /* travel with this exec; NULL: none */
	agent_done_f *done;
	void *arg;
};

static void
call_free(struct agent_call *call)
{
	agent_peer_release(call->peer);
	json_object_put(call->acks);
	free(call);
}

/* What an exec carried and nobody confirmed goes with the next one. */
static void
call_return_acks(struct agent_call *call)
{
	size_t count = call->acks != NULL ? json_object_array_length(call->acks) : 0;

	for (size_t i = 0; i < count; i++)
		agent_peer_add_ack(call->peer, json_object_get_string(json_object_array_get_idx(call->acks, i)));
}

/* The agent takes acknowledgements before anything else, so these answers confirm them. */
static bool
agent_has_read(enum agent_outcome outcome)
{
	return outcome == AGENT_JOB || outcome == AGENT_BUSY || outcome == AGENT_STALE ||
		outcome == AGENT_FORGOTTEN;
}

static void
call_finish(struct agent_call *call, const struct agent_answer *answer)
{
	agent_done_f *done = call->done;
	void *arg = call->arg;

	if (!agent_has_read(answer->outcome))
		call_return_acks(call);
	call_free(call);
	done(answer, arg);
}

static const char *
body_string(struct json_object *body, const char *name)
{
	struct json_object *value;

	if (!json_object_object_get_ex(body, name, &value) || !json_object_is_type(value, json_type_string))
		return "";
	return json_object_get_string(value);
}

static void
answer_refusal(struct agent_answer *answer, int status, const char *code, struct err *err)
{
	const char *detail = body_string(answer->body, "detail");

	answer->outcome = AGENT_REFUSED;
	answer->err = err;
	switch (status) {
	case 403:
		answer->outcome = AGENT_DENIED;
		err->code = ERR_DENIED;
		break;
	case 410:
		answer->outcome = AGENT_FORGOTTEN;
		err->code = ERR_STALE;
		break;
	case 413:
		err->code = ERR_TOO_LARGE;
		break;
	case 503:
		err->code = ERR_BUSY;
		break;
	case 400:
	case 404:
	case 405:
	case 409:
	case 414:
	case 422:
	case 431:
		err->code = ERR_INVALID;
		break;
	default:
		answer->outcome = AGENT_LOST;
		err->code = ERR_AGENT_UNREACHABLE;
		break;
	}
	snprintf(err->msg, sizeof err->msg, "the agent answered %d%s%s%s%s", status, *code != '\0' ? " " : "", code,
		*detail != '\0' ? ": " : "", detail);
}

static void
answer_conflict(struct agent_answer *answer, const char *code, struct err *err)
{
	struct json_object *fence;

	if (strcmp(code, "busy") == 0 && id_is_uuid(body_string(answer->body, "job_id"))) {
		answer->outcome = AGENT_BUSY;
		answer->busy_job = body_string(answer->body, "job_id");
	} else if (strcmp(code, "stale_fence") == 0 &&
		json_object_object_get_ex(answer->body, "newest_fence", &fence)) {
		answer->outcome = AGENT_STALE;
		answer->newest_fence = json_object_get_uint64(fence);
	} else if (strcmp(code, "stdin_closed") == 0) {
		answer_refusal(answer, 409, code, err);
		answer->outcome = AGENT_STDIN_CLOSED;
		err->code = ERR_CLOSED;
	} else {
		answer_refusal(answer, 409, code, err);
	}
}

/* Whoever is at that address says of itself to be another one, though it took the token. */
static bool
answer_is_strange(const struct agent_answer *answer, const struct agent_call *call)
{
	const char *uid = call->job_id[0] == '\0' ? body_string(answer->body, "sandbox_uid") : "";

	return *uid != '\0' && strcmp(uid, call->peer->uid) != 0;
}

static void
answer_read(struct agent_answer *answer, const struct agent_call *call, int status, struct err *err)
{
	const char *code = body_string(answer->body, "code");

	if (status == 200 && answer_is_strange(answer, call)) {
		answer->outcome = AGENT_DENIED;
		answer->err = err;
		err_set(err, ERR_DENIED, "another sandbox's agent answered");
		return;
	}
	if (status == 200 && call->job_id[0] != '\0' &&
		strcmp(body_string(answer->body, "job_id"), call->job_id) != 0) {
		answer->outcome = AGENT_LOST;
		answer->err = err;
		err_set(err, ERR_INTERNAL, "the agent answered for another job");
	} else if (status == 200) {
		answer->outcome = AGENT_JOB;
	} else if (status == 409) {
		answer_conflict(answer, code, err);
	} else if (status == 404 && strcmp(code, "unknown_job") == 0) {
		answer->outcome = AGENT_UNKNOWN_JOB;
	} else {
		answer_refusal(answer, status, code, err);
	}
}

static void
call_on_done(const struct http_head *head, struct evbuffer *text, void *arg)
{
	struct agent_call *call = arg;
	struct agent_answer answer = { .outcome = AGENT_LOST };
	size_t len = evbuffer_get_length(text);
	const char *bytes = len > 0 ? (const char *)evbuffer_pullup(text, -1) : "";
	AUTO_JSON struct json_object *body = NULL;
	struct err err = { .code = ERR_NONE };
	int status = http_head_status(head);

	body = json_parse(bytes, len, &err);
	evbuffer_drain(text, len);
	answer.body = body;
	if (status == 200 && !json_object_is_type(body, json_type_object)) {
		answer.err = &err;
		if (body != NULL)
			err_set(&err, ERR_INTERNAL, "not an object");
		err_prefix(&err, "the agent's answer");
	} else {
		answer_read(&answer, call, status, &err);
	}
	call_finish(call, &answer);
}

static void
call_on_failed(const struct err *why, enum http_sent sent, void *arg)
{
	struct err err = *why;
	struct agent_answer answer = {
		.outcome = sent == HTTP_NOT_SENT ? AGENT_NOT_SENT : AGENT_LOST,
		.err = &err,
	};

	if (err.code == ERR_UNAVAILABLE)
		err.code = ERR_AGENT_UNREACHABLE;
	call_finish(arg, &answer);
}

static int
call_send(struct agent_call *call, const struct agent_request *request, struct err *err)
{
	const char *headers[5];

	agent_peer_headers(call->peer, headers);
	return http_call_start(call->peer->pool,
		&(struct http_call_options){
			.method = request->method,
			.target = request->target,
			.headers = headers,
			.content_type = request->is_json ? "application/json" : NULL,
			.body = request->data,
			.body_len = request->len,
			/* The agent would not run a job twice, but whether to ask again is the caller's word. */
			.idempotent = strcmp(request->method, "GET") == 0,
			.timeout_ms = request->timeout_ms,
			.max_response_bytes = request->max_answer,
			.done = call_on_done,
			.failed = call_on_failed,
			.arg = call,
		},
		&call->http, err);
}

static struct agent_call *
call_create(struct agent_peer *peer, const char *job_id, agent_done_f *done, void *arg)
{
	struct agent_call *call = alloc_zero(1, sizeof *call);

	call->peer = peer;
	call->done = done;
	call->arg = arg;
	if (!text_copy(call->job_id, sizeof call->job_id, job_id))
		call->job_id[0] = '\0';
	peer->calls++;
	return call;
}

static int
call_start(
	struct agent_call *call, const struct agent_request *request, struct agent_call **ret_call, struct err *err)
{
	if (call_send(call, request, err) < 0) {
		call_return_acks(call);
		call_free(call);
		return -1;
	}
	*ret_call = call;
	return 0;
}

int
agent_request_start(struct agent_peer *peer, const struct agent_request *request, agent_done_f *done, void *arg,
	struct agent_call **ret_call, struct err *err)
{
	return call_start(call_create(peer, "", done, arg), request, ret_call, err);
}

static bool
is_ours(const char *name)
{
	static const char *const names[] = { "job_id", "fence", "lane", "timeout_ms", "kill_grace_ms", "ack" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

/* The spec without fields that are ours: the very same object, nearly always. Owned by the caller. */
static struct json_object *
spec_without_ours(struct json_object *spec)
{
	const struct lh_entry *entry;
	struct json_object *copy;
	bool ours = false;

	if (spec == NULL)
		return must_alloc(json_object_new_object());
	lh_foreach(json_object_get_object(spec), entry) ours = ours || is_ours(lh_entry_k(entry));
	if (!ours)
		return json_object_get(spec);
	copy = must_alloc(json_object_new_object());
	json_object_object_foreach(spec, other, member) if (!is_ours(other))
		json_object_object_add(copy, other, json_object_get(member));
	return copy;
}

/* The body of an exec: the spec's text, our fields behind it. malloc'ed. */
static char *
exec_body(const struct agent_exec *exec, struct json_object *acks)
{
	AUTO_JSON struct json_object *spec = spec_without_ours(exec->spec);
	AUTO_JSON struct json_object *lane = must_alloc(
		json_object_new_string(exec->lane != NULL ? exec->lane : ""));
	size_t len;
	const char *text = json_text(spec, &len);

	/* Without its closing brace. */
	return alloc_format("%.*s%s\"job_id\":\"%s\",\"fence\":%llu,\"lane\":%s,\"timeout_ms\":%lld,"
			    "\"kill_grace_ms\":%lld%s%s}",
		(int)len - 1, text, len > 2 ? "," : "", exec->job_id, (unsigned long long)exec->fence,
		json_text(lane, NULL), (long long)exec->timeout_ms, (long long)exec->kill_grace_ms,
		acks != NULL ? ",\"ack\":" : "", acks != NULL ? json_text(acks, NULL) : "");
}

int
agent_exec_start(struct agent_client *client, const struct agent_target *target, const struct agent_exec *exec,
	agent_done_f *done, void *arg, struct agent_call **ret_call, struct err *err)
{
	AUTO_FREE char *body = NULL;
	struct agent_peer *peer;
	struct agent_call *call;

	if (!id_is_uuid(exec->job_id))
		return err_set(err, ERR_INVALID, "a job id must be a UUID");
	if (agent_peer_get(client, target, &peer, err) < 0)
		return -1;
	call = call_create(peer, exec->job_id, done, arg);
	call->acks = agent_peer_take_acks(peer);
	body = exec_body(exec, call->acks);
	return call_start(call,
		&(struct agent_request){
			.method = "POST",
			.target = "/exec",
			.data = body,
			.len = strlen(body),
			.is_json = true,
			.timeout_ms = exec->timeout_ms + exec->kill_grace_ms + EXEC_GUARD_MS,
			.max_answer = MAX_JOB,
		},
		ret_call, err);
}

int
agent_job_get(struct agent_client *client, const struct agent_target *target, const char *job_id, int64_t wait_ms,
	agent_done_f *done, void *arg, struct agent_call **ret_call, struct err *err)
{
	struct agent_peer *peer;
	char path[96];

	if (!id_is_uuid(job_id))
		return err_set(err, ERR_INVALID, "a job id must be a UUID");
	if (agent_peer_get(client, target, &peer, err) < 0)
		return -1;
	snprintf(path, sizeof path, "/jobs/%s?wait_ms=%lld", job_id, (long long)(wait_ms > 0 ? wait_ms : 0));
	return call_start(call_create(peer, job_id, done, arg),
		&(struct agent_request){
			.method = "GET",
			.target = path,
			.timeout_ms = (wait_ms > 0 ? wait_ms : 0) + GET_GUARD_MS,
			.max_answer = MAX_JOB,
		},
		ret_call, err);
}

/* POST /jobs/{id}/{verb}, which answers the job. */
struct job_post {
	const char *job_id, *verb;
	int64_t timeout_ms;
	agent_done_f *done;
	void *arg;
};

static int
job_post_start(struct agent_client *client, const struct agent_target *target, const struct job_post *post,
	struct agent_call **ret_call, struct err *err)
{
	struct agent_peer *peer;
	char path[96];

	if (!id_is_uuid(post->job_id))
		return err_set(err, ERR_INVALID, "a job id must be a UUID");
	if (agent_peer_get(client, target, &peer, err) < 0)
		return -1;
	snprintf(path, sizeof path, "/jobs/%s/%s", post->job_id, post->verb);
	return call_start(call_create(peer, post->job_id, post->done, post->arg),
		&(struct agent_request){
			.method = "POST",
			.target = path,
			.timeout_ms = post->timeout_ms,
			.max_answer = MAX_JOB,
		},
		ret_call, err);
}

int
agent_job_cancel(struct agent_client *client, const struct agent_target *target, const char *job_id,
	agent_done_f *done, void *arg, struct agent_call **ret_call, struct err *err)
{
	const struct job_post post = { job_id, "cancel", CANCEL_TIMEOUT_MS, done, arg };

	return job_post_start(client, target, &post, ret_call, err);
}

int
agent_job_bar(struct agent_client *client, const struct agent_target *target, const char *job_id,
	agent_done_f *done, void *arg, struct agent_call **ret_call, struct err *err)
{
	const struct job_post post = { job_id, "bar", GET_GUARD_MS, done, arg };

	return job_post_start(client, target, &post, ret_call, err);
}

/* What a GET asks for, and who is told. */
struct look {
	const char *target;
	int64_t timeout_ms;
	size_t max_answer;
	agent_done_f *done;
	void *arg;
};

static int
look_start(struct agent_client *client, const struct agent_target *target, const struct look *look,
	struct agent_call **ret_call, struct err *err)
{
	struct agent_peer *peer;

	if (agent_peer_get(client, target, &peer, err) < 0)
		return -1;
	return agent_request_start(peer,
		&(struct agent_request){
			.method = "GET",
			.target = look->target,
			.timeout_ms = look->timeout_ms,
			.max_answer = look->max_answer,
		},
		look->done, look->arg, ret_call, err);
}

int
agent_health(struct agent_client *client, const struct agent_target *target, int64_t timeout_ms, agent_done_f *done,
	void *arg, struct agent_call **ret_call, struct err *err)
{
	const struct look look = { "/health", timeout_ms, MAX_HEALTH, done, arg };

	return look_start(client, target, &look, ret_call, err);
}

int
agent_usage(struct agent_client *client, const struct agent_target *target, int64_t timeout_ms, agent_done_f *done,
	void *arg, struct agent_call **ret_call, struct err *err)
{
	const struct look look = { "/usage", timeout_ms, MAX_HEALTH, done, arg };

	return look_start(client, target, &look, ret_call, err);
}

int
agent_job_list(struct agent_client *client, const struct agent_target *target, agent_done_f *done, void *arg,
	struct agent_call **ret_call, struct err *err)
{
	const struct look look = { "/jobs", GET_GUARD_MS, MAX_LIST, done, arg };

	return look_start(client, target, &look, ret_call, err);
}

void
agent_call_cancel(struct agent_call *call)
{
	http_call_cancel(call->http);
	call_return_acks(call);
	call_free(call);
}
