/*
 * replicas.h - which servers live, and which one of them does what must be done once.
 *
 * The reaper of each server says in Redis that it lives, three times in `ttl_ms`; whoever has said nothing for that long
 * is gone. All times are Redis' own. After Redis was away, or slow, nobody is gone before another whole `ttl_ms`.
 *
 * The elected one holds a lease of the same length. It is taken over when it ends, or is given back: at most one server
 * holds it at any time, unless Redis forgets it (a flush, a fail-over to an older copy), and then two do for at most
 * `ttl_ms`. So a duty under it must stand being done twice.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CLUSTER_REPLICAS_H
#define ORCHARD_CLUSTER_REPLICAS_H

#include <stdbool.h>
#include <stdint.h>

struct event_base;
struct redis;
struct replicas;

struct replicas_options {
	struct event_base *base;
	struct redis *redis; /* all borrowed */
	const char *prefix;
	const char *id; /* of this server */
	const char *host, *version; /* for people who look into Redis */
	uint32_t ttl_ms;
	/*
	 * That server is gone. Told again with each beat until somebody calls replicas_bury(). NULL: nobody wants to know.
	 */
	void (*on_gone)(void *ctx, const char *id);
	void *ctx;
};

/* Says that it lives from now on. Never NULL. */
struct replicas *replicas_new(const struct replicas_options *options);
/* Gives the lease back; the server stays known until it is gone. Before the client. */
void replicas_free(struct replicas *replicas);
/* The connection has just come up, or ended. */
void replicas_on_redis(struct replicas *replicas, bool up);

/* Ask before each piece of a duty: it ends by itself. */
bool replicas_is_elected(const struct replicas *replicas);
/* As of the last beat, this server included; 0 before the first. */
uint32_t replicas_alive(const struct replicas *replicas);
/* False: gone, or never heard of. */
bool replicas_is_alive(const struct replicas *replicas, const char *id);
/*
 * False also while nobody can tell: our own beats must have come through for a whole ttl_ms. True for one that was never
 * heard of.
 */
bool replicas_is_gone(const struct replicas *replicas, const char *id);
/* What it left has been seen to: it is not told of any more, unless it says that it lives. */
void replicas_bury(struct replicas *replicas, const char *id);

#endif
