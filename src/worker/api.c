/* api.c - the way of every request: route, key, id, perhaps other servers, body, handler. */
/* SPDX-License-Identifier: MIT */
#include "worker/api.h"

#include "base/err.h"
#include "base/json.h"
#include "base/log.h"
#include "conf/config.h"
#include "domain/sandbox/sandbox.h"
#include "http/http_server.h"
#include "ipc/shm.h"
#include "worker/auth.h"
#include "worker/body.h"
#include "worker/handshake.h"
#include "worker/request.h"
#include "worker/respond.h"
#include "worker/routes.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum { HALF_CLOSED_MS = 5000 };

void
api_count(struct api *api, enum metric metric, int64_t n)
{
	scoreboard_add(shm_scoreboard(api->shm), api->self, metric, n);
}

void
api_count_response(struct api *api, int status)
{
	if (status >= 500)
		api_count(api, METRIC_RESPONSES_5XX, 1);
	else if (status >= 400)
		api_count(api, METRIC_RESPONSES_4XX, 1);
	else
		api_count(api, METRIC_RESPONSES_2XX, 1);
}

/* False when the request has been refused (and is gone). */
static bool
authenticate(struct request *request)
{
	const struct config *config = request->api->config;
	const struct http_head *head = http_exchange_head(request->exchange);
	enum route_auth needed = request->match.route->auth;
	const char *x_api_key = http_head_header(head, "X-API-Key");
	const char *authorization = http_head_header(head, "Authorization");
	AUTO_SECRET char *socket_key = NULL;
	enum auth_result result;

	request->tenant = auth_open_tenant();
	if (needed == ROUTE_OPEN || !config->auth_enabled || (needed == ROUTE_METRICS && !config->metrics_auth))
		return true;
	result = auth_check(&config->api_keys, x_api_key, authorization, &request->tenant);
	if (result == AUTH_MISSING && needed == ROUTE_SOCKET) {
		socket_key = handshake_key(head);
		result = auth_check(&config->api_keys, socket_key, NULL, &request->tenant);
	}
	switch (result) {
	case AUTH_OK:
		return true;
	case AUTH_MISSING:
		respond_problem(request, PROBLEM_MISSING_API_KEY,
			"an API key is needed: send X-API-Key: KEY or Authorization: Bearer KEY");
		return false;
	case AUTH_WRONG:
		break;
	}
	respond_problem(request, PROBLEM_INVALID_API_KEY, "this API key is not known");
	return false;
}

static void
handle(struct request *request)
{
	if (request->match.route->body != BODY_NONE)
		body_collect(request);
	else
		request->match.route->handle(request);
}

static void
look_cancel(void *look)
{
	sandbox_look_cancel(look);
}

static void
on_looked(const struct err *why, void *arg)
{
	struct request *request = arg;

	request_wait_done(request);
	if (why != NULL)
		respond_err(request, why);
	else
		handle(request);
}

/* Another server may have it. */
static void
look(struct request *request)
{
	static const struct request_wait_ops ops = { .cancel = look_cancel };
	struct sandbox_ask *asked;
	struct err err;

	if (sandbox_look_start(request->api->service, request->tenant, request->match.id, on_looked, request,
		    &asked, &err) != 0)
		respond_err(request, &err);
	else
		request_wait(request, asked, &ops);
}

static void
run_route(struct request *request)
{
	if (!authenticate(request))
		return;
	if (!router_id_is_valid(&request->match))
		respond_problem(request, PROBLEM_NOT_FOUND, "no such %s",
			request->match.id_kind == ROUTER_ID_JOB ? "job" : "sandbox");
	else if (request->match.id_kind == ROUTER_ID_SANDBOX &&
		sandbox_must_look(request->api->service, request->tenant, request->match.id))
		look(request);
	else
		handle(request);
}

static void
add_allow(struct request *request)
{
	char allow[ROUTER_ALLOW_SIZE];

	router_allow(request->match.methods, allow);
	http_exchange_add_header(request->exchange, "Allow", allow);
}

static void
on_request(struct http_exchange *exchange, void *arg)
{
	struct request *request = request_create(arg, exchange);
	const struct http_head *head = http_exchange_head(exchange);

	api_count(request->api, METRIC_REQUESTS_TOTAL, 1);
	switch (router_find(routes, routes_count, http_head_method(head), http_head_path(head), &request->match)) {
	case ROUTER_FOUND:
		run_route(request);
		return;
	case ROUTER_NO_PATH:
		respond_problem(request, PROBLEM_NOT_FOUND, "there is nothing at this path");
		return;
	case ROUTER_OPTIONS:
		add_allow(request);
		respond_text(request, 204, NULL, NULL, 0);
		return;
	case ROUTER_NO_METHOD:
		break;
	}
	add_allow(request);
	respond_problem(request, PROBLEM_METHOD_NOT_ALLOWED, "%s is not possible here; Allow names what is",
		http_head_method_name(head));
}

