/* agent_priv.h - the insides of the agent client: peers (one sandbox each) and calls. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_BACKEND_AGENT_PRIV_H
#define ORCHARD_BACKEND_AGENT_PRIV_H

#include "backend/agent_client.h"
#include "base/id.h"

#include <sys/queue.h>

struct event;
struct lh_table;

enum { AGENT_ACK_BATCH = 128 };

/*
 * One sandbox at one endpoint. It stands in the client's table until the sandbox
 * is forgotten, moved or long silent; then it is retired, and freed from the loop.
 */
struct agent_peer {
	TAILQ_ENTRY(agent_peer) entry;
	struct agent_client *client;
	struct http_pool *pool;
	char *uid;
	char *endpoint;
	char *token;
	uint32_t calls; /* of the user; acks do not count */
	int64_t used_ms;
	bool retired;
	bool forgotten; /* calls in flight end too */
	int64_t ack_at; /* 0: nothing to acknowledge */
	uint32_t ack_count;
	char acks[AGENT_ACK_BATCH][ID_UUID_SIZE];
};

TAILQ_HEAD(agent_peer_list, agent_peer);

struct agent_client {
	struct event_base *base;
	int64_t connect_timeout_ms;
	int64_t idle_timeout_ms;
	struct lh_table *by_uid; /* of those in `peers` */
	struct agent_peer_list peers;
	struct agent_peer_list retired;
	struct event *timer;
	int64_t timer_at; /* 0: not pending */
	bool dead;
};

/* The peer of a target, made when missing. */
int agent_peer_get(struct agent_client *client, const struct agent_target *target, struct agent_peer **ret_peer,
	struct err *err) MUSTCHECK;
/* Moves the waiting acknowledgements into an array, or gives NULL. */
struct json_object *agent_peer_take_acks(struct agent_peer *peer);
void agent_peer_add_ack(struct agent_peer *peer, const char *job_id);
/* A call of the peer has ended. */
void agent_peer_release(struct agent_peer *peer);
/* name, value, ... for every request; valid as long as the peer. */
void agent_peer_headers(const struct agent_peer *peer, const char *ret_headers[5]);

/* --- agent_call.c --- */
/* What differs between requests; the rest is the same for all. */
struct agent_request {
	const char *method;
	const char *target;
	const void *data; /* borrowed; NULL: no body */
	size_t len;
	bool is_json;
	int64_t timeout_ms;
	size_t max_answer;
};
/* An answer of 200 is AGENT_JOB, whatever it is about. */
int agent_request_start(struct agent_peer *peer, const struct agent_request *request, agent_done_f *done, void *arg,
	struct agent_call **ret_call, struct err *err) MUSTCHECK;

/* --- agent_ack.c --- */
void agent_peer_send_acks(struct agent_peer *peer);

#endif
