/* driver_asker_answer.c - what the spawner says, handed on to whoever asked. */
/* SPDX-License-Identifier: MIT */
#include "backend/driver_asker.h"

#include "base/err.h"
#include "base/json.h"

#include <event2/buffer.h>
#include <stdlib.h>

/* --- the end of a request --- */

void
asker_request_free(struct asker_request *request)
{
	if (request->text != NULL)
		evbuffer_free(request->text);
	free(request);
}

static void
resources_end(struct asker_request *request, const struct err *why)
{
	size_t len = evbuffer_get_length(request->text);
	struct json_object *resources = NULL;
	struct err err;

	if (why == NULL) {
		resources = json_parse((const char *)evbuffer_pullup(request->text, -1), len, &err);
		why = resources == NULL ? &err : NULL;
	}
	request->resources(resources, why, request->arg);
}

void
asker_request_end(
	struct asker *asker, struct asker_request *request, const struct spawn_reply *reply, const struct err *why)
{
	struct driver_made made = { 0 };

	TAILQ_REMOVE(&asker->requests, request, link);
	if (why == NULL && request->op == SPAWN_CREATE) {
		made = (struct driver_made){
			.endpoint = reply->endpoint, .pid = (pid_t)reply->pid, .pid_start = reply->pid_start
		};
		request->created(&made, NULL, request->arg);
	} else if (request->op == SPAWN_CREATE && why->code == ERR_EXISTS && reply != NULL) {
		made.other_uid = reply->other_uid;
		request->created(&made, why, request->arg);
	} else if (request->op == SPAWN_CREATE) {
		request->created(NULL, why, request->arg);
	} else if (request->op == SPAWN_HOST) {
		request->host(NULL, why, request->arg);
	} else if (request->op == SPAWN_STAT) {
		request->usage(NULL, why, request->arg);
	} else if (request->op == SPAWN_RESOURCES) {
		resources_end(request, why);
	} else {
		request->done(why, request->arg);
	}
	asker_request_free(request);
}

static struct asker_request *
request_find(struct asker *asker, uint64_t seq)
{
	struct asker_request *request;

	TAILQ_FOREACH(request, &asker->requests, link)
	if (request->seq == seq && request->sent)
		return request;
	return NULL;
}

/* --- answers --- */

static struct driver_item
item_of(const struct spawn_item *item)
{
	return (struct driver_item){
		.id = item->id,
		.uid = item->uid,
		.pid = (pid_t)item->pid,
		.pid_start = item->pid_start,
		.known_ms = item->known_ms,
		.alive = item->alive,
		.oom_killed = item->oom_killed,
		.wait_status = item->wait_status,
		.reason = item->reason,
	};
}

static void
on_done(struct asker *asker, struct asker_request *request, const struct spawn_reply *reply)
{
	enum err_code code = reply->code > 0 && reply->code < ERR_CODE_COUNT ? (enum err_code)reply->code
									     : ERR_INTERNAL;
	struct err err;

	if (reply->code == ERR_NONE) {
		asker_request_end(asker, request, reply, NULL);
		return;
	}
	err_set(&err, code, "%s", reply->message);
	asker_request_end(asker, request, reply, &err);
}

static void
on_host(struct asker *asker, struct asker_request *request, const struct spawn_host *answer)
{
	struct driver_host host = {
		.usable = answer->usable,
		.problem = answer->problem,
		.cgroup_mode = answer->cgroup_mode,
		.missing = answer->missing,
		.cpu_milli = answer->cpu_milli,
		.memory_bytes = answer->memory_bytes,
		.networks = answer->networks,
		.sandboxes = answer->sandboxes,
		.creating = answer->creating,
	};

	TAILQ_REMOVE(&asker->requests, request, link);
	request->host(&host, NULL, request->arg);
	asker_request_free(request);
}

static void
on_usage(struct asker *asker, struct asker_request *request, const struct spawn_usage *answer)
{
	struct driver_usage usage = {
		.cpu_us = answer->cpu_us,
		.memory_bytes = answer->memory_bytes,
		.memory_peak_bytes = answer->memory_peak_bytes,
		.pids = answer->pids,
		.disk_bytes = answer->disk_bytes,
	};

	TAILQ_REMOVE(&asker->requests, request, link);
	request->usage(&usage, NULL, request->arg);
	asker_request_free(request);
}

static void
on_piece(struct asker_request *request, const struct spawn_piece *piece)
{
	if (piece->len <= sizeof piece->text && evbuffer_add(request->text, piece->text, piece->len) != 0)
		abort();
}

size_t
asker_answer_size(uint32_t op)
{
	switch (op) {
	case SPAWN_PROGRESS:
	case SPAWN_DONE:
		return sizeof(struct spawn_reply);
	case SPAWN_ITEM:
	case SPAWN_GONE:
	case SPAWN_SILENT:
		return sizeof(struct spawn_item);
	case SPAWN_HOST_INFO:
		return sizeof(struct spawn_host);
	case SPAWN_USAGE:
		return sizeof(struct spawn_usage);
	case SPAWN_PIECE:
		return sizeof(struct spawn_piece);
	default:
		return 0;
	}
}

void
asker_on_answer(struct asker *asker, const union asker_answer *answer)
{
	struct asker_request *request = request_find(asker, answer->head.seq);
	struct driver_item item;

	if (answer->head.op == SPAWN_GONE || answer->head.op == SPAWN_SILENT) {
		item = item_of(&answer->item);
		if (asker->gone != NULL)
			asker->gone(&item, asker->gone_arg);
	} else if (request == NULL) {
		return;
	} else if (answer->head.op == SPAWN_DONE) {
		on_done(asker, request, &answer->reply);
	} else if (answer->head.op == SPAWN_PROGRESS && request->progress != NULL) {
		request->progress(answer->reply.message, answer->reply.wait == SPAWN_WAIT_PLACE, request->arg);
	} else if (answer->head.op == SPAWN_ITEM && request->item != NULL) {
		item = item_of(&answer->item);
		request->item(&item, request->arg);
	} else if (answer->head.op == SPAWN_HOST_INFO && request->op == SPAWN_HOST) {
		on_host(asker, request, &answer->host);
	} else if (answer->head.op == SPAWN_USAGE && request->op == SPAWN_STAT) {
		on_usage(asker, request, &answer->usage);
	} else if (answer->head.op == SPAWN_PIECE && request->op == SPAWN_RESOURCES) {
		on_piece(request, &answer->piece);
	}
}