/*
 * What the codec refuses by itself never was a request of ours (exchange is NULL), or is one whose body
 * broke off; that one is told by on_gone and freed there.
 */
static char *
format_error(struct http_exchange *exchange, int status, const char *detail,
	char ret_headers[HTTP_ERROR_HEADERS_SIZE], void *arg)
{
	const struct request *request = exchange != NULL ? http_exchange_data(exchange) : NULL;
	AUTO_JSON struct json_object *body = json_object_new_object();
	char made_up[ID_UUID_SIZE];
	const char *id = request != NULL ? request->id : made_up;
	struct log_ctx ctx = { .request_id = id };

	id_uuid4(made_up);
	json_object_object_add(body, "detail", json_object_new_string(detail));
	json_object_object_add(body, "code", json_object_new_string(problem_code_of_status(status)));
	json_object_object_add(body, "request_id", json_object_new_string(id));
	snprintf(ret_headers, HTTP_ERROR_HEADERS_SIZE, "X-Request-ID: %s\r\n", id);
	api_count_response(arg, status);
	log_write(LOG_LEVEL_DEBUG, &ctx, "refused with %d: %s", status, detail);
	return strdup(json_text(body, NULL));
}

static void
on_count(int change, void *arg)
{
	if (change == 0) {
		api_count(arg, METRIC_CONNECTIONS_REFUSED, 1);
		return;
	}
	api_count(arg, METRIC_CONNECTIONS, change);
	if (change > 0)
		api_count(arg, METRIC_CONNECTIONS_TOTAL, 1);
}

int
api_create(const struct api_options *options, struct api **ret_api, struct err *err)
{
	const struct config *config = options->config;
	struct api *api = calloc(1, sizeof *api);
	struct http_server_options server = {
		.max_header_bytes = (size_t)config->max_header_bytes,
		.max_connections = (uint32_t)config->max_connections,
		.header_timeout_ms = config->header_timeout_seconds * 1000,
		.body_timeout_ms = config->body_timeout_seconds * 1000,
		.keepalive_timeout_ms = config->keepalive_timeout_seconds * 1000,
		.half_closed_ms = HALF_CLOSED_MS,
		.on_request = on_request,
		.format_error = format_error,
		.on_count = on_count,
		.arg = api,
	};

	if (api == NULL)
		return err_set(err, ERR_INTERNAL, "out of memory");
	api->config = config;
	api->service = options->service;
	api->cluster = options->cluster;
	api->shm = options->shm;
	api->self = options->self;
	api->terminal_fd = options->terminal_fd;
	api->listen_fd = options->listen_fd;
	TAILQ_INIT(&api->requests);
	if (http_server_create(options->base, options->listen_fd, &server, &api->server, err) != 0) {
		free(api);
		return -1;
	}
	*ret_api = api;
	return 0;
}

static void
api_expire(struct api *api, bool all)
{
	struct request *next;

	for (struct request *request = TAILQ_FIRST(&api->requests); request != NULL; request = next) {
		next = TAILQ_NEXT(request, link);
		if (all || (request->wait != NULL && request->wait_ops->at_drain))
			request_expire(request);
	}
}

/* When the server stops, the master takes the socket out of listening before it says so. */
static bool
api_is_succeeded(const struct api *api)
{
	socklen_t size = sizeof(int);
	int listens = 0;

	return getsockopt(api->listen_fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens != 0;
}

void
api_drain(struct api *api)
{
	api->draining = true;
	http_server_drain(api->server, api_is_succeeded(api));
	api_expire(api, false);
}

void
api_end_waits(struct api *api)
{
	api_expire(api, true);
}

uint32_t
api_open_requests(const struct api *api)
{
	return http_server_exchanges(api->server);
}

bool
api_hears(const struct api *api)
{
	return http_server_hears(api->server) > 0;
}

uint32_t
api_open_connections(const struct api *api)
{
	return http_server_connections(api->server);
}

void
api_free(struct api *api)
{
	if (api == NULL)
		return;
	api->closing = true;
	http_server_free(api->server);
	while (!TAILQ_EMPTY(&api->requests))
		request_free(TAILQ_FIRST(&api->requests));
	free(api);
}
