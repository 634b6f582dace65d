/*
 * kube_wire.h - a pool of connections, driven by the loop.
 *
 * A request may share its connection with others (HTTP/2). One that has gone silent takes along all that begins on it,
 * so the client leaves the whole pool to those that are on it, and begins anew with another.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_KUBE_KUBE_WIRE_H
#define ORCHARD_KUBE_KUBE_WIRE_H

#include "kube/kube_client_impl.h"
#include "kube/kube_curl.h"

TAILQ_HEAD(kube_exchanges, kube_exchange);

struct kube_wire {
	TAILQ_ENTRY(kube_wire) entry; /* of the client's retired ones */
	struct kube_client *client;
	CURLM *multi;
	struct event *timer;
	struct kube_exchanges exchanges; /* that go on */
	struct kube_exchanges ready; /* of those: something is to be told */
};

struct kube_exchange {
	TAILQ_ENTRY(kube_exchange) entry;
	TAILQ_ENTRY(kube_exchange) ready_entry;
	struct kube_wire *wire;
	struct kube_send send;
	const struct kube_exchange_ops *ops;
	void *arg;
	CURL *easy;
	struct curl_slist *headers, *connect_to;
	char *data; /* came and was not told yet */
	size_t len, room;
	size_t body_sent;
	bool is_ready, ended, too_large;
	bool in_multi;
	CURLcode code;
	char words[CURL_ERROR_SIZE];
	struct event *silence;
};

struct kube_wire *kube_wire_new(struct kube_client *client);
/* Nobody is told. */
void kube_wire_free(struct kube_wire *wire);

/* kube_wire.c, for kube_exchange.c */
void kube_wire_ready(struct kube_exchange *exchange);
void kube_wire_turn(struct kube_wire *wire); /* tells what is ready; between enter and leave */

/* kube_exchange.c, for kube_wire.c */
void kube_exchange_tell(struct kube_exchange *exchange);
void kube_exchange_free(struct kube_exchange *exchange);

#endif
