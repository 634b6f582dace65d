/*
 * job_feed.c - one follower of a job.
 *
 *   reading  -> pieces: paused until the listener wants more
 *            -> nothing: reading again (it runs), or asleep (it is queued, or its end is being written down)
 *   asleep   -> the job's slot has changed, or the time is up: reading
 *   paused   -> now and then a read of nothing, if the command waits: it shall hear that somebody listens
 *
 * The watch on the slot is set before the first look and stands until the end, so no change is missed;
 * one that comes while a read is on its way is remembered. A job of another server has no slot: what is heard of it is posted
 * at one that it may share, and may be lost, so it is looked at now and then.
 */
/* SPDX-License-Identifier: MIT */
#include "domain/job/job_feed.h"
#include "domain/job/job_priv.h"
#include "domain/job/job_tap.h"
#include "domain/service_priv.h"
#include "backend/agent_client.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"

#include <event2/event.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	PIECE_MAX = 32 * 1024, /* of each stream */
	QUIET_MS = 15000,
	FIRST_PAUSE_MS = 20,
	LAST_PAUSE_MS = 1000,
	BEAT_MAX_MS = 5000, /* else a quarter of the time that the command waits */
	SAVING_MS = 1000, /* a change wakes sooner */
	LAST_ANSWER_MS = 2000, /* an agent that has not answered so long after the job's end does not */
	UNREACHABLE_MS = 20000
};

struct job_feed {
	LIST_ENTRY(job_feed) link;
	struct service *service;
	struct job_tap *tap;
	struct watch watch;
	uint32_t slot;
	struct event *timer;
	char job_id[ID_UUID_SIZE];
	int64_t next[JOB_STREAMS];
	char status[16]; /* as last told */
	bool reading;
	bool paused;
	bool beating; /* a read of nothing is on its way, while paused */
	bool woken; /* the slot has changed since the read began */
	bool far; /* it is no live job of this server */
	int64_t quiet_ms; /* when the listener last heard anything */
	int64_t read_ms, wait_ms; /* when it began, and how long it may take */
	int64_t pause_ms;
	int64_t hold_ms; /* the command waits so long without a word; 0: it does not */
	int64_t unreachable_ms; /* since when; 0: it can be reached */
	const struct job_feed_ops *ops;
	void *arg;
};

void
job_feed_close(struct job_feed *feed)
{
	watch_remove(&feed->watch);
	event_free(feed->timer);
	job_tap_close(feed->tap);
	LIST_REMOVE(feed, link);
	service_waiter_drop(feed->service);
	service_count(feed->service, METRIC_STREAMS, -1);
	free(feed);
}

static void
feed_end(struct job_feed *feed, struct json_object *job, const struct err *why)
{
	const struct job_feed_ops *ops = feed->ops;
	AUTO_JSON struct json_object *brief = job != NULL ? job_without_outputs(job) : NULL;
	void *arg = feed->arg;
	struct err copy = { 0 };

	if (why != NULL)
		copy = *why;
	job_feed_close(feed);
	ops->end(brief, why != NULL ? &copy : NULL, arg);
}

static void
feed_tell_quiet(struct job_feed *feed)
{
	feed->quiet_ms = clock_boot_ms();
	feed->ops->quiet(feed->arg);
}

static void
feed_read(struct job_feed *feed)
{
	struct job_tap_ask ask = {
		.offset = { feed->next[JOB_STDOUT], feed->next[JOB_STDERR] },
		.limit = PIECE_MAX,
		/* What has just begun to run is told at once. */
		.wait_ms = strcmp(feed->status, "running") == 0 ? QUIET_MS : 0,
		.reader = true,
	};

	event_del(feed->timer);
	feed->wait_ms = ask.wait_ms;
	feed->reading = true;
	feed->woken = false;
	feed->read_ms = clock_boot_ms();
	job_tap_read(feed->tap, &ask);
}

static void
feed_sleep(struct job_feed *feed, int64_t ms)
{
	if (feed->woken)
		feed_read(feed);
	else
		service_timer_set(feed->timer, ms);
}

static void
feed_nap(struct job_feed *feed)
{
	int64_t ms = feed->pause_ms;

	feed->pause_ms = ms * 2 < LAST_PAUSE_MS ? ms * 2 : LAST_PAUSE_MS;
	feed_sleep(feed, ms);
}

