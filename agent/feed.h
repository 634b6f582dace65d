/*
 * feed.h - the stdin of one command that stays open: a pipe, what waits for it, and what was written already.
 *
 * Writers take turns. One gets its turn when its bytes fit beside those that the
 * command has not read yet, so a command that never reads holds a bounded amount
 * and everybody else waits. The result of a write is kept under its id: the same
 * write again changes nothing, even when the command has ended meanwhile.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_FEED_H
#define ORCHARD_AGENT_FEED_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct evbuffer;
struct event_base;
struct feed;

enum { FEED_MAX_PENDING = 1 << 20, FEED_MAX_RESULTS = 64, FEED_MAX_WAITING = 64 };

struct feed_result {
	uint64_t accepted; /* by this write */
	uint64_t total; /* by then, with what the feed began with */
	bool closed; /* nothing more is taken */
};

struct feed_turn {
	size_t len; /* bytes to be written, at most FEED_MAX_PENDING */
	/* It may write now; false: never, since the feed is closed. Then it waits no more. */
	void (*on_turn)(bool open, void *arg);
	void *arg;
	TAILQ_ENTRY(feed_turn) link;
};

/* Takes fd, the write end of a pipe, non-blocking. Begins with len bytes, which may be more than fit later. */
struct feed *feed_create(struct event_base *base, int fd, const void *data, size_t len);
/* Nobody waits any more. */
void feed_free(struct feed *feed);
/* The command has ended: closes the pipe, whatever was not written yet. */
void feed_close(struct feed *feed);
/* The result of that write, if it is one of the last. */
bool feed_recall(const struct feed *feed, const uint8_t id[16], struct feed_result *ret_result);
/* on_turn may be called at once. False: too many wait already. */
bool feed_wait(struct feed *feed, struct feed_turn *turn) MUSTCHECK;
void feed_leave(struct feed *feed, struct feed_turn *turn);
/*
 * Takes body, by the one whose turn it is; eof closes the pipe behind it. False: the feed is closed, nothing
 * was taken. The turn is over.
 */
bool feed_write(struct feed *feed, struct feed_turn *turn, const uint8_t id[16], struct evbuffer *body, bool eof,
	struct feed_result *ret_result) MUSTCHECK;

#endif
