/*
 * agent_client.c - the sandboxes a process talks to, each with its connections and its acknowledgements.
 *
 * One timer serves all: acknowledgements that have waited long enough, peers that
 * were silent for long, peers to free. Nothing is freed and no call is ended while
 * a user's call into this file is on the stack.
 */
/* SPDX-License-Identifier: MIT */
#include "backend/agent_priv.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"

#include <stdlib.h>
#include <string.h>

#include <event2/event.h>
#include <json-c/json.h>
#include <json-c/linkhash.h>

enum {
	DEFAULT_CONNECT_TIMEOUT_MS = 5000,
	DEFAULT_IDLE_TIMEOUT_MS = 30000,
	MAX_IDLE = 4, /* connections kept for each sandbox */
	SILENT_MS = 120000, /* beyond the idle timeout: the peer goes */
	ACK_DELAY_MS = 1000,
	SOON_MS = 1
};

static void
client_schedule(struct agent_client *client, int64_t at)
{
	if (client->dead || (client->timer_at != 0 && client->timer_at <= at))
		return;

	struct timeval delay = clock_tv(at - clock_boot_ms() + 1);

	client->timer_at = at;
	event_add(client->timer, &delay);
}

static char *
copy_text(const char *text)
{
	char *copy = alloc_string(text != NULL ? text : "");

	return copy;
}

static void
peer_free(struct agent_peer *peer)
{
	http_pool_free(peer->pool);
	free(peer->uid);
	free(peer->endpoint);
	free(peer->token);
	free(peer);
}

static void
peer_retire(struct agent_peer *peer)
{
	struct agent_client *client = peer->client;

	lh_table_delete(client->by_uid, peer->uid);
	TAILQ_REMOVE(&client->peers, peer, entry);
	TAILQ_INSERT_TAIL(&client->retired, peer, entry);
	peer->retired = true;
	client_schedule(client, clock_boot_ms() + SOON_MS);
}

/* The calls of a forgotten peer end here, from the loop; their callbacks may retire others, never free one. */
static void
client_free_retired(struct agent_client *client)
{
	struct agent_peer_list list = TAILQ_HEAD_INITIALIZER(list);
	struct agent_peer *peer;

	TAILQ_CONCAT(&list, &client->retired, entry);
	while ((peer = TAILQ_FIRST(&list)) != NULL) {
		TAILQ_REMOVE(&list, peer, entry);
		if (peer->forgotten && peer->pool != NULL)
			http_pool_free(STEAL_PTR(peer->pool));
		if (peer->calls == 0)
			peer_free(peer);
		else
			TAILQ_INSERT_TAIL(&client->retired, peer, entry);
	}
}

static int64_t
peer_tend(struct agent_peer *peer, int64_t now)
{
	int64_t silent_at = peer->used_ms + peer->client->idle_timeout_ms + SILENT_MS;

	if (peer->ack_at != 0 && peer->ack_at <= now)
		agent_peer_send_acks(peer);
	if (peer->calls == 0 && silent_at <= now && http_pool_calls(peer->pool) == 0) {
		peer_retire(peer);
		return INT64_MAX;
	}
	if (peer->ack_at != 0 && peer->ack_at < silent_at)
		return peer->ack_at;
	return silent_at > now ? silent_at : now + SILENT_MS;
}

static void
client_on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct agent_client *client = arg;
	struct agent_peer *peer = TAILQ_FIRST(&client->peers);
	int64_t now = clock_boot_ms();
	int64_t next = INT64_MAX;

	(void)fd;
	(void)what;
	client->timer_at = 0;
	while (peer != NULL) {
		struct agent_peer *following = TAILQ_NEXT(peer, entry);
		int64_t at = peer_tend(peer, now);

		if (at < next)
			next = at;
		peer = following;
	}
	if (next != INT64_MAX)
		client_schedule(client, next);
	client_free_retired(client);
}

int
agent_client_create(struct event_base *base, const struct agent_client_options *options,
	struct agent_client **ret_client, struct err *err)
{
	struct agent_client *client = alloc_zero(1, sizeof *client);

	client->base = base;
	client->connect_timeout_ms = options != NULL && options->connect_timeout_ms > 0
		? options->connect_timeout_ms
		: DEFAULT_CONNECT_TIMEOUT_MS;
	client->idle_timeout_ms = options != NULL && options->idle_timeout_ms > 0 ? options->idle_timeout_ms
										  : DEFAULT_IDLE_TIMEOUT_MS;
	TAILQ_INIT(&client->peers);
	TAILQ_INIT(&client->retired);
	client->by_uid = lh_kchar_table_new(64, NULL);
	client->timer = event_new(base, -1, 0, client_on_timer, client);
	if (client->by_uid == NULL || client->timer == NULL) {
		agent_client_free(client);
		return err_set(err, ERR_INTERNAL, "no memory for the agent client");
	}
	*ret_client = client;
	return 0;
}

