/*
 * cluster.h - what one process of this server needs to share with other servers: who it is, and its connection to Redis.
 *
 * Only where use_redis is on. The connection is watched here: counted in the scoreboard, and its troubles logged once.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CLUSTER_CLUSTER_H
#define ORCHARD_CLUSTER_CLUSTER_H

#include "base/cleanup.h"
#include "ipc/scoreboard.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct cluster;
struct config;
struct err;
struct event_base;
struct redis;
struct redis_url;
struct shm;

struct cluster_options {
	struct event_base *base;
	const struct config *config;
	struct shm *shm;
	struct proc_ref self;
	const char *role; /* "worker", in Redis' list of clients */
	bool warns; /* looks what may be wrong with that Redis at each connection: one process of a server is enough */
};

int cluster_create(const struct cluster_options *options, struct cluster **ret_cluster, struct err *err) MUSTCHECK;
void cluster_free(struct cluster *cluster);

struct redis *cluster_redis(const struct cluster *cluster);
const char *cluster_prefix(const struct cluster *cluster); /* of every key */
const char *cluster_replica(const struct cluster *cluster); /* this server's id, a UUID */
const struct redis_url *cluster_url(const struct cluster *cluster); /* for connections besides this one */
uint32_t cluster_deadline_ms(const struct cluster *cluster); /* redis_timeout_ms */

/* Why Redis does not serve this process, as one sentence; false while it does. */
bool cluster_problem(const struct cluster *cluster, char *buf, size_t size);

/* Told of each change, in the order in which they were added. Inside it none may be added or dropped. */
struct cluster_listener {
	TAILQ_ENTRY(cluster_listener) entry;
	void (*on_change)(void *ctx, bool up);
	void *ctx;
};
void cluster_listen(struct cluster *cluster, struct cluster_listener *listener);
void cluster_unlisten(struct cluster *cluster, struct cluster_listener *listener);

#endif
