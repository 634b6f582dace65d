/* lookup.h - one address for a host, found without blocking: /etc/hosts, then DNS. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_REDIS_LOOKUP_H
#define ORCHARD_REDIS_LOOKUP_H

#include <stdint.h>
#include <sys/socket.h>

struct event_base;
struct redis_lookup;

/* address is NULL when there is none, and why says so. */
typedef void redis_lookup_fn(void *ctx, const struct sockaddr *address, socklen_t size, const char *why);

struct redis_lookup_ask {
	const char *host; /* a name or an address */
	uint16_t port;
	uint32_t turn; /* which of several addresses: try the next one when one fails */
	redis_lookup_fn *fn;
	void *ctx;
};

/*
 * Calls back once, perhaps before it returns; NULL when it has. The settings of the resolver are read anew each time.
 */
struct redis_lookup *redis_lookup_start(struct event_base *base, const struct redis_lookup_ask *ask);
/* No callback comes any more. Only before it. */
void redis_lookup_cancel(struct redis_lookup *lookup);

#endif
