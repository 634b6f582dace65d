/* server.c - authorisation and routes. */
/* SPDX-License-Identifier: MIT */
#include "agent/server.h"

#include "base/alloc.h"
#include "agent/answer.h"
#include "agent/archive.h"
#include "agent/command.h"
#include "agent/config.h"
#include "agent/files/routes.h"
#include "agent/job.h"
#include "agent/job_routes.h"
#include "agent/journal.h"
#include "agent/lane.h"
#include "agent/request.h"
#include "agent/spool.h"
#include "agent/terminal/terminals.h"
#include "agent/tar/archive_call.h"
#include "agent/usage.h"
#include "agent/waiter.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"
#include "base/json.h"
#include "base/text.h"
#include "http/http_parser.h"
#include "http/http_server.h"

#include <config.h>
#include <event2/buffer.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

enum { SERVER_MAX_SMALL_BODY = 1 << 20, SERVER_MAX_CONNECTIONS = 4096, SERVER_MAX_HEADER = 16 << 10 };

struct server {
	struct event_base *base;
	const struct agent_config *config;
	struct http_server *http;
	struct command_set *commands;
	struct helper_set *helpers;
	struct terminals *terminals;
	struct archive *archive;
	struct journal *journal;
	struct lane_table *lanes;
	struct usage *usage; /* NULL: the server counts */
	char epoch[ID_UUID_SIZE];
	bool stopping;
};

static bool
server_header_is(struct http_exchange *exchange, const char *name, const char *wanted)
{
	const char *value = http_head_header(http_exchange_head(exchange), name);

	return value != NULL && id_secret_equal(value, strlen(value), wanted, strlen(wanted));
}

/* The token is never kept here: what is compared are digests. */
static bool
server_token_is_right(struct server *server, struct http_exchange *exchange)
{
	const char *token = http_head_header(http_exchange_head(exchange), "X-Orchard-Token");
	char hex[TEXT_SHA256_HEX_SIZE];

	if (token == NULL)
		return false;
	text_sha256_hex(token, strlen(token), hex);
	return id_secret_equal(
		hex, sizeof hex - 1, server->config->token_sha256, sizeof server->config->token_sha256 - 1);
}

static void
server_health(struct server *server, struct http_exchange *exchange)
{
	struct json_object *body = json_object_new_object(), *journal = json_object_new_object();
	struct json_object *spool = json_object_new_object();

	json_object_object_add(body, "status", json_object_new_string("ok"));
	json_object_object_add(body, "sandbox_id", json_object_new_string(server->config->sandbox_id));
	json_object_object_add(body, "sandbox_uid", json_object_new_string(server->config->sandbox_uid));
	json_object_object_add(body, "epoch", json_object_new_string(server->epoch));
	json_object_object_add(body, "version", json_object_new_string(PACKAGE_VERSION));
	json_object_object_add(body, "newest_fence", json_object_new_int64(lane_newest_fence(server->lanes)));
	json_object_object_add(body, "running", json_object_new_int64(lane_running(server->lanes)));
	json_object_object_add(
		body, "terminals", json_object_new_int64((int64_t)terminals_count(server->terminals)));
	json_object_object_add(journal, "jobs", json_object_new_int64((int64_t)journal_jobs(server->journal)));
	json_object_object_add(journal, "bytes", json_object_new_int64(journal_bytes(server->journal)));
	json_object_object_add(body, "journal", journal);
	json_object_object_add(spool, "jobs", json_object_new_int64((int64_t)archive_jobs(server->archive)));
	json_object_object_add(
		spool, "bytes", json_object_new_int64((int64_t)spool_store_bytes(archive_store(server->archive))));
	json_object_object_add(body, "spool", spool);
	answer_json(exchange, 200, body);
}

static void
server_list(struct server *server, struct http_exchange *exchange)
{
	struct json_object *body = json_object_new_object(), *jobs = json_object_new_array();
	const struct job *job;

	for (job = journal_first(server->journal); job != NULL; job = journal_next(job)) {
		struct json_object *item = json_object_new_object();

		json_object_object_add(item, "job_id", json_object_new_string(job->id));
		json_object_object_add(item, "lane", json_object_new_string(job->lane));
		json_object_object_add(item, "fence", json_object_new_int64(job->fence));
		json_object_object_add(item, "state", json_object_new_string(job->ended ? "ended" : "running"));
		json_object_array_add(jobs, item);
	}
	json_object_object_add(body, "jobs", jobs);
	answer_json(exchange, 200, body);
}

