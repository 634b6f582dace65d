/*
 * agent_relay.h - calls to an agent whose bodies pass through: files, archives.
 *
 * Neither body is ever held whole: what the user does not take of the answer stays with the agent, and what the agent
 * does not take of the body the user is told to keep. The answer's status and body mean whatever the route says.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_BACKEND_AGENT_RELAY_H
#define ORCHARD_BACKEND_AGENT_RELAY_H

#include "backend/agent_client.h"

struct agent_relay;
struct evbuffer;

enum { AGENT_RELAY_HIGH = HTTP_CALL_HIGH };

struct agent_relay_ask {
	const char *method;
	const char *target; /* path and query, encoded */
	const char *content_type; /* NULL: none */
	const char *const *headers; /* at most AGENT_RELAY_HEADERS pairs: name, value, ..., NULL; NULL: none */
	int64_t length; /* of the body; -1: not known, 0: none */
	int64_t stall_ms; /* how long the agent may be silent when it is its turn */
};

enum { AGENT_RELAY_HEADERS = 6 };

/* Any of them may cancel the relay; after end it is gone. */
struct agent_relay_ops {
	void (*wanted)(void *arg); /* the agent takes the body: send */
	void (*drained)(void *arg);
	void (*head)(const struct http_head *head, void *arg); /* until end */
	void (*data)(struct evbuffer *data, void *arg); /* as of struct http_stream */
	/* NULL: all of the answer has come. Else ERR_AGENT_UNREACHABLE or ERR_TIMEOUT; may come before head. */
	void (*end)(const struct err *why, void *arg);
};

/* Never calls back before it returns. */
int
agent_relay_start(struct agent_client *client, const struct agent_target *target, const struct agent_relay_ask *ask,
	const struct agent_relay_ops *ops, void *arg, struct agent_relay **ret_relay, struct err *err) MUSTCHECK;
/* Takes the bytes; how many are queued now: over AGENT_RELAY_HIGH wait for drained. */
size_t agent_relay_send(struct agent_relay *relay, struct evbuffer *piece);
void agent_relay_send_end(struct agent_relay *relay);
void agent_relay_resume(struct agent_relay *relay);
void agent_relay_cancel(struct agent_relay *relay);

#endif
