/*
 * lookup.c - a name's address, by libevent's resolver.
 *
 * The resolver calls back from the loop even for what was cancelled, and must not be freed from inside: so a lookup
 * lives until it has called back, and one turn of the loop longer.
 */
/* SPDX-License-Identifier: MIT */
#include "redis/lookup.h"

#include "base/alloc.h"
#include "base/cleanup.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>

#include <event2/dns.h>
#include <event2/event.h>
#include <event2/util.h>

struct redis_lookup {
	struct event_base *base;
	struct evdns_base *dns;
	struct evdns_getaddrinfo_request *request;
	struct redis_lookup_ask ask; /* fn is NULL when cancelled or told */
};

static void
lookup_free(evutil_socket_t fd, short what, void *arg)
{
	struct redis_lookup *lookup = arg;

	(void)fd;
	(void)what;
	evdns_base_free(lookup->dns, 0);
	free(lookup);
}

static void
lookup_tell(const struct redis_lookup_ask *ask, const struct evutil_addrinfo *found)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} address;
	uint32_t count = 0, turn;
	const struct evutil_addrinfo *info;

	for (info = found; info != NULL; info = info->ai_next)
		count++;
	turn = ask->turn % count;
	for (info = found; turn > 0; turn--)
		info = info->ai_next;
	if (info->ai_addrlen > sizeof address) {
		ask->fn(ask->ctx, NULL, 0, "its address is of an unknown kind");
		return;
	}
	memcpy(&address, info->ai_addr, info->ai_addrlen);
	if (address.any.sa_family == AF_INET)
		address.v4.sin_port = htons(ask->port);
	else
		address.v6.sin6_port = htons(ask->port);
	ask->fn(ask->ctx, &address.any, info->ai_addrlen, NULL);
}

static void
lookup_on_found(int error, struct evutil_addrinfo *found, void *arg)
{
	struct redis_lookup *lookup = arg;
	struct redis_lookup_ask ask = lookup->ask;
	struct timeval soon = { 0, 0 };

	lookup->ask.fn = NULL;
	if (event_base_once(lookup->base, -1, EV_TIMEOUT, lookup_free, lookup, &soon) != 0)
		abort();
	if (ask.fn != NULL && found != NULL)
		lookup_tell(&ask, found);
	else if (ask.fn != NULL)
		ask.fn(ask.ctx, NULL, 0, evutil_gai_strerror(error));
	if (found != NULL)
		evutil_freeaddrinfo(found);
}

static bool
lookup_is_address(const struct redis_lookup_ask *ask)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(ask->port) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(ask->port) };

	if (inet_pton(AF_INET, ask->host, &v4.sin_addr) == 1)
		ask->fn(ask->ctx, (const struct sockaddr *)&v4, sizeof v4, NULL);
	else if (inet_pton(AF_INET6, ask->host, &v6.sin6_addr) == 1)
		ask->fn(ask->ctx, (const struct sockaddr *)&v6, sizeof v6, NULL);
	else
		return false;
	return true;
}

struct redis_lookup *
redis_lookup_start(struct event_base *base, const struct redis_lookup_ask *ask)
{
	struct evutil_addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	struct redis_lookup *lookup;
	struct evdns_base *dns;

	if (lookup_is_address(ask))
		return NULL;
	dns = evdns_base_new(base, EVDNS_BASE_INITIALIZE_NAMESERVERS | EVDNS_BASE_DISABLE_WHEN_INACTIVE);
	if (dns == NULL) {
		ask->fn(ask->ctx, NULL, 0, "/etc/resolv.conf can't be read");
		return NULL;
	}
	/* Some servers do not give the letters back as they were asked, which would look like another's answer. */
	evdns_base_set_option(dns, "randomize-case:", "0");
	evdns_base_set_option(dns, "timeout:", "1");
	lookup = alloc_zero(1, sizeof *lookup);
	*lookup = (struct redis_lookup){ .base = base, .dns = dns, .ask = *ask };
	lookup->request = evdns_getaddrinfo(dns, ask->host, NULL, &hints, lookup_on_found, lookup);
	return lookup->ask.fn != NULL ? lookup : NULL;
}

void
redis_lookup_cancel(struct redis_lookup *lookup)
{
	lookup->ask.fn = NULL;
	if (lookup->request != NULL)
		evdns_getaddrinfo_cancel(lookup->request);
}