/* NULL: answered. */
static struct json_object *
server_body(struct http_exchange *exchange, struct evbuffer *text)
{
	size_t len = evbuffer_get_length(text);
	struct json_object *body;
	struct err err;

	body = json_parse((const char *)evbuffer_pullup(text, -1), len, &err);
	if (body != NULL && json_object_is_type(body, json_type_object))
		return body;
	answer_error(exchange, 422, "invalid", body == NULL ? err.msg : "the body must be a JSON object");
	json_object_put(body);
	return NULL;
}

/* False: answered. */
static bool
server_acknowledge(struct server *server, struct http_exchange *exchange, struct json_object *body)
{
	struct json_object *list = NULL;
	uint8_t id[16];
	size_t count;

	json_object_object_get_ex(body, "ack", &list);
	if (list == NULL)
		return true;
	count = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : SIZE_MAX;
	for (size_t i = 0; count != SIZE_MAX && i < count; i++) {
		struct json_object *item = json_object_array_get_idx(list, i);

		if (!json_object_is_type(item, json_type_string) ||
			!id_uuid_bytes(json_object_get_string(item), id))
			count = SIZE_MAX;
	}
	if (count == SIZE_MAX) {
		answer_error(exchange, 422, "invalid", "ack must be an array of job ids");
		return false;
	}
	for (size_t i = 0; i < count; i++)
		if (id_uuid_bytes(json_object_get_string(json_object_array_get_idx(list, i)), id))
			journal_ack(server->journal, id);
	return true;
}

static void
server_refuse_lane(
	struct http_exchange *exchange, enum lane_answer answer, const struct job *running, int64_t newest)
{
	struct json_object *body = json_object_new_object();
	bool busy = answer == LANE_BUSY;

	json_object_object_add(body, "code", json_object_new_string(busy ? "busy" : "stale_fence"));
	json_object_object_add(body, "detail",
		json_object_new_string(busy ? "the lane runs another job" : "the fence must exceed newest_fence"));
	if (busy)
		json_object_object_add(body, "job_id", json_object_new_string(running->id));
	else
		json_object_object_add(body, "newest_fence", json_object_new_int64(newest));
	answer_json(exchange, 409, body);
}

/* NULL: answered with why nothing may start. */
static struct job *
server_admit(struct server *server, struct http_exchange *exchange, const struct exec_request *request)
{
	struct job *running = NULL;
	enum lane_answer answer;
	struct job *job;
	int64_t newest = 0;

	if (server->stopping) {
		answer_error(exchange, 503, "stopping", "the sandbox is being ended");
		return NULL;
	}
	answer = lane_check(server->lanes, request->lane, request->fence, &running, &newest);
	if (answer == LANE_FULL) {
		answer_error(exchange, 503, "lanes_full", "too many lanes run a command");
		return NULL;
	}
	if (answer != LANE_FREE) {
		server_refuse_lane(exchange, answer, running, newest);
		return NULL;
	}
	if (!journal_make_room(server->journal, clock_boot_ms())) {
		answer_error(exchange, 503, "journal_full", "too many results wait to be acknowledged");
		return NULL;
	}
	job = job_create(request->job_id, request->lane, request->fence, (size_t)request->max_output_bytes);
	job_spool_to(job, archive_store(server->archive), (uint64_t)request->spool_bytes);
	job_hold(job, request->hold_ms);
	journal_add(server->journal, job);
	lane_enter(server->lanes, job);
	return job;
}

static void
server_exec(struct server *server, struct http_exchange *exchange, const struct exec_request *request)
{
	struct job *job;
	uint8_t id[16];

	id_uuid_bytes(request->job_id, id);
	job = journal_find(server->journal, id);
	if (job == NULL && journal_is_forgotten(server->journal, id)) {
		answer_error(exchange, 410, "forgotten_job", "it ran, and its result was acknowledged or dropped");
		return;
	}
	if (job == NULL) {
		job = server_admit(server, exchange, request);
		if (job == NULL)
			return;
		command_start(server->commands, job, request);
	}
	waiter_attach(server->base, exchange, job, WAITER_NO_LIMIT);
}

static void
server_on_exec(struct http_exchange *exchange, struct evbuffer *text, void *arg)
{
	AUTO_JSON struct json_object *body = server_body(exchange, text);
	struct server *server = arg;
	struct exec_request request;
	struct err err;

	if (body == NULL || !server_acknowledge(server, exchange, body))
		return;
	evbuffer_drain(text, evbuffer_get_length(text));
	if (exec_request_read(body, &request, &err) < 0) {
		answer_error(exchange, 422, "invalid", err.msg);
		return;
	}
	server_exec(server, exchange, &request);
	exec_request_fini(&request);
}

static void
server_on_ack(struct http_exchange *exchange, struct evbuffer *text, void *arg)
{
	AUTO_JSON struct json_object *body = server_body(exchange, text);

	if (body != NULL && server_acknowledge(arg, exchange, body))
		answer_json(exchange, 200, json_object_new_object());
}

