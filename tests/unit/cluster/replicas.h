/* replicas.h - for tests: two servers' halves that share sandboxes, in one process, at a real Redis. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_TESTS_CLUSTER_REPLICAS_H
#define ORCHARD_TESTS_CLUSTER_REPLICAS_H

#include "redis_rig.h"

#include "cluster/changes.h"
#include "cluster/sandbox_feed.h"
#include "cluster/sandbox_share.h"
#include "cluster/sandbox_teller.h"
#include "redis/client.h"
#include "redis/url.h"

#include <stdbool.h>

enum { REPLICA_SLOTS = 64 };

struct replica {
	struct replicas *all;
	char id[ID_UUID_SIZE];
	struct shm_sandboxes *table;
	struct redis *redis, *listens;
	struct sandbox_share *share;
	struct sandbox_feed *feed;
	struct sandbox_teller *teller;
	struct changes *changes;
	unsigned news[MIRROR_GONE + 1];
	unsigned unwanted; /* told by the teller */
	bool finish_on_made; /* what it takes in is finished at once, before it can look again */
	bool lose_on_made; /* Redis is killed then */
};

struct replicas {
	struct rig_server server;
	struct event_base *base;
	struct redis_url url;
	struct replica a, b;
};

/* cmocka's; *state is a struct replicas, both of whom have compared once. */
int replicas_start(void **state);
int replicas_stop(void **state);

/* What came of one call. */
struct outcome {
	unsigned ended;
	enum share_result result;
	bool failed; /* no answer */
	char rule[SANDBOX_RULE_SIZE];
	int64_t version;
};
/* For the calls of share. */
void outcome_set(void *arg, const struct share_answer *answer, const struct err *why);
void outcome_await(struct replicas *all, const struct outcome *outcome);

/* A sandbox of a, recorded in Redis and in its table. */
struct sandbox_record replica_make(struct replica *replica, const char *id);
/* Changes a sandbox in its own replica's table, as its driver does, and has it told. */
void replica_set_status(struct replica *replica, const char *id, enum sandbox_status status);
struct outcome replica_delete(struct replica *replica, const struct sandbox_record *record);
struct outcome replica_finish(struct replica *replica, const struct sandbox_record *record);
struct outcome replica_look(struct replica *replica, const char *id);
/* False: not in its table. */
bool replica_find(struct replica *replica, const char *id, struct sandbox_record *ret_record);

/* Turns the loop until it is so; fails the test when that does not come. */
void replica_until_status(struct replica *replica, const char *id, enum sandbox_status status);
void replica_until_gone(struct replica *replica, const char *id);

#endif
