/*
 * changes.h - what other replicas have changed, read from the stream of changes as it comes.
 *
 * Every script that changes something appends an entry to the stream PREFIXchanges: "kind" (sandbox, lane...) and what
 * that kind wants to say. An entry only says that something is new; whoever hears it reads what it is. Whoever was
 * cut off reads on where it was; only when that place is gone must everything be compared.
 *
 * Redis itself may be emptied, or be replaced by an older copy: its "epoch", its newest entry and the name of its run say so.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CLUSTER_CHANGES_H
#define ORCHARD_CLUSTER_CHANGES_H

#include <stdbool.h>
#include <stdint.h>

enum { CHANGES_KEPT = 65536 }; /* about so many entries */

struct changes;
struct event_base;
struct redis;
struct redis_answer;

/* fields: a flat list of names and values, borrowed. */
typedef void changes_heard_fn(void *ctx, const char *kind, const struct redis_answer *fields);
/*
 * From now on every change is heard. Told at the start, after each cut, and when Redis is found to be emptied or older: what
 * was last written may be lost. missed: so may be changes by others.
 */
typedef void changes_resumed_fn(void *ctx, bool missed);

struct changes_options {
	struct event_base *base;
	struct redis *redis; /* for this alone, as reading blocks it; its redis_on_change() is taken. Borrowed */
	const char *prefix; /* borrowed */
	uint32_t deadline_ms; /* of an answer, beyond the time that reading waits for changes; 0: 5000 */
	changes_heard_fn *heard;
	changes_resumed_fn *resumed;
	void *ctx;
};

/* Never NULL. */
struct changes *changes_new(const struct changes_options *options);
/* Before the client it reads with. */
void changes_free(struct changes *changes);
/* Names what is in Redis since it was last empty, or another run of it began; "" before the first changes_resumed_fn. */
const char *changes_epoch(const struct changes *changes);

#endif
