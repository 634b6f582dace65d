/* terminals.c - who may open or attach, before the protocol changes to WebSocket; the list of connections. */
/* SPDX-License-Identifier: MIT */
#include "agent/terminal/terminals.h"

#include "agent/answer.h"
#include "agent/config.h"
#include "agent/query.h"
#include "agent/terminal/terminal.h"
#include "agent/terminal/terminal_client.h"
#include "agent/terminal/terminal_set.h"
#include "agent/terminal/ws_handshake.h"
#include "base/alloc.h"
#include "base/err.h"
#include "http/http_parser.h"
#include "http/http_server.h"

#include <event2/buffer.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

/* Beyond the sessions: those that wait for their first message, and those on their way out. */
enum { TERMINALS_MORE_CLIENTS = 64 };

struct terminals_item {
	struct terminals *terminals;
	struct terminal_client *client;
	TAILQ_ENTRY(terminals_item) link;
};

struct terminals {
	struct event_base *base;
	const struct agent_config *config;
	struct terminal_set *set;
	size_t client_count;
	bool stopping;
	TAILQ_HEAD(, terminals_item) clients;
};

struct terminals *
terminals_create(const struct terminal_set_options *options)
{
	struct terminals *terminals = alloc_zero(1, sizeof *terminals);

	terminals->base = options->base;
	terminals->config = options->config;
	terminals->set = terminal_set_create(options);
	TAILQ_INIT(&terminals->clients);
	return terminals;
}

static void
terminals_remove(struct terminals_item *item)
{
	TAILQ_REMOVE(&item->terminals->clients, item, link);
	item->terminals->client_count--;
	free(item);
}

void
terminals_free(struct terminals *terminals)
{
	struct terminals_item *item;

	while ((item = TAILQ_FIRST(&terminals->clients)) != NULL) {
		terminal_client_free(item->client);
		terminals_remove(item);
	}
	terminal_set_free(terminals->set);
	free(terminals);
}

static void
terminals_on_gone(struct terminal_client *client, void *arg)
{
	(void)client;
	terminals_remove(arg);
}

/* 0: absent; 1: found; -1: answered. */
static int
terminals_session(struct terminals *terminals, struct http_exchange *exchange, struct terminal **ret_terminal)
{
	AUTO_FREE char *id = NULL;
	int found = http_query_get(http_head_query(http_exchange_head(exchange)), "session", &id);

	if (found == 0)
		return 0;
	*ret_terminal = found < 0 ? NULL : terminal_set_find(terminals->set, id);
	if (*ret_terminal != NULL && terminal_outlives_viewers(*ret_terminal))
		return 1;
	answer_error(exchange, 404, "unknown_session",
		*ret_terminal != NULL ? "the session was not opened with detach"
				      : "no such session, or it has ended and was forgotten");
	return -1;
}

/* False: answered. */
static bool
terminals_admit(struct terminals *terminals, struct http_exchange *exchange)
{
	const char *words;
	int status = ws_handshake_check(http_exchange_head(exchange), &words);

	if (status == 426) {
		http_exchange_add_header(exchange, "Upgrade", "websocket");
		http_exchange_add_header(exchange, "Sec-WebSocket-Version", "13");
	}
	if (status != 0) {
		answer_error(exchange, status, status == 426 ? "upgrade_required" : "bad_request", words);
		return false;
	}
	if (terminals->stopping) {
		answer_error(exchange, 503, "stopping", "the sandbox is being ended");
		return false;
	}
	return true;
}

static bool
terminals_are_full(const struct terminals *terminals, bool attaches)
{
	size_t max = (size_t)terminals->config->terminal_max;

	return terminals->client_count >= max + TERMINALS_MORE_CLIENTS ||
		(!attaches && terminal_set_count(terminals->set) >= max);
}

