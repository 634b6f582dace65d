/*
 * key_kept.h - what a process has lately said of Idempotency-Keys, so that it can say it again.
 *
 * The newest word of each key; the oldest words go when they are older than KEY_KEPT_MS, or when there are too many.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CLUSTER_KEY_KEPT_H
#define ORCHARD_CLUSTER_KEY_KEPT_H

#include "base/id.h"
#include "ipc/record_index.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

/* A copy of Redis that lags behind by more than that is one to be ashamed of. */
enum { KEY_KEPT_MS = 60 * 1000, KEY_KEPT_BYTES = 8 * 1024 * 1024 };

/* One word; its owner fills in everything that is not link or bookkeeping. */
struct key_word {
	TAILQ_ENTRY(key_word) link;
	LIST_ENTRY(key_word) same; /* of those that share a bucket */
	int64_t said_ms; /* boot clock */
	struct record_key key;
	char mark[ID_UUID_SIZE]; /* of the claim */
	char before[ID_UUID_SIZE]; /* of the claim that it has renewed; "": it is the first */
	double claimed_at, expires_at; /* clock_steady() */
	bool ended; /* what it stands for */
	bool given_up; /* the claim is not to be there */
	size_t len;
	char claim[]; /* as it is kept, with a NUL behind */
};

struct key_kept;

struct key_kept *key_kept_new(size_t max_bytes);
void key_kept_free(struct key_kept *kept);

/* For key_kept_put(), or free(). */
struct key_word *key_word_new(const struct record_key *key, const char *claim, size_t len);
/* Takes the word, in the place of an older one of its key. */
void key_kept_put(struct key_kept *kept, struct key_word *word, int64_t now_ms);
/* The word of that key, to be changed in place; NULL: none. */
struct key_word *key_kept_find(struct key_kept *kept, const struct record_key *key);

/* All words from the newest on, some at a time, whatever is put meanwhile. A new walk takes the place of one under way. */
void key_kept_walk(struct key_kept *kept, int64_t now_ms);
/* NULL: that was all. Good until the next call. */
const struct key_word *key_kept_next(struct key_kept *kept);

#endif