void
agent_client_free(struct agent_client *client)
{
	if (client == NULL)
		return;
	client->dead = true;
	while (!TAILQ_EMPTY(&client->peers)) {
		TAILQ_FIRST(&client->peers)->forgotten = true;
		peer_retire(TAILQ_FIRST(&client->peers));
	}
	for (struct agent_peer *peer = TAILQ_FIRST(&client->retired); peer != NULL; peer = TAILQ_NEXT(peer, entry))
		peer->forgotten = true;
	client_free_retired(client);
	if (client->timer != NULL)
		event_free(client->timer);
	if (client->by_uid != NULL)
		lh_table_free(client->by_uid);
	free(client);
}

static struct agent_peer *
peer_find(const struct agent_client *client, const char *uid)
{
	void *found = NULL;

	lh_table_lookup_ex(client->by_uid, uid, &found);
	return found;
}

void
agent_client_forget(struct agent_client *client, const char *sandbox_uid)
{
	struct agent_peer *peer = peer_find(client, sandbox_uid);

	if (peer == NULL)
		return;
	peer->forgotten = true;
	peer_retire(peer);
}

uint32_t
agent_client_calls(const struct agent_client *client, const char *sandbox_uid)
{
	const struct agent_peer *peer = peer_find(client, sandbox_uid);

	return peer != NULL ? peer->calls : 0;
}

static int
peer_create(struct agent_client *client, const struct agent_target *target, struct agent_peer **ret_peer,
	struct err *err)
{
	struct http_pool_options options = {
		.endpoint = target->endpoint,
		.max_idle = MAX_IDLE,
		.idle_timeout_ms = client->idle_timeout_ms,
		.connect_timeout_ms = client->connect_timeout_ms,
	};
	struct http_pool *pool;
	struct agent_peer *peer;

	if (http_pool_create(client->base, &options, &pool, err) < 0)
		return -1;
	peer = alloc_zero(1, sizeof *peer);
	peer->client = client;
	peer->pool = pool;
	peer->uid = copy_text(target->sandbox_uid);
	peer->endpoint = copy_text(target->endpoint);
	peer->token = copy_text(target->token);
	TAILQ_INSERT_TAIL(&client->peers, peer, entry);
	lh_table_insert(client->by_uid, peer->uid, peer);
	*ret_peer = peer;
	return 0;
}

int
agent_peer_get(struct agent_client *client, const struct agent_target *target, struct agent_peer **ret_peer,
	struct err *err)
{
	struct agent_peer *peer = peer_find(client, target->sandbox_uid);

	if (client->dead)
		return err_set(err, ERR_UNAVAILABLE, "the agent client is closing");
	if (peer != NULL &&
		(strcmp(peer->endpoint, target->endpoint) != 0 || strcmp(peer->token, target->token) != 0)) {
		peer_retire(peer);
		peer = NULL;
	}
	if (peer == NULL && peer_create(client, target, &peer, err) < 0)
		return -1;
	peer->used_ms = clock_boot_ms();
	client_schedule(client, peer->used_ms + client->idle_timeout_ms + SILENT_MS);
	*ret_peer = peer;
	return 0;
}

void
agent_peer_release(struct agent_peer *peer)
{
	peer->calls--;
	peer->used_ms = clock_boot_ms();
	if (peer->retired)
		client_schedule(peer->client, clock_boot_ms() + SOON_MS);
}

void
agent_peer_headers(const struct agent_peer *peer, const char *ret_headers[5])
{
	ret_headers[0] = "X-Orchard-Token";
	ret_headers[1] = peer->token;
	ret_headers[2] = "X-Orchard-Sandbox";
	ret_headers[3] = peer->uid;
	ret_headers[4] = NULL;
}

struct json_object *
agent_peer_take_acks(struct agent_peer *peer)
{
	struct json_object *list;

	if (peer->ack_count == 0)
		return NULL;
	list = json_object_new_array();
	for (uint32_t i = 0; i < peer->ack_count; i++)
		json_object_array_add(list, json_object_new_string(peer->acks[i]));
	peer->ack_count = 0;
	peer->ack_at = 0;
	return list;
}

void
agent_peer_add_ack(struct agent_peer *peer, const char *job_id)
{
	if (peer->retired || !id_is_uuid(job_id))
		return;
	if (peer->ack_count == 0)
		peer->ack_at = clock_boot_ms() + ACK_DELAY_MS;
	memcpy(peer->acks[peer->ack_count++], job_id, ID_UUID_SIZE);
	if (peer->ack_count == AGENT_ACK_BATCH)
		agent_peer_send_acks(peer);
	else
		client_schedule(peer->client, peer->ack_at);
}

void
agent_job_ack(struct agent_client *client, const struct agent_target *target, const char *job_id)
{
	struct agent_peer *peer;
	struct err err;

	if (agent_peer_get(client, target, &peer, &err) == 0)
		agent_peer_add_ack(peer, job_id);
}
