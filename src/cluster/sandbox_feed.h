/*
 * sandbox_feed.h - keeping the shared table's view of other replicas' sandboxes, and of deletions of ours, complete.
 *
 * In the one process of a server that hears the stream of changes. Each change is read anew; when some may have been
 * missed, all sandboxes are compared, page by page: those in Redis with the table, then those in the table with Redis.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CLUSTER_SANDBOX_FEED_H
#define ORCHARD_CLUSTER_SANDBOX_FEED_H

#include <stdint.h>

struct event_base;
struct redis;
struct redis_answer;
struct sandbox_feed;
struct sandbox_record;
struct sandbox_share;

struct sandbox_feed_options {
	struct event_base *base;
	struct redis *redis; /* the share's */
	struct sandbox_share *share; /* all borrowed */
	const char *prefix;
	uint32_t deadline_ms;
	/* Another server has told signs of life of that one, which are in the table now; NULL: nobody cares. */
	void (*signed_elsewhere)(void *ctx, uint32_t slot, const struct sandbox_record *sign);
	void *ctx;
};

struct sandbox_feed *sandbox_feed_new(const struct sandbox_feed_options *options);
/* Before the share. */
void sandbox_feed_free(struct sandbox_feed *feed);

/* A change of kind "sandbox". */
void sandbox_feed_heard(struct sandbox_feed *feed, const struct redis_answer *fields);
/* Compares everything, now or as soon as Redis is there. */
void sandbox_feed_compare(struct sandbox_feed *feed);
/* How many comparisons have been finished. */
uint64_t sandbox_feed_compared(const struct sandbox_feed *feed);

#endif
