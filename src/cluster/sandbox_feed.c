/*
 * sandbox_feed.c - one read for each change, and the comparison of everything.
 *
 * A comparison goes through the index in Redis first, then through the foreign sandboxes in the table.
 * It starts over when something in it failed, after a pause.
 */
/* SPDX-License-Identifier: MIT */
#include "cluster/sandbox_feed.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text.h"
#include "cluster/sandbox_share.h"
#include "redis/client.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 100, AT_ONCE = 100, RETRY_MS = 1000, STRAY_MS = 60000 };

enum phase { IDLE, BY_INDEX, BY_TABLE };

struct sandbox_feed {
	struct sandbox_feed_options options;
	struct event *retry;
	struct event *strays; /* found too early to be judged */
	enum phase phase;
	bool wanted; /* a comparison, from the start */
	bool failed; /* something in this one */
	char cursor[32]; /* of the index */
	uint32_t slot; /* of the table: next one */
	uint32_t waiting; /* reads of this comparison under way */
	uint64_t compared;
};

static void go_on(struct sandbox_feed *feed);

static void
try_later(struct sandbox_feed *feed)
{
	struct timeval pause = clock_tv(RETRY_MS);

	feed->wanted = true;
	if (!event_pending(feed->retry, EV_TIMEOUT, NULL))
		event_add(feed->retry, &pause);
}

/* --- one change --- */

static void
on_refreshed(void *arg, const struct share_answer *answer, const struct err *why)
{
	(void)answer;
	if (why != NULL)
		try_later(arg);
}

static bool
copy_field(const struct redis_answer *fields, const char *name, char *ret_text, size_t size)
{
	const struct redis_answer *value = redis_answer_field(fields, name);

	return value->kind == REDIS_STRING && text_copy(ret_text, size, value->text);
}

static void
hear_sign(struct sandbox_feed *feed, const struct redis_answer *fields, struct sandbox_record *sign)
{
	const struct shared_clock *shared = sandbox_share_clock(feed->options.share);
	int64_t heartbeat_ms, activity_ms;
	uint32_t slot;

	if (!redis_answer_number(redis_answer_field(fields, "heartbeat_ms"), &heartbeat_ms) ||
		!redis_answer_number(redis_answer_field(fields, "activity_ms"), &activity_ms))
		return;
	sign->heartbeat_ms = shared_clock_to_boot(shared, heartbeat_ms);
	sign->activity_ms = shared_clock_to_boot(shared, activity_ms);
	if (sandbox_mirror_sign(sandbox_share_mirror(feed->options.share), sign, &slot) &&
		feed->options.signed_elsewhere != NULL)
		feed->options.signed_elsewhere(feed->options.ctx, slot, sign);
}

/* What this server has written of its own sandboxes it knows; not what somebody asked it to write of others'. */
static bool
is_own_word(struct sandbox_feed *feed, const struct redis_answer *fields)
{
	const struct redis_answer *what = redis_answer_field(fields, "what");

	return redis_answer_is(
		       redis_answer_field(fields, "by"), sandbox_share_mirror(feed->options.share)->replica) &&
		(redis_answer_is(what, "made") || redis_answer_is(what, "told") || redis_answer_is(what, "sign"));
}

void
sandbox_feed_heard(struct sandbox_feed *feed, const struct redis_answer *fields)
{
	struct sandbox_record sign = { 0 };
	struct err err;

	if (!copy_field(fields, "id", sign.id, sizeof sign.id) ||
		!copy_field(fields, "uid", sign.uid, sizeof sign.uid) || is_own_word(feed, fields))
		return;
	if (redis_answer_is(redis_answer_field(fields, "what"), "sign"))
		hear_sign(feed, fields, &sign);
	else if (sandbox_share_refresh(feed->options.share, sign.id, sign.uid,
			 (struct share_to){ .fn = on_refreshed, .arg = feed }, &err) != 0)
		try_later(feed);
}

/* --- everything --- */

/* Somebody may be about to make it here, who has told Redis first. */
static void
look_later(struct sandbox_feed *feed, int64_t ms)
{
	struct timeval pause = clock_tv(ms);

	if (!event_pending(feed->strays, EV_TIMEOUT, NULL))
		event_add(feed->strays, &pause);
}

static void
finish_stray(struct sandbox_feed *feed, const struct sandbox_record *stray)
{
	struct sandbox_record record = *stray;
	int64_t age_ms = clock_boot_ms() - record.created_ms;
	struct err err;

	if (age_ms < STRAY_MS && !sandbox_share_has_finished(feed->options.share, record.uid)) {
		look_later(feed, STRAY_MS - age_ms);
		return;
	}
	log_write(LOG_LEVEL_WARN, &(struct log_ctx){ .sandbox_id = record.id },
		"other servers know this sandbox as ours, and it is not here: it is gone for them, too");
	snprintf(record.reap_rule, sizeof record.reap_rule, "lost");
	/* If it is not done now, the next comparison finds it again. */
	(void)!sandbox_share_finish(feed->options.share, &record, (struct share_to){ 0 }, &err);
}

static void
on_compared(void *arg, const struct share_answer *answer, const struct err *why)
{
	struct sandbox_feed *feed = arg;

	feed->waiting--;
	if (why != NULL)
		feed->failed = true;
	else if (answer->result == SHARE_STRAY)
		finish_stray(feed, answer->stray);
	go_on(feed);
}

