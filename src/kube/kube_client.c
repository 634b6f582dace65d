/*
 * kube_client.c - attempts: queued, given credentials and a slot, sent, ended.
 *
 * The queue is worked off by an event of its own, so that nobody is called back from inside a function that they call.
 * An attempt keeps its place while credentials are on their way; streams take no slot and so overtake what waits for one.
 */
/* SPDX-License-Identifier: MIT */
#include "kube/kube_auth.h"
#include "kube/kube_wire.h"

#include "base/alloc.h"
#include "base/err.h"
#include "conf/config.h"

#include <string.h>

#include <event2/event.h>

enum { CONCURRENCY = 100, CONNECT_MS = 10000, ATTEMPT_MS = 30000, PAUSE_MS = 250, SILENCE_MS = 70000 };
enum { LIST_MS = 1000, MAX_BYTES = 64 << 20 };

void
kube_options_from_config(const struct config *config, struct kube_options *ret_options)
{
	*ret_options = (struct kube_options){
		.concurrency = (uint32_t)config->k8s_api_concurrency,
		.connect_ms = (uint32_t)config->k8s_connect_timeout * 1000,
		.attempt_ms = (uint32_t)config->k8s_api_timeout * 1000,
		.retries = (uint32_t)config->k8s_api_retries,
	};
}

static void
options_fill(struct kube_options *options)
{
	if (options->concurrency == 0)
		options->concurrency = CONCURRENCY;
	if (options->connect_ms == 0)
		options->connect_ms = CONNECT_MS;
	if (options->attempt_ms == 0)
		options->attempt_ms = ATTEMPT_MS;
	if (options->pause_ms == 0)
		options->pause_ms = PAUSE_MS;
	if (options->silence_ms == 0)
		options->silence_ms = SILENCE_MS;
	if (options->list_ms == 0)
		options->list_ms = LIST_MS;
	if (options->max_bytes == 0)
		options->max_bytes = MAX_BYTES;
}

static void
client_pump_soon(struct kube_client *client)
{
	event_active(client->pump, EV_TIMEOUT, 0);
}

static void
client_on_identity(void *arg)
{
	client_pump_soon(arg);
}

static void
attempt_on_input(void *arg, const char *data, size_t len)
{
	struct kube_attempt *attempt = arg;

	attempt->ops->input(attempt->arg, data, len);
}

/* What begins from now on gets other connections. */
static void
client_renew(struct kube_client *client)
{
	if (client->wire == NULL)
		return;
	TAILQ_INSERT_TAIL(&client->retired, client->wire, entry);
	client->wire = NULL;
}

static void
attempt_on_end(void *arg, const struct kube_end *end)
{
	struct kube_attempt *attempt = arg;
	struct kube_client *client = attempt->client;
	const struct kube_wire *wire = attempt->exchange->wire;

	attempt->exchange = NULL;
	if (!attempt->send.stream) {
		client->stats.busy--;
		client_pump_soon(client);
	}
	client->stats.http2 += end->http2;
	client->stats.failures += end->why != NULL;
	client->stats.throttled += end->status == 429;
	client->stats.refused += end->why == NULL && end->status != 429 &&
		(end->status < 200 || end->status >= 300);
	/* Not one byte in all that time: whatever else takes this connection would wait as long. */
	if (end->why != NULL && end->why->code == ERR_TIMEOUT && end->sent && wire == client->wire &&
		(end->status == 0 || attempt->send.stream))
		client_renew(client);
	attempt->ops->ended(attempt->arg, end);
}

static const struct kube_exchange_ops attempt_ops = { attempt_on_input, attempt_on_end };

static void
attempt_unqueue(struct kube_attempt *attempt)
{
	attempt->queued = false;
	attempt->client->stats.waiting--;
	TAILQ_REMOVE(&attempt->client->queue, attempt, entry);
}

static void
attempt_fail(struct kube_attempt *attempt, const struct err *why)
{
	struct kube_end end = { .text = "", .retry_after_ms = -1, .why = why };

	attempt->client->stats.failures++;
	attempt->ops->ended(attempt->arg, &end);
}

static void
attempt_send(struct kube_attempt *attempt, const struct kube_identity *identity)
{
	struct kube_client *client = attempt->client;
	struct err err;

	if (client->wire == NULL)
		client->wire = kube_wire_new(client);
	attempt->identity = identity->number;
	attempt->exchange = kube_exchange_start(
		client->wire, &attempt->send, identity, &attempt_ops, attempt, &err);
	if (attempt->exchange == NULL) {
		attempt_fail(attempt, &err);
		return;
	}
	client->stats.attempts++;
	client->stats.retries += attempt->again;
	client->stats.busy += !attempt->send.stream;
}