/* --- while the listener takes its time --- */

static void
feed_set_beat(struct job_feed *feed)
{
	int64_t ms = feed->hold_ms / 4 < BEAT_MAX_MS ? feed->hold_ms / 4 : BEAT_MAX_MS;

	if (feed->hold_ms > 0)
		service_timer_set(feed->timer, ms);
}

static void
feed_beat(struct job_feed *feed)
{
	struct job_tap_ask ask = {
		.offset = { feed->next[JOB_STDOUT], feed->next[JOB_STDERR] }, .limit = 0, .reader = true
	};

	feed->beating = true;
	job_tap_read(feed->tap, &ask);
}

static void
feed_on_beat(struct job_feed *feed, const struct job_tap_answer *answer)
{
	feed->beating = false;
	if (answer != NULL)
		feed->hold_ms = answer->hold_ms;
	if (feed->hold_ms == 0)
		job_tap_rest(feed->tap);
	feed_set_beat(feed);
}

/* --- what a read brought --- */

static void
feed_tell_status(struct job_feed *feed, const struct job_tap_answer *answer)
{
	/* Its end is told by the end. */
	if (answer->state == JOB_TAP_ENDED || strcmp(feed->status, answer->status) == 0)
		return;
	snprintf(feed->status, sizeof feed->status, "%s", answer->status);
	feed->ops->status(feed->status, answer->queue_position, feed->arg);
}

static bool
feed_tell_piece(struct job_feed *feed, enum job_stream stream, const struct job_tap_part *part)
{
	struct job_feed_piece piece = {
		.stream = stream, .offset = part->offset, .data = part->data, .len = part->len
	};

	if (part->len == 0) {
		if (part->offset > feed->next[stream])
			feed->next[stream] = part->offset;
		return false;
	}
	feed->next[stream] = part->offset + (int64_t)part->len;
	memcpy(piece.next, feed->next, sizeof piece.next);
	service_count(feed->service, METRIC_STREAM_BYTES, (int64_t)part->len);
	feed->ops->piece(&piece, feed->arg);
	return true;
}

static bool
feed_has_all(const struct job_feed *feed, const struct job_tap_answer *answer)
{
	for (int i = 0; i < JOB_STREAMS; i++)
		if (!answer->parts[i].gone && feed->next[i] < answer->parts[i].bytes)
			return false;
	return true;
}

static void
feed_on_failed(struct job_feed *feed, const struct err *why)
{
	int64_t now = clock_boot_ms();

	if (feed->unreachable_ms == 0)
		feed->unreachable_ms = now;
	if (why->code == ERR_AGENT_UNREACHABLE && now - feed->unreachable_ms < UNREACHABLE_MS)
		feed_nap(feed);
	else
		feed_end(feed, NULL, why);
}

static void
feed_on_last(struct job_feed *feed, const struct job_tap_answer *answer)
{
	struct err err;

	if (!feed_has_all(feed, answer)) {
		err_set(&err, ERR_AGENT_UNREACHABLE, "the agent does not give what it has");
		feed_on_failed(feed, &err);
		return;
	}
	feed->unreachable_ms = 0;
	if (answer->state == JOB_TAP_ENDED)
		feed_end(feed, answer->job, NULL);
	else
		feed_sleep(feed, SAVING_MS);
}

static void
feed_on_nothing(struct job_feed *feed, const struct job_tap_answer *answer)
{
	if (answer->state == JOB_TAP_ENDED || answer->state == JOB_TAP_ENDING) {
		feed_on_last(feed, answer);
		return;
	}
	feed->unreachable_ms = 0;
	if (answer->state == JOB_TAP_QUEUED) {
		feed_sleep(feed, feed->far ? feed->service->far_look_ms : QUIET_MS);
	} else if (answer->silent || clock_boot_ms() - feed->read_ms < feed->wait_ms) {
		feed_nap(feed);
	} else {
		if (feed->wait_ms > 0)
			feed_tell_quiet(feed);
		feed_read(feed);
	}
}

