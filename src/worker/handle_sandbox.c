/* handle_sandbox.c - /sandboxes: create, list, look, change, delete, wait, heartbeat. */
/* SPDX-License-Identifier: MIT */
#include "worker/routes.h"

#include "base/err.h"
#include "base/json.h"
#include "domain/idempotency.h"
#include "domain/sandbox/sandbox.h"
#include "worker/api.h"
#include "worker/key.h"
#include "worker/query.h"
#include "worker/request.h"
#include "worker/respond.h"

#include <json-c/json.h>
#include <math.h>
#include <string.h>

enum { LIST_DEFAULT = 100, LIST_MAX = 1000, WAIT_DEFAULT_MS = 300 * 1000 };
static const double max_life_seconds = 87600.0 * 3600; /* as at creation */

static void
respond_create_err(struct request *request, const struct err *err)
{
	static const struct respond_fault image = { PROBLEM_IMAGE_INVALID, "body", "image", "value_error" };

	if (err->code == ERR_INVALID)
		respond_fault(request, &image, "%s", err->msg);
	else if (err->code == ERR_DENIED)
		respond_problem(request, PROBLEM_IMAGE_NOT_ALLOWED, "%s", err->msg);
	else
		respond_err(request, err);
}

static void
create_on_entered(const struct sandbox_record *record, bool existing, const struct err *why, void *arg)
{
	struct request *request = request_ref_take(arg);

	(void)existing;
	if (request == NULL)
		return;
	if (why != NULL)
		respond_create_err(request, why);
	else
		respond_json(request, 200, sandbox_created_json(request->api->service, record));
}

static void
created_on_done(struct json_object *answer, const struct err *why, void *arg)
{
	struct request *request = request_ref_take(arg);

	if (request == NULL)
		return;
	if (why != NULL)
		respond_create_err(request, why);
	else
		respond_json(request, 200, json_object_get(answer));
}

void
handle_sandbox_create(struct request *request)
{
	struct idempotency_key key;
	struct json_reader reader;
	struct sandbox_spec spec;

	json_reader_init(&reader, request->body);
	sandbox_spec_read(request->api->config, &reader, &spec);
	if (reader.faults != NULL) {
		respond_faults(request, &reader);
		return;
	}
	if (!key_read(request, NULL, &key))
		return;
	if (key.name == NULL)
		sandbox_create(
			request->api->service, request->tenant, &spec, create_on_entered, request_ref(request));
	else
		sandbox_create_keyed(
			request->api->service, request->tenant, &spec, &key, created_on_done, request_ref(request));
}

/* --- list --- */

struct list_query {
	char *label, *status, *cursor; /* owned */
	struct sandbox_filter filter; /* borrows from them */
};

static void
list_query_fini(struct list_query *query)
{
	free(query->label);
	free(query->status);
	free(query->cursor);
}

static bool
list_query_label(struct request *request, struct list_query *query)
{
	static const struct respond_fault fault = { PROBLEM_INVALID_REQUEST, "query", "label", "value_error" };

	if (!query_text(request, "label", &query->label))
		return false;
	if (query->label == NULL)
		return true;
	if (strchr(query->label, '=') == NULL || *query->label == '=') {
		respond_fault(request, &fault, "must be NAME=VALUE");
		return false;
	}
	query->filter.label = query->label;
	return true;
}

static bool
list_query_status(struct request *request, struct list_query *query)
{
	static const enum sandbox_status seen[] = { SANDBOX_PENDING, SANDBOX_UNSCHEDULABLE, SANDBOX_READY,
		SANDBOX_FAILED, SANDBOX_PAUSED };
	static const struct respond_fault fault = { PROBLEM_INVALID_REQUEST, "query", "status", "value_error" };

	query->filter.status = -1;
	if (!query_text(request, "status", &query->status))
		return false;
	if (query->status == NULL)
		return true;
	for (size_t i = 0; i < sizeof seen / sizeof seen[0]; i++) {
		if (strcmp(query->status, sandbox_status_name(seen[i])) == 0) {
			query->filter.status = (int)seen[i];
			return true;
		}
	}
	respond_fault(request, &fault, "must be pending, unschedulable, ready, failed or paused");
	return false;
}

static bool
list_query_read(struct request *request, struct list_query *query)
{
	query->filter.limit = LIST_DEFAULT;
	if (!list_query_label(request, query) || !list_query_status(request, query) ||
		!query_limit(request, LIST_MAX, &query->filter.limit) ||
		!query_text(request, "cursor", &query->cursor))
		return false;
	query->filter.cursor = query->cursor;
	return true;
}

static void
respond_list(struct request *request, struct json_object *list, const char *cursor)
{
	struct json_object *body = json_object_new_object();

	json_object_object_add(body, "sandboxes", list);
	json_object_object_add(body, "next_cursor", *cursor != '\0' ? json_object_new_string(cursor) : NULL);
	respond_json(request, 200, body);
}

