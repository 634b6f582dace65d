/*
 * kube_wire.c - libcurl's multi interface on libevent.
 *
 * libcurl calls back while it works, when nothing of it may be freed; so what comes is only noted there, and told when
 * libcurl has returned.
 */
/* SPDX-License-Identifier: MIT */
#include "kube/kube_wire.h"

#include "base/alloc.h"
#include "base/clock.h"

#include <event2/event.h>

void
kube_wire_ready(struct kube_exchange *exchange)
{
	if (exchange->is_ready)
		return;
	exchange->is_ready = true;
	TAILQ_INSERT_TAIL(&exchange->wire->ready, exchange, ready_entry);
}

static void
wire_take_ends(struct kube_wire *wire)
{
	CURLMsg *message;
	int left;

	while ((message = kube_curl.multi_info_read(wire->multi, &left)) != NULL) {
		struct kube_exchange *exchange = NULL;
		CURL *easy = message->easy_handle;

		if (message->msg != CURLMSG_DONE ||
			kube_curl.easy_getinfo(easy, CURLINFO_PRIVATE, &exchange) != CURLE_OK || exchange == NULL)
			continue;
		exchange->code = message->data.result;
		exchange->ended = true;
		exchange->in_multi = false;
		kube_curl.multi_remove_handle(wire->multi, easy);
		kube_wire_ready(exchange);
	}
}

/* What is told may start and cancel exchanges, and free the client. */
void
kube_wire_turn(struct kube_wire *wire)
{
	struct kube_client *client = wire->client;
	struct kube_exchange *exchange;

	wire_take_ends(wire);
	while (!client->freed && (exchange = TAILQ_FIRST(&wire->ready)) != NULL)
		kube_exchange_tell(exchange);
}

static void
wire_on_socket(evutil_socket_t fd, short what, void *arg)
{
	struct kube_wire *wire = arg;
	struct kube_client *client = wire->client;
	int action = ((what & EV_READ) != 0 ? CURL_CSELECT_IN : 0) |
		((what & EV_WRITE) != 0 ? CURL_CSELECT_OUT : 0);
	int running;

	kube_client_enter(client);
	kube_curl.multi_socket_action(wire->multi, fd, action, &running);
	kube_wire_turn(wire);
	kube_client_leave(client);
}

static void
wire_on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct kube_wire *wire = arg;
	struct kube_client *client = wire->client;
	int running;

	(void)fd;
	(void)what;
	kube_client_enter(client);
	kube_curl.multi_socket_action(wire->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	kube_wire_turn(wire);
	kube_client_leave(client);
}

static int
wire_set_timer(CURLM *multi, long timeout_ms, void *arg)
{
	struct kube_wire *wire = arg;
	struct timeval tv = clock_tv(timeout_ms);

	(void)multi;
	if (timeout_ms < 0)
		event_del(wire->timer);
	else
		event_add(wire->timer, &tv);
	return 0;
}

static int
wire_set_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *socket_arg)
{
	struct kube_wire *wire = arg;
	struct event *event = socket_arg;
	short events = (short)(EV_PERSIST | ((what & CURL_POLL_IN) != 0 ? EV_READ : 0) |
		((what & CURL_POLL_OUT) != 0 ? EV_WRITE : 0));

	(void)easy;
	if (event != NULL)
		event_free(event);
	event = NULL;
	if (what != CURL_POLL_REMOVE) {
		event = must_alloc(event_new(wire->client->base, fd, events, wire_on_socket, wire));
		event_add(event, NULL);
	}
	kube_curl.multi_assign(wire->multi, fd, event);
	return 0;
}

struct kube_wire *
kube_wire_new(struct kube_client *client)
{
	struct kube_wire *wire = alloc_zero(1, sizeof *wire);
	const struct kube_options *options = &client->options;

	wire->client = client;
	TAILQ_INIT(&wire->exchanges);
	TAILQ_INIT(&wire->ready);
	wire->timer = must_alloc(event_new(client->base, -1, 0, wire_on_timer, wire));
	wire->multi = must_alloc(kube_curl.multi_init());
	kube_curl.multi_setopt(wire->multi, CURLMOPT_SOCKETFUNCTION, wire_set_socket);
	kube_curl.multi_setopt(wire->multi, CURLMOPT_SOCKETDATA, wire);
	kube_curl.multi_setopt(wire->multi, CURLMOPT_TIMERFUNCTION, wire_set_timer);
	kube_curl.multi_setopt(wire->multi, CURLMOPT_TIMERDATA, wire);
	kube_curl.multi_setopt(wire->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_MULTIPLEX);
	/* Watches have theirs besides. */
	kube_curl.multi_setopt(wire->multi, CURLMOPT_MAXCONNECTS, (long)options->concurrency + 8);
	return wire;
}

void
kube_wire_free(struct kube_wire *wire)
{
	struct kube_exchange *exchange;

	while ((exchange = TAILQ_FIRST(&wire->exchanges)) != NULL)
		kube_exchange_cancel(exchange);
	kube_curl.multi_cleanup(wire->multi);
	event_free(wire->timer);
	free(wire);
}