/* The first that may go now: streams always, others while there is a slot. */
static struct kube_attempt *
next_attempt(const struct kube_client *client)
{
	struct kube_attempt *attempt;

	if (client->stats.busy < client->options.concurrency)
		return TAILQ_FIRST(&client->queue);
	TAILQ_FOREACH(attempt, &client->queue, entry)
	{
		if (attempt->send.stream)
			return attempt;
	}
	return NULL;
}

static void
client_on_pump(evutil_socket_t fd, short what, void *arg)
{
	struct kube_client *client = arg;
	struct kube_attempt *attempt;

	(void)fd;
	(void)what;
	kube_client_enter(client);
	while (!client->freed && (attempt = next_attempt(client)) != NULL) {
		struct kube_identity identity;
		struct err err;
		enum kube_auth_state state = kube_auth_get(client->auth, &identity, &err);

		if (state == KUBE_AUTH_WAIT)
			break;
		attempt_unqueue(attempt);
		if (state == KUBE_AUTH_READY)
			attempt_send(attempt, &identity);
		else
			attempt_fail(attempt, &err);
	}
	kube_client_leave(client);
}

void
kube_attempt_start(struct kube_attempt *attempt)
{
	struct kube_client *client = attempt->client;

	attempt->queued = true;
	client->stats.waiting++;
	TAILQ_INSERT_TAIL(&client->queue, attempt, entry);
	client_pump_soon(client);
}

void
kube_attempt_cancel(struct kube_attempt *attempt)
{
	struct kube_client *client = attempt->client;

	if (attempt->queued)
		attempt_unqueue(attempt);
	if (attempt->exchange == NULL)
		return;
	kube_exchange_cancel(STEAL_PTR(attempt->exchange));
	if (!attempt->send.stream) {
		client->stats.busy--;
		client_pump_soon(client);
	}
}

bool
kube_attempt_refused(struct kube_attempt *attempt)
{
	return kube_auth_refused(attempt->client->auth, attempt->identity);
}

int
kube_client_create(struct event_base *base, struct kube_config *config, const struct kube_options *options,
	struct kube_client **ret_client, struct err *err)
{
	struct kube_client *client;

	if (kube_curl_load(err) != 0)
		return -1;
	client = alloc_zero(1, sizeof *client);
	client->base = base;
	client->config = config;
	client->options = *options;
	options_fill(&client->options);
	TAILQ_INIT(&client->retired);
	TAILQ_INIT(&client->queue);
	TAILQ_INIT(&client->calls);
	TAILQ_INIT(&client->lists);
	TAILQ_INIT(&client->watches);
	client->pump = must_alloc(event_new(base, -1, 0, client_on_pump, client));
	client->auth = kube_auth_new(base, config, client_on_identity, client);
	*ret_client = client;
	return 0;
}

/* Lists and watches first: they stand on calls. */
static void
client_destroy(struct kube_client *client)
{
	struct kube_wire *wire;

	kube_watch_free_all(client);
	kube_list_free_all(client);
	kube_call_free_all(client);
	client_renew(client);
	while ((wire = TAILQ_FIRST(&client->retired)) != NULL) {
		TAILQ_REMOVE(&client->retired, wire, entry);
		kube_wire_free(wire);
	}
	kube_auth_free(client->auth);
	event_free(client->pump);
	free(client);
}

static void
client_tidy(struct kube_client *client)
{
	struct kube_wire *wire, *next;

	for (wire = TAILQ_FIRST(&client->retired); wire != NULL; wire = next) {
		next = TAILQ_NEXT(wire, entry);
		if (!TAILQ_EMPTY(&wire->exchanges))
			continue;
		TAILQ_REMOVE(&client->retired, wire, entry);
		kube_wire_free(wire);
	}
}

void
kube_client_enter(struct kube_client *client)
{
	client->depth++;
}

void
kube_client_leave(struct kube_client *client)
{
	if (--client->depth > 0)
		return;
	if (client->freed)
		client_destroy(client);
	else
		client_tidy(client);
}

void
kube_client_free(struct kube_client *client)
{
	if (client == NULL)
		return;
	client->freed = true;
	if (client->depth == 0)
		client_destroy(client);
}

void
kube_client_stats(const struct kube_client *client, struct kube_stats *ret_stats)
{
	*ret_stats = client->stats;
}

char *
kube_escape(const char *text)
{
	static const char hex[] = "0123456789ABCDEF";
	char *out = alloc_zero(3, strlen(text) + 1), *at = out;

	for (; *text != '\0'; text++) {
		unsigned char c = (unsigned char)*text;

		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
			strchr("-._~", c) != NULL) {
			*at++ = (char)c;
		} else {
			*at++ = '%';
			*at++ = hex[c >> 4];
			*at++ = hex[c & 15];
		}
	}
	return out;
}