void
handle_sandbox_list(struct request *request)
{
	static const struct respond_fault bad_cursor = { PROBLEM_INVALID_REQUEST, "query", "cursor",
		"value_error" };
	struct list_query query = { 0 };
	struct json_object *list = NULL;
	char cursor[96];
	struct err err;

	if (list_query_read(request, &query)) {
		if (sandbox_list(request->api->service, request->tenant, &query.filter, &list, cursor, &err) >= 0)
			respond_list(request, list, cursor);
		else if (err.code == ERR_INVALID)
			respond_fault(request, &bad_cursor, "%s", err.msg);
		else
			respond_err(request, &err);
	}
	list_query_fini(&query);
}

/* --- one sandbox --- */

static void
respond_record(struct request *request, const struct sandbox_record *record)
{
	respond_json(request, 200, sandbox_json(request->api->service, record));
}

static void
on_measured(struct json_object *json, void *arg)
{
	struct request *request = request_ref_take(arg);

	if (request != NULL)
		respond_json(request, 200, json);
	else
		json_object_put(json);
}

void
handle_sandbox_get(struct request *request)
{
	struct sandbox_record record;
	struct err err;

	if (sandbox_get(request->api->service, request->tenant, request->match.id, &record, &err) != 0)
		respond_err(request, &err);
	else
		sandbox_measure(request->api->service, &record, on_measured, request_ref(request));
}

/* -1 (unchanged) when the field is absent. */
static int64_t
read_life_ms(struct json_reader *reader, const char *field, double min)
{
	double seconds;

	if (!json_reader_number(reader, field, min, max_life_seconds, &seconds))
		return -1;
	return (int64_t)ceil(seconds * 1000);
}

static void
patch_on_changed(const struct sandbox_record *record, const struct err *why, void *arg)
{
	static const struct respond_fault bad_labels = { PROBLEM_INVALID_REQUEST, "body", "labels", "value_error" };
	struct request *request = request_ref_take(arg);

	if (request == NULL)
		return;
	if (why == NULL)
		respond_record(request, record);
	else if (why->code == ERR_INVALID)
		respond_fault(request, &bad_labels, "%s", why->msg);
	else
		respond_err(request, why);
}

void
handle_sandbox_patch(struct request *request)
{
	struct sandbox_change change = { 0 };
	struct json_reader reader;

	json_reader_init(&reader, request->body);
	json_reader_string_map(&reader, "labels", &change.labels);
	change.ttl_ms = read_life_ms(&reader, "ttl_seconds", 0.001);
	change.idle_timeout_ms = read_life_ms(&reader, "idle_timeout_seconds", 0); /* 0: off */
	if (reader.faults != NULL) {
		respond_faults(request, &reader);
		return;
	}
	json_reader_fini(&reader);
	sandbox_patch(request->api->service, request->tenant, request->match.id, &change, patch_on_changed,
		request_ref(request));
}

/* {"status": word, "sandbox_id": id} */
static void
respond_done(struct request *request, const char *word)
{
	struct json_object *body = json_object_new_object();

	json_object_object_add(body, "status", json_object_new_string(word));
	json_object_object_add(body, "sandbox_id", json_object_new_string(request->match.id));
	respond_json(request, 200, body);
}

static void
delete_on_done(const struct err *why, void *arg)
{
	struct request *request = request_ref_take(arg);

	if (request == NULL)
		return;
	if (why != NULL)
		respond_err(request, why);
	else
		respond_done(request, "deleted");
}

void
handle_sandbox_delete(struct request *request)
{
	sandbox_delete(
		request->api->service, request->tenant, request->match.id, delete_on_done, request_ref(request));
}

void
handle_sandbox_heartbeat(struct request *request)
{
	struct err err;

	if (sandbox_heartbeat(request->api->service, request->tenant, request->match.id, &err) != 0)
		respond_err(request, &err);
	else
		respond_done(request, "ok");
}

/* --- wait --- */

static void
wait_cancel(void *wait)
{
	sandbox_wait_cancel(wait);
}

static void
wait_on_done(const struct sandbox_record *record, const struct err *why, void *arg)
{
	struct request *request = arg;

	request_wait_done(request);
	if (why != NULL)
		respond_err(request, why);
	else
		respond_record(request, record);
}

void
handle_sandbox_wait(struct request *request)
{
	static const struct request_wait_ops ops = { .cancel = wait_cancel };
	struct sandbox_wait *wait = NULL;
	int64_t timeout_ms = WAIT_DEFAULT_MS;
	struct err err;

	if (!query_timeout_ms(request, &timeout_ms))
		return;
	if (sandbox_wait_start(request->api->service, request->tenant, request->match.id, timeout_ms, wait_on_done,
		    request, &wait, &err) != 0)
		respond_err(request, &err);
	else if (wait != NULL) /* else it was answered already */
		request_wait(request, wait, &ops);
}
