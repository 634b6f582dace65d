/* kube_exchange.h - one HTTP request and its answer. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_KUBE_KUBE_EXCHANGE_H
#define ORCHARD_KUBE_KUBE_EXCHANGE_H

#include "base/cleanup.h"
#include "kube/kube_client.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct kube_exchange;
struct kube_identity;
struct kube_wire;

/* Borrowed as long as the exchange. */
struct kube_send {
	enum kube_method method;
	const char *path;
	const char *body; /* NULL: none */
	size_t body_len;
	const char *content_type;
	bool once; /* not to be sent again, by nobody, once it went out */
	bool stream; /* the body of a 200 is told as it comes, and has no end in time; no slot */
	uint32_t timeout_ms; /* from its start to its end; 0: none, but for silence_ms */
	uint32_t silence_ms; /* without a byte; 0: any */
};

struct kube_end {
	int status; /* 0: no answer */
	const char *text; /* the body, but for that of a stream; borrowed, with a NUL behind */
	size_t len;
	int64_t retry_after_ms; /* -1: the server asked for nothing */
	bool sent; /* at least a part of the request went out */
	bool hopeless; /* trying again would end as it did: a certificate that is wrong, an answer that is too large */
	bool http2;
	const struct err *why; /* NULL: the answer is whole */
};

/* From the loop. */
struct kube_exchange_ops {
	void (*input)(void *arg, const char *data, size_t len); /* of a stream */
	void (*ended)(void *arg, const struct kube_end *end); /* once, unless cancelled; the exchange is gone */
};

/* NULL: the library refuses, *err says why. */
struct kube_exchange *kube_exchange_start(struct kube_wire *wire, const struct kube_send *send,
	const struct kube_identity *identity, const struct kube_exchange_ops *ops, void *arg, struct err *err);
void kube_exchange_cancel(struct kube_exchange *exchange);

#endif