static bool
terminals_is_counted(const struct http_exchange *exchange)
{
	AUTO_FREE char *counted = NULL;

	return http_query_get(http_head_query(http_exchange_head(exchange)), "counted", &counted) > 0 &&
		strcmp(counted, "1") == 0;
}

static void
terminals_take(
	struct terminals *terminals, struct http_exchange *exchange, struct terminal *terminal, int64_t offset)
{
	struct terminal_client_options options = {
		.base = terminals->base,
		.set = terminals->set,
		.terminal = terminal,
		.offset = (uint64_t)offset,
		.counted = terminals_is_counted(exchange),
		.ping_ms = terminals->config->terminal_ping_ms,
		.on_gone = terminals_on_gone,
	};
	struct terminals_item *item;
	struct http_taken taken;
	struct err err;

	if (http_exchange_take(exchange, &taken, &err) < 0) {
		answer_error(exchange, 400, "bad_request", err.msg);
		return;
	}
	item = alloc_zero(1, sizeof *item);
	item->terminals = terminals;
	TAILQ_INSERT_TAIL(&terminals->clients, item, link);
	terminals->client_count++;
	options.fd = taken.fd;
	options.read = taken.read;
	options.first = evbuffer_new();
	options.arg = item;
	if (options.first == NULL)
		abort();
	ws_handshake_answer(taken.head, options.first);
	item->client = terminal_client_create(&options);
	evbuffer_free(options.first);
	http_head_free(taken.head);
}

static void
terminals_connect(struct terminals *terminals, struct http_exchange *exchange)
{
	struct terminal *terminal = NULL;
	int64_t offset = 0;
	int found;

	if (!terminals_admit(terminals, exchange) || !query_int(exchange, "offset", INT64_MAX, &offset))
		return;
	found = terminals_session(terminals, exchange, &terminal);
	if (found < 0)
		return;
	if (terminals_are_full(terminals, found > 0))
		answer_error(exchange, 503, "terminals_full", "the sandbox has too many terminals: close some");
	else
		terminals_take(terminals, exchange, terminal, offset);
}

static void
terminals_list(struct terminals *terminals, struct http_exchange *exchange)
{
	struct json_object *body = json_object_new_object();

	json_object_object_add(body, "sessions", terminal_set_describe(terminals->set));
	answer_json(exchange, 200, body);
}

static void
terminals_delete(struct terminals *terminals, struct http_exchange *exchange, const char *id)
{
	struct terminal *terminal = terminal_set_find(terminals->set, id);
	struct json_object *body;

	if (terminal == NULL) {
		answer_error(
			exchange, 404, "unknown_session", "no such session, or it has ended and was forgotten");
		return;
	}
	body = terminal_describe(terminal);
	terminal_hang_up(terminal);
	answer_json(exchange, 200, body);
}

void
terminals_serve(struct terminals *terminals, struct http_exchange *exchange, const char *path)
{
	enum http_method method = http_head_method(http_exchange_head(exchange));
	bool list = strcmp(path, "/sessions") == 0;

	if (path[0] == '\0' && method == HTTP_GET)
		terminals_connect(terminals, exchange);
	else if (list && method == HTTP_GET)
		terminals_list(terminals, exchange);
	else if (path[0] == '/' && !list && method == HTTP_DELETE)
		terminals_delete(terminals, exchange, path + 1);
	else if (path[0] == '\0' || path[0] == '/')
		answer_error(exchange, 405, "method_not_allowed", "this route takes another method");
	else
		answer_error(exchange, 404, "not_found", "no such route");
}

void
terminals_stop(struct terminals *terminals)
{
	terminals->stopping = true;
}

void
terminals_on_disk_full(struct terminals *terminals)
{
	terminal_set_kill(terminals->set);
}

bool
terminals_on_exit(struct terminals *terminals, pid_t pid, int status, const struct rusage *usage)
{
	return terminal_set_on_exit(terminals->set, pid, status, usage);
}

size_t
terminals_count(const struct terminals *terminals)
{
	return terminal_set_count(terminals->set);
}