static void
feed_on_read(const struct job_tap_answer *answer, const struct err *why, void *arg)
{
	struct job_feed *feed = arg;
	bool told = false;

	if (feed->beating) {
		feed_on_beat(feed, answer);
		return;
	}
	feed->reading = false;
	event_del(feed->timer);
	if (why != NULL) {
		feed_on_failed(feed, why);
		return;
	}
	feed_tell_status(feed, answer);
	feed->hold_ms = answer->hold_ms;
	for (int i = 0; i < JOB_STREAMS; i++)
		told = feed_tell_piece(feed, (enum job_stream)i, &answer->parts[i]) || told;
	if (!told) {
		feed_on_nothing(feed, answer);
		return;
	}
	feed->unreachable_ms = 0;
	feed->pause_ms = FIRST_PAUSE_MS;
	feed->paused = true;
	feed_set_beat(feed);
	feed->ops->pause(feed->arg);
}

/* --- what wakes it --- */

static bool
feed_job_is_live(const struct job_feed *feed)
{
	struct job_record record;

	return job_table_read(service_jobs(feed->service), feed->slot, &record) &&
		strcmp(record.id, feed->job_id) == 0;
}

static void
feed_on_change(void *arg)
{
	struct job_feed *feed = arg;

	feed->woken = true;
	if (feed->paused)
		return;
	if (!feed->reading)
		feed_read(feed);
	else if (!feed->far && !feed_job_is_live(feed))
		service_timer_set(feed->timer, LAST_ANSWER_MS);
}

static void
feed_on_time(evutil_socket_t fd, short what, void *arg)
{
	struct job_feed *feed = arg;

	(void)fd;
	(void)what;
	if (feed->paused) {
		feed_beat(feed);
		return;
	}
	if (feed->reading)
		job_tap_stop(feed->tap);
	else if (strcmp(feed->status, "queued") == 0 && clock_boot_ms() - feed->quiet_ms >= QUIET_MS)
		feed_tell_quiet(feed);
	feed_read(feed);
}

/* --- the feed --- */

int
job_feed_start(struct service *service, const char *tenant, const char *job_id, const int64_t offset[JOB_STREAMS],
	const struct job_feed_ops *ops, void *arg, struct job_feed **ret_feed, struct err *err)
{
	struct job_record record;
	struct job_feed *feed;
	uint32_t slot;
	bool live = job_find_live(service, tenant, job_id, &record, &slot);

	if ((live && service_agent_admit(service, record.sandbox_uid, AGENT_SHARE_STREAMS, err) != 0) ||
		service_waiter_add(service, err) != 0)
		return -1;
	feed = alloc_zero(1, sizeof *feed);
	feed->service = service;
	feed->ops = ops;
	feed->arg = arg;
	if (live || service->board != NULL)
		feed->slot = live ? slot : job_far_slot(service, job_id);
	feed->far = !live;
	feed->quiet_ms = clock_boot_ms();
	feed->pause_ms = FIRST_PAUSE_MS;
	memcpy(feed->next, offset, sizeof feed->next);
	snprintf(feed->job_id, sizeof feed->job_id, "%s", job_id);
	feed->tap = job_tap_open(service, tenant, job_id, feed_on_read, feed);
	feed->timer = service_timer(service, feed_on_time, feed);
	feed->watch = (struct watch){ .on_change = feed_on_change, .arg = feed };
	LIST_INSERT_HEAD(&service->job_feeds, feed, link);
	service_count(service, METRIC_STREAMS, 1);
	if (live || service->board != NULL)
		watch_add(&service->watches, &feed->watch, NOTIFY_JOB, feed->slot);
	if (live)
		job_follow(service, slot, job_id);
	feed_read(feed);
	*ret_feed = feed;
	return 0;
}

void
job_feed_more(struct job_feed *feed)
{
	if (!feed->paused)
		return;
	feed->paused = false;
	if (feed->beating)
		job_tap_stop(feed->tap);
	feed->beating = false;
	feed_read(feed);
}

void
job_feed_rest(struct job_feed *feed)
{
	if (feed->paused)
		job_tap_rest(feed->tap);
}

bool
job_feed_holds(const struct job_feed *feed)
{
	return feed->hold_ms > 0;
}

void
job_feed_end_all(struct service *service)
{
	struct job_feed *feed;
	struct err err;

	err_set(&err, ERR_UNAVAILABLE, "this server process stops; ask again");
	while ((feed = LIST_FIRST(&service->job_feeds)) != NULL)
		feed_end(feed, NULL, &err);
}
