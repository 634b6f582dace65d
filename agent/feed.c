/* feed.c - a bounded buffer in front of a pipe, and a queue in front of the buffer. */
/* SPDX-License-Identifier: MIT */
#include "agent/feed.h"

#include "base/alloc.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FEED_PIECE = 64 << 10 };

struct feed_record {
	uint8_t id[16];
	struct feed_result result;
};

struct feed {
	int fd; /* -1: closed */
	struct event *writable;
	struct evbuffer *pending;
	uint64_t total;
	bool ending; /* closes once pending is written */
	bool writing; /* the first of turns has its turn */
	TAILQ_HEAD(, feed_turn) turns;
	size_t waiting; /* how many turns */
	struct feed_record *records; /* a ring; NULL before the first */
	size_t record_count, record_next;
};

static bool
feed_is_open(const struct feed *feed)
{
	return feed->fd >= 0 && !feed->ending;
}

static void
feed_refuse_all(struct feed *feed)
{
	struct feed_turn *turn;

	feed->writing = false;
	while ((turn = TAILQ_FIRST(&feed->turns)) != NULL) {
		TAILQ_REMOVE(&feed->turns, turn, link);
		feed->waiting--;
		turn->on_turn(false, turn->arg);
	}
}

static void
feed_next(struct feed *feed)
{
	struct feed_turn *turn = TAILQ_FIRST(&feed->turns);

	if (turn == NULL || feed->writing || evbuffer_get_length(feed->pending) + turn->len > FEED_MAX_PENDING)
		return;
	feed->writing = true;
	turn->on_turn(true, turn->arg);
}

void
feed_close(struct feed *feed)
{
	if (feed->fd < 0)
		return;
	event_free(feed->writable);
	feed->writable = NULL;
	close(feed->fd);
	feed->fd = -1;
	evbuffer_free(feed->pending);
	feed->pending = NULL;
	feed_refuse_all(feed);
}

/* One piece; the rest when the loop comes round again. */
static void
feed_flush(struct feed *feed)
{
	int put = 0;

	if (evbuffer_get_length(feed->pending) > 0)
		put = evbuffer_write_atmost(feed->pending, feed->fd, FEED_PIECE);
	if (put < 0 && errno != EAGAIN && errno != EINTR)
		feed_close(feed);
	else if (evbuffer_get_length(feed->pending) > 0)
		event_add(feed->writable, NULL);
	else if (feed->ending)
		feed_close(feed);
}

static void
feed_on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct feed *feed = arg;

	(void)fd;
	(void)what;
	feed_flush(feed);
	if (feed->fd >= 0)
		feed_next(feed);
}

struct feed *
feed_create(struct event_base *base, int fd, const void *data, size_t len)
{
	struct feed *feed = alloc_zero(1, sizeof *feed);

	feed->fd = fd;
	feed->total = len;
	feed->pending = evbuffer_new();
	feed->writable = event_new(base, fd, EV_WRITE, feed_on_writable, feed);
	TAILQ_INIT(&feed->turns);
	if (feed->pending == NULL || feed->writable == NULL || evbuffer_add(feed->pending, data, len) < 0)
		abort();
	feed_flush(feed);
	return feed;
}

void
feed_free(struct feed *feed)
{
	feed_close(feed);
	free(feed->records);
	free(feed);
}

bool
feed_recall(const struct feed *feed, const uint8_t id[16], struct feed_result *ret_result)
{
	for (size_t i = 0; i < feed->record_count; i++)
		if (memcmp(feed->records[i].id, id, sizeof feed->records[i].id) == 0) {
			*ret_result = feed->records[i].result;
			return true;
		}
	return false;
}

static void
feed_record(struct feed *feed, const uint8_t id[16], const struct feed_result *result)
{
	struct feed_record *record;

	if (feed->records == NULL)
		feed->records = alloc_zero(FEED_MAX_RESULTS, sizeof *feed->records);
	record = &feed->records[feed->record_next];
	memcpy(record->id, id, sizeof record->id);
	record->result = *result;
	feed->record_next = (feed->record_next + 1) % FEED_MAX_RESULTS;
	if (feed->record_count < FEED_MAX_RESULTS)
		feed->record_count++;
}

bool
feed_wait(struct feed *feed, struct feed_turn *turn)
{
	if (!feed_is_open(feed)) {
		turn->on_turn(false, turn->arg);
		return true;
	}
	if (feed->waiting == FEED_MAX_WAITING)
		return false;
	TAILQ_INSERT_TAIL(&feed->turns, turn, link);
	feed->waiting++;
	feed_next(feed);
	return true;
}

static void
feed_end_turn(struct feed *feed, struct feed_turn *turn)
{
	if (turn == TAILQ_FIRST(&feed->turns))
		feed->writing = false;
	TAILQ_REMOVE(&feed->turns, turn, link);
	feed->waiting--;
}

void
feed_leave(struct feed *feed, struct feed_turn *turn)
{
	feed_end_turn(feed, turn);
	feed_next(feed);
}

/* Nobody holds the read end any more. */
static bool
feed_is_broken(const struct feed *feed)
{
	struct pollfd pollfd = { .fd = feed->fd };

	return poll(&pollfd, 1, 0) == 1 && (pollfd.revents & POLLERR) != 0;
}

bool
feed_write(struct feed *feed, struct feed_turn *turn, const uint8_t id[16], struct evbuffer *body, bool eof,
	struct feed_result *ret_result)
{
	size_t len = evbuffer_get_length(body);

	feed_end_turn(feed, turn);
	if (feed_recall(feed, id, ret_result)) {
		feed_next(feed);
		return true;
	}
	if (feed_is_broken(feed)) {
		feed_close(feed);
		return false;
	}
	if (evbuffer_add_buffer(feed->pending, body) < 0)
		abort();
	feed->total += len;
	feed->ending = eof;
	*ret_result = (struct feed_result){ .accepted = len, .total = feed->total, .closed = eof };
	feed_record(feed, id, ret_result);
	if (eof)
		feed_refuse_all(feed);
	feed_flush(feed);
	if (feed->fd >= 0)
		feed_next(feed);
	return true;
}
