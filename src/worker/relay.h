/*
 * relay.h - a request handed on to the sandbox's agent, and its answer handed back, piece by piece.
 *
 * Neither body is held: a side that does not take what comes stops the other one. The client's body is asked for
 * only once the agent wants it, so what can be refused is refused before it is sent. A refusal of the agent becomes
 * one of ours, with its status, code and words (problem_of_answer()).
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_WORKER_RELAY_H
#define ORCHARD_WORKER_RELAY_H

#include <stdbool.h>

struct evbuffer;
struct request;

/* What the client gets instead of the bytes of a good answer. */
struct relay_shape {
	const char *content_type;
	void (*begin)(struct evbuffer *out, void *arg);
	void (*piece)(struct evbuffer *in, struct evbuffer *out, void *arg); /* takes all of in */
	void (*end)(struct evbuffer *out, void *arg);
	void (*free)(void *arg);
};

struct relay_ask {
	const char *method, *target; /* as docs/agent-protocol.md has them */
	const char *const *headers; /* at most FILE_CALL_HEADERS pairs, NULL behind; NULL: none */
	bool takes_body; /* the request's body is the call's */
	struct evbuffer *body; /* or this one is, and the relay's from now on; NULL: none */
	const struct relay_shape *shape; /* NULL: as it comes, with its type, length and the headers of a file */
	void *shape_arg; /* the relay's from now on */
};

/* Sees to the request's answer, now or later. */
void relay_start(struct request *request, const struct relay_ask *ask);

#endif
