/* agent_ack.c - acknowledgements that found no exec to travel with: sent, and not asked after. */
/* SPDX-License-Identifier: MIT */
#include "backend/agent_priv.h"

#include "base/err.h"
#include "base/json.h"

#include <stdlib.h>

#include <json-c/json.h>

enum { ACK_TIMEOUT_MS = 10000 };

static void
ack_on_done(const struct http_head *head, struct evbuffer *body, void *arg)
{
	(void)head;
	(void)body;
	(void)arg;
}

static void
ack_on_failed(const struct err *why, enum http_sent sent, void *arg)
{
	(void)why;
	(void)sent;
	(void)arg;
}

void
agent_peer_send_acks(struct agent_peer *peer)
{
	AUTO_JSON struct json_object *body = json_object_new_object();
	const char *headers[5];
	struct http_call *call;
	struct err err;
	size_t len;

	if (body == NULL)
		abort();
	json_object_object_add(body, "ack", agent_peer_take_acks(peer));

	const char *text = json_text(body, &len);

	agent_peer_headers(peer, headers);
	/* A refused start loses the acknowledgements: domain/exec/exec_tidy.c makes up for that. */
	(void)!http_call_start(peer->pool,
		&(struct http_call_options){
			.method = "POST",
			.target = "/ack",
			.headers = headers,
			.content_type = "application/json",
			.body = text,
			.body_len = len,
			.idempotent = true,
			.timeout_ms = ACK_TIMEOUT_MS,
			.done = ack_on_done,
			.failed = ack_on_failed,
		},
		&call, &err);
}
