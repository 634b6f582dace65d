/* agent_relay.c - a streamed HTTP call, with the agent's secrets on it. */
/* SPDX-License-Identifier: MIT */
#include "backend/agent_relay.h"
#include "backend/agent_priv.h"

#include "base/alloc.h"
#include "base/err.h"

#include <stdlib.h>

struct agent_relay {
	struct agent_peer *peer;
	struct http_call *http;
	const struct agent_relay_ops *ops;
	void *arg;
};

static void
relay_free(struct agent_relay *relay)
{
	agent_peer_release(relay->peer);
	free(relay);
}

static void
on_wanted(void *arg)
{
	struct agent_relay *relay = arg;

	relay->ops->wanted(relay->arg);
}

static void
on_drained(void *arg)
{
	struct agent_relay *relay = arg;

	relay->ops->drained(relay->arg);
}

static void
on_head(const struct http_head *head, void *arg)
{
	struct agent_relay *relay = arg;

	relay->ops->head(head, relay->arg);
}

static void
on_data(struct evbuffer *data, void *arg)
{
	struct agent_relay *relay = arg;

	relay->ops->data(data, relay->arg);
}

static void
relay_end(struct agent_relay *relay, const struct err *why)
{
	const struct agent_relay_ops *ops = relay->ops;
	void *arg = relay->arg;

	relay_free(relay);
	ops->end(why, arg);
}

static void
on_end(void *arg)
{
	relay_end(arg, NULL);
}

static void
on_failed(const struct err *why, enum http_sent sent, void *arg)
{
	struct err err = *why;

	(void)sent;
	if (err.code == ERR_UNAVAILABLE)
		err.code = ERR_AGENT_UNREACHABLE;
	relay_end(arg, &err);
}

static int
relay_call(struct agent_relay *relay, const struct agent_relay_ask *ask, struct err *err)
{
	const char *headers[4 + 2 * AGENT_RELAY_HEADERS + 1];
	size_t count = 4;
	const struct http_stream stream = {
		.length = ask->length,
		.ask_first = ask->length != 0,
		.stall_ms = ask->stall_ms,
		.wanted = on_wanted,
		.drained = on_drained,
		.head = on_head,
		.data = on_data,
		.end = on_end,
	};
	const struct http_call_options options = {
		.method = ask->method,
		.target = ask->target,
		.headers = headers,
		.content_type = ask->content_type,
		.idempotent = ask->method[0] == 'G' || ask->method[0] == 'H',
		.stream = &stream,
		.failed = on_failed,
		.arg = relay,
	};

	agent_peer_headers(relay->peer, headers);
	for (size_t i = 0; ask->headers != NULL && ask->headers[i] != NULL && i < 2 * AGENT_RELAY_HEADERS; i++)
		headers[count++] = ask->headers[i];
	headers[count] = NULL;
	return http_call_start(relay->peer->pool, &options, &relay->http, err);
}

int
agent_relay_start(struct agent_client *client, const struct agent_target *target, const struct agent_relay_ask *ask,
	const struct agent_relay_ops *ops, void *arg, struct agent_relay **ret_relay, struct err *err)
{
	struct agent_relay *relay;
	struct agent_peer *peer;

	if (agent_peer_get(client, target, &peer, err) < 0)
		return -1;
	relay = alloc_zero(1, sizeof *relay);
	relay->peer = peer;
	relay->ops = ops;
	relay->arg = arg;
	peer->calls++;
	if (relay_call(relay, ask, err) < 0) {
		relay_free(relay);
		return -1;
	}
	*ret_relay = relay;
	return 0;
}

size_t
agent_relay_send(struct agent_relay *relay, struct evbuffer *piece)
{
	return http_call_send(relay->http, piece);
}

void
agent_relay_send_end(struct agent_relay *relay)
{
	http_call_send_end(relay->http);
}

void
agent_relay_resume(struct agent_relay *relay)
{
	http_call_resume(relay->http);
}

void
agent_relay_cancel(struct agent_relay *relay)
{
	http_call_cancel(relay->http);
	relay_free(relay);
}
