/* job_routes.c - a table of what can be done with one job. */
/* SPDX-License-Identifier: MIT */
#include "agent/job_routes.h"

#include "agent/answer.h"
#include "agent/command.h"
#include "agent/journal.h"
#include "agent/output_poll.h"
#include "agent/query.h"
#include "agent/stdin_post.h"
#include "agent/waiter.h"
#include "base/id.h"
#include "http/http_parser.h"
#include "http/http_server.h"

#include <json-c/json.h>
#include <string.h>

#define JOB_MAX_WAIT_MS ((int64_t)3600 * 1000)

static void
job_on_get(struct event_base *base, struct http_exchange *exchange, struct job *job)
{
	int64_t wait_ms = 0;

	if (query_int(exchange, "wait_ms", JOB_MAX_WAIT_MS, &wait_ms))
		waiter_attach(base, exchange, job, wait_ms);
}

static void
job_on_cancel(struct event_base *base, struct http_exchange *exchange, struct job *job)
{
	command_cancel(job);
	waiter_attach(base, exchange, job, WAITER_NO_LIMIT);
}

static void
job_on_stdin(struct event_base *base, struct http_exchange *exchange, struct job *job)
{
	(void)base;
	stdin_post_attach(exchange, job);
}

static void
job_on_bar(struct event_base *base, struct http_exchange *exchange, struct job *job)
{
	waiter_attach(base, exchange, job, 0);
}

static const struct job_route {
	const char *path;
	enum http_method method;
	bool archived; /* works with the output alone, too */
	void (*serve)(struct event_base *base, struct http_exchange *exchange, struct job *job);
} job_routes[] = {
	{ "", HTTP_GET, false, job_on_get },
	{ "/cancel", HTTP_POST, false, job_on_cancel },
	{ "/bar", HTTP_POST, false, job_on_bar },
	{ "/output", HTTP_GET, true, output_poll_attach },
	{ "/stdin", HTTP_POST, true, job_on_stdin },
};

static const struct job_route *
job_route_find(const char *path)
{
	for (size_t i = 0; i < sizeof job_routes / sizeof job_routes[0]; i++)
		if (strcmp(job_routes[i].path, path) == 0)
			return &job_routes[i];
	return NULL;
}

static void
answer_unknown(struct http_exchange *exchange, const struct journal *journal)
{
	struct json_object *body = json_object_new_object();

	json_object_object_add(body, "code", json_object_new_string("unknown_job"));
	json_object_object_add(body, "detail", json_object_new_string("this agent has no such job"));
	json_object_object_add(body, "age_ms", json_object_new_int64(journal_age_ms(journal)));
	answer_json(exchange, 404, body);
}

void
job_routes_serve(struct event_base *base, struct journal *journal, struct http_exchange *exchange, const char *rest)
{
	size_t len = strcspn(rest, "/");
	const struct job_route *route = job_route_find(rest + len);
	char id_text[ID_UUID_SIZE] = "";
	struct job *job = NULL;
	uint8_t id[16];

	if (route == NULL) {
		answer_error(exchange, 404, "not_found", "no such route");
		return;
	}
	if (http_head_method(http_exchange_head(exchange)) != route->method) {
		answer_error(
			exchange, 405, "method_not_allowed", route->method == HTTP_POST ? "use POST" : "use GET");
		return;
	}
	if (len < sizeof id_text)
		memcpy(id_text, rest, len);
	if (id_uuid_bytes(id_text, id)) {
		job = route->archived ? journal_find_output(journal, id) : journal_find(journal, id);
		if (job == NULL && route->serve == job_on_bar)
			journal_bar(journal, id);
	}
	if (job == NULL)
		answer_unknown(exchange, journal);
	else
		route->serve(base, exchange, job);
}