static void
compare_one(struct sandbox_feed *feed, const char *id, const char *uid)
{
	struct err err;

	if (sandbox_share_refresh(
		    feed->options.share, id, uid, (struct share_to){ .fn = on_compared, .arg = feed }, &err) == 0)
		feed->waiting++;
	else
		feed->failed = true;
}

static bool
ask(struct sandbox_feed *feed, const struct redis_args *args, redis_reply_fn *fn)
{
	struct err err;

	if (redis_send(feed->options.redis, args,
		    (struct redis_reply_to){ .fn = fn, .ctx = feed, .deadline_ms = feed->options.deadline_ms },
		    &err) == 0)
		return true;
	feed->failed = true;
	return false;
}

static void
on_page(void *ctx, const struct redis_answer *answer)
{
	struct sandbox_feed *feed = ctx;
	const struct redis_answer *cursor = redis_answer_item(answer, 0), *ids = redis_answer_item(answer, 1);

	feed->waiting--;
	if (cursor->kind != REDIS_STRING || !text_copy(feed->cursor, sizeof feed->cursor, cursor->text))
		feed->failed = true;
	else if (strcmp(feed->cursor, "0") == 0)
		feed->phase = BY_TABLE;
	for (size_t i = 0; ids->kind == REDIS_ARRAY && i < ids->size && !feed->failed; i++)
		if (ids->items[i].kind == REDIS_STRING && ids->items[i].size < SANDBOX_ID_SIZE)
			compare_one(feed, ids->items[i].text, "");
	go_on(feed);
}

static void
ask_page(struct sandbox_feed *feed)
{
	struct redis_args args;

	redis_args_init(&args);
	redis_args_text(&args, "SSCAN");
	redis_args_format(&args, "%ssandboxes", feed->options.prefix);
	redis_args_text(&args, feed->cursor);
	redis_args_text(&args, "COUNT");
	redis_args_number(&args, PAGE);
	feed->waiting += ask(feed, &args, on_page);
}

/* Somebody deleted it here; an older copy of Redis may not know. */
static void
repeat_deletion(struct sandbox_feed *feed, const struct sandbox_record *record)
{
	struct err err;

	if (sandbox_share_delete(
		    feed->options.share, record, record->reap_rule, false, (struct share_to){ 0 }, &err) != 0)
		feed->failed = true;
}

static void
compare_slot(struct sandbox_feed *feed, uint32_t slot)
{
	struct sandbox_record record;

	if (!sandbox_table_read(sandbox_share_mirror(feed->options.share)->table, slot, &record) ||
		record.home[0] == '\0')
		return;
	if (record.status == SANDBOX_DELETING)
		repeat_deletion(feed, &record);
	compare_one(feed, record.id, record.uid);
}

static void
compare_slots(struct sandbox_feed *feed)
{
	uint32_t bound = sandbox_table_bound(sandbox_share_mirror(feed->options.share)->table);

	while (feed->slot < bound && feed->waiting < AT_ONCE && !feed->failed)
		compare_slot(feed, feed->slot++);
	if (feed->slot < bound || feed->waiting > 0 || feed->failed)
		return;
	feed->phase = IDLE;
	feed->compared++;
}

static void
settle_failure(struct sandbox_feed *feed)
{
	if (!feed->failed || feed->waiting > 0)
		return;
	feed->phase = IDLE;
	try_later(feed);
}

static void
begin(struct sandbox_feed *feed)
{
	feed->wanted = feed->failed = false;
	feed->phase = BY_INDEX;
	snprintf(feed->cursor, sizeof feed->cursor, "0");
	feed->slot = 0;
	ask_page(feed);
	settle_failure(feed);
}

/* After each answer of the comparison. Only in the table it goes on before all answers are in. */
static void
go_on(struct sandbox_feed *feed)
{
	if (feed->waiting > 0 && (feed->phase != BY_TABLE || feed->failed || feed->wanted))
		return;
	if (feed->wanted && !feed->failed) {
		begin(feed);
		return;
	}
	if (!feed->failed && feed->phase == BY_INDEX)
		ask_page(feed);
	else if (!feed->failed && feed->phase == BY_TABLE)
		compare_slots(feed);
	settle_failure(feed);
}

static void
on_retry(evutil_socket_t fd, short what, void *arg)
{
	struct sandbox_feed *feed = arg;

	(void)fd;
	(void)what;
	if (feed->wanted && feed->waiting == 0)
		begin(feed);
}

static void
on_strays(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	sandbox_feed_compare(arg);
}

void
sandbox_feed_compare(struct sandbox_feed *feed)
{
	feed->wanted = true;
	event_active(feed->retry, EV_TIMEOUT, 1);
}

uint64_t
sandbox_feed_compared(const struct sandbox_feed *feed)
{
	return feed->compared;
}

struct sandbox_feed *
sandbox_feed_new(const struct sandbox_feed_options *options)
{
	struct sandbox_feed *feed = alloc_zero(1, sizeof *feed);

	feed->options = *options;
	feed->retry = event_new(options->base, -1, 0, on_retry, feed);
	feed->strays = event_new(options->base, -1, 0, on_strays, feed);
	if (feed->retry == NULL || feed->strays == NULL)
		abort();
	return feed;
}

void
sandbox_feed_free(struct sandbox_feed *feed)
{
	if (feed == NULL)
		return;
	redis_forget(feed->options.redis, feed);
	sandbox_share_forget(feed->options.share, feed);
	event_free(feed->retry);
	event_free(feed->strays);
	free(feed);
}