static void
server_take_exec(struct server *server, struct http_exchange *exchange)
{
	int64_t max = server->config->request_max_bytes;
	AUTO_FREE char *words = NULL;

	if (http_exchange_length(exchange) <= max) {
		http_exchange_collect(exchange, (size_t)max, server_on_exec, server);
		return;
	}
	words = alloc_format("command, env and stdin take %lld bytes; the sandbox's memory allows %lld",
		(long long)http_exchange_length(exchange), (long long)max);
	answer_error(exchange, 413, "too_large", words);
}

static void
server_route(struct server *server, struct http_exchange *exchange)
{
	const struct http_head *head = http_exchange_head(exchange);
	const char *path = http_head_path(head);
	bool get = http_head_method(head) == HTTP_GET, post = http_head_method(head) == HTTP_POST;

	if (strncmp(path, "/jobs/", 6) == 0)
		job_routes_serve(server->base, server->journal, exchange, path + 6);
	else if (strncmp(path, "/files", 6) == 0 && (path[6] == '\0' || path[6] == '/'))
		files_serve(server->helpers, exchange, path + 6);
	else if (strncmp(path, "/pty", 4) == 0)
		terminals_serve(server->terminals, exchange, path + 4);
	else if (strcmp(path, "/archive") == 0)
		archive_serve(server->helpers, exchange);
	else if (strcmp(path, "/health") == 0 && get)
		server_health(server, exchange);
	else if (strcmp(path, "/jobs") == 0 && get)
		server_list(server, exchange);
	else if (strcmp(path, "/usage") == 0 && get)
		answer_json(exchange, 200, usage_json(server->usage));
	else if (strcmp(path, "/exec") == 0 && post)
		server_take_exec(server, exchange);
	else if (strcmp(path, "/ack") == 0 && post)
		http_exchange_collect(exchange, SERVER_MAX_SMALL_BODY, server_on_ack, server);
	else if (strcmp(path, "/health") == 0 || strcmp(path, "/jobs") == 0 || strcmp(path, "/usage") == 0 ||
		strcmp(path, "/exec") == 0 || strcmp(path, "/ack") == 0)
		answer_error(exchange, 405, "method_not_allowed", "this route takes another method");
	else
		answer_error(exchange, 404, "not_found", "no such route");
}

static void
server_on_request(struct http_exchange *exchange, void *arg)
{
	struct server *server = arg;
	bool token = server_token_is_right(server, exchange);
	bool sandbox = server_header_is(exchange, "X-Orchard-Sandbox", server->config->sandbox_uid);

	if (token && sandbox)
		server_route(server, exchange);
	else
		answer_error(exchange, 403, "denied", "wrong token or sandbox");
}

static struct archive *
server_archive(const struct agent_config *config)
{
	struct archive_options options = {
		.dir_fd = config->spool_fd,
		.working_dir = config->working_dir,
		.max_bytes = config->spool_total_bytes,
	};

	return archive_create(&options);
}

int
server_create(struct event_base *base, int listen_fd, const struct agent_config *config, struct server **ret_server,
	struct err *err)
{
	struct server *server = alloc_zero(1, sizeof *server);
	struct http_server_options options = {
		.max_header_bytes = SERVER_MAX_HEADER,
		.max_connections = SERVER_MAX_CONNECTIONS,
		.header_timeout_ms = 10000,
		.body_timeout_ms = 60000,
		.keepalive_timeout_ms = 75000,
		.on_request = server_on_request,
		.arg = server,
	};

	server->base = base;
	server->config = config;
	id_uuid4(server->epoch);
	server->archive = server_archive(config);
	server->journal = journal_create(config->journal_jobs, config->journal_bytes, server->archive);
	server->lanes = lane_table_create();
	server->usage = config->in_container ? usage_open(USAGE_ROOT) : NULL;
	if (http_server_create(base, listen_fd, &options, &server->http, err) < 0) {
		server_free(server);
		return -1;
	}
	*ret_server = server;
	return 0;
}

void
server_free(struct server *server)
{
	if (server->http != NULL)
		http_server_free(server->http);
	lane_table_free(server->lanes);
	journal_free(server->journal);
	archive_free(server->archive);
	usage_close(server->usage);
	free(server);
}

void
server_set_commands(struct server *server, struct command_set *commands, struct helper_set *helpers)
{
	server->commands = commands;
	server->helpers = helpers;
}

void
server_set_terminals(struct server *server, struct terminals *terminals)
{
	server->terminals = terminals;
}

void
server_on_job_end(struct server *server, struct job *job)
{
	lane_leave(server->lanes, job);
	job_end(job);
	journal_on_end(server->journal, job);
}

void
server_stop(struct server *server)
{
	server->stopping = true;
}
