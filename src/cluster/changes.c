/*
 * changes.c - looks where the stream stands, then reads on, over and over.
 *
 * A look asks for the epoch and for the oldest and the newest entry. The place to read on from is good if nothing between it and
 * the oldest entry can have been there, and if it is not behind the newest one. A look comes after each
 * connect, after each pause without a change, and when reading has fallen behind.
 *
 * A copy that was promoted may lack what was last written, and others may have written to it since: its stream does not show that.
 * So after a connect Redis is asked which run of it this is; another one begins an epoch of its own. One that keeps that to
 * itself may be another.
 */
/* SPDX-License-Identifier: MIT */
#include "cluster/changes.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"
#include "base/log.h"
#include "base/text.h"
#include "redis/client.h"
#include "redis/script.h"

#include <event2/event.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A pause is shorter than a connection may be silent. */
enum { PAUSE_MS = 1000, ANSWER_MS = 5000, BATCH = 1000, RETRY_MS = 500, LOOK_MS = 1000 };

/* The id of an entry; the first one is behind 0-0. */
struct place {
	uint64_t ms, count;
};

enum { RUN_SIZE = 64 };

struct look {
	char epoch[ID_UUID_SIZE];
	char run[RUN_SIZE]; /* of the process of Redis, after a connect; "": it does not say */
	struct place oldest, newest;
	bool empty;
};

struct changes {
	struct changes_options options;
	struct event *retry;
	char epoch[ID_UUID_SIZE];
	char run[RUN_SIZE];
	struct place place; /* of the last entry heard */
	struct look look; /* being filled */
	int64_t looked_ms;
	bool placed; /* place says something */
	bool resumes; /* somebody is to be told after the look that is under way */
};

static int
place_compare(const struct place *a, const struct place *b)
{
	if (a->ms != b->ms)
		return a->ms < b->ms ? -1 : 1;
	return a->count == b->count ? 0 : a->count < b->count ? -1 : 1;
}

static bool
place_read(const struct redis_answer *id, struct place *ret_place)
{
	return id->kind == REDIS_STRING &&
		sscanf(id->text, "%" SCNu64 "-%" SCNu64, &ret_place->ms, &ret_place->count) == 2;
}

/*
 * KEYS  epoch, run
 * ARGV  1 a fresh word, 2 the run of Redis that this is; "" where that is not asked, or not known
 * ->    the epoch
 */
static const struct redis_script epoch_script = { .keys = 2,
	.text = "local epoch = redis.call('GET', KEYS[1])\n"
		"if not epoch or (ARGV[2] ~= '' and redis.call('GET', KEYS[2]) ~= ARGV[2]) then\n"
		"  epoch = ARGV[1]\n"
		"  redis.call('SET', KEYS[1], epoch)\n"
		"  redis.call('SET', KEYS[2], ARGV[2])\n"
		"end\n"
		"return epoch\n" };

static void look(struct changes *changes);

static void
retry_later(struct changes *changes)
{
	struct timeval pause = clock_tv(RETRY_MS);

	event_add(changes->retry, &pause);
}

/* Refused: the connection is down, and its return is told; or Redis did not understand, which may pass. */
static void
asked_in_vain(struct changes *changes)
{
	if (redis_is_up(changes->options.redis))
		retry_later(changes);
}

static struct redis_reply_to
to_us(struct changes *changes, redis_reply_fn *fn)
{
	return (struct redis_reply_to){
		.fn = fn, .ctx = changes, .deadline_ms = PAUSE_MS + changes->options.deadline_ms
	};
}

static void
ask(struct changes *changes, const struct redis_args *args, redis_reply_fn *fn)
{
	struct err err;

	if (redis_send(changes->options.redis, args, to_us(changes, fn), &err) != 0)
		asked_in_vain(changes);
}

/* False: nothing came, or nothing of use. */
static bool
is_answer(struct changes *changes, const struct redis_answer *answer)
{
	struct err err;

	if (redis_answer_check(answer, &err) == 0)
		return true;
	if (!redis_is_up(changes->options.redis))
		return false;
	log_warn("the stream of changes cannot be read, trying again: %s", err.msg);
	retry_later(changes);
	return false;
}

/* --- reading --- */

static void read_on(struct changes *changes);

static void
hear(struct changes *changes, const struct redis_answer *entry)
{
	const struct redis_answer *fields = redis_answer_item(entry, 1);
	const struct redis_answer *kind = redis_answer_field(fields, "kind");
	struct place place;

	if (place_read(redis_answer_item(entry, 0), &place))
		changes->place = place;
	if (kind->kind == REDIS_STRING)
		changes->options.heard(changes->options.ctx, kind->text, fields);
}

static void
on_read(void *ctx, const struct redis_answer *answer)
{
	struct changes *changes = ctx;
	const struct redis_answer *entries;

	if (!is_answer(changes, answer))
		return;
	/* [[key, [[id, fields]...]]] */
	entries = redis_answer_item(redis_answer_item(answer, 0), 1);
	for (size_t i = 0; entries->kind == REDIS_ARRAY && i < entries->size; i++)
		hear(changes, redis_answer_item(entries, i));
	if (entries->kind != REDIS_ARRAY || entries->size >= BATCH ||
		clock_boot_ms() - changes->looked_ms > LOOK_MS)
		look(changes);
	else
		read_on(changes);
}

static void
read_on(struct changes *changes)
{
	struct redis_args args;

	redis_args_init(&args);
	redis_args_text(&args, "XREAD");
	redis_args_text(&args, "COUNT");
	redis_args_number(&args, BATCH);
	redis_args_text(&args, "BLOCK");
	redis_args_number(&args, PAUSE_MS);
	redis_args_text(&args, "STREAMS");
	redis_args_format(&args, "%schanges", changes->options.prefix);
	redis_args_format(&args, "%" PRIu64 "-%" PRIu64, changes->place.ms, changes->place.count);
	ask(changes, &args, on_read);
}

/* --- looking --- */

static bool
is_other_run(const struct changes *changes)
{
	return changes->resumes && (changes->look.run[0] == '\0' || strcmp(changes->run, changes->look.run) != 0);
}

/* Was everything heard that had been said up to the look? */
static bool
place_is_good(const struct changes *changes)
{
	const struct look *now = &changes->look;

	if (!changes->placed || strcmp(changes->epoch, now->epoch) != 0 || is_other_run(changes))
		return false;
	if (now->empty)
		return changes->place.ms == 0 && changes->place.count == 0;
	return place_compare(&now->oldest, &changes->place) <= 0 &&
		place_compare(&changes->place, &now->newest) <= 0;
}

/* Where to read on when something was missed: what is still there of it is heard, too, unless that is another Redis' stream. */
static void
place_anew(struct changes *changes)
{
	bool same = changes->placed && strcmp(changes->epoch, changes->look.epoch) == 0 && !changes->look.empty;

	if (!same || place_compare(&changes->look.newest, &changes->place) < 0)
		changes->place = changes->look.empty ? (struct place){ 0 } : changes->look.newest;
	memcpy(changes->epoch, changes->look.epoch, sizeof changes->epoch);
	changes->placed = true;
}

static void
on_looked(struct changes *changes)
{
	bool missed = !place_is_good(changes), resumes = changes->resumes;

	changes->looked_ms = clock_boot_ms();
	if (missed)
		place_anew(changes);
	if (resumes)
		memcpy(changes->run, changes->look.run, sizeof changes->run);
	changes->resumes = false;
	/* Asked for first: what is done about it comes behind it. */
	read_on(changes);
	if (missed || resumes)
		changes->options.resumed(changes->options.ctx, missed);
}

static bool
read_end(const struct redis_answer *entries, struct look *look, struct place *ret_place)
{
	if (entries->kind != REDIS_ARRAY || entries->size == 0)
		look->empty = true;
	return look->empty || place_read(redis_answer_item(redis_answer_item(entries, 0), 0), ret_place);
}

static void
on_newest(void *ctx, const struct redis_answer *answer)
{
	struct changes *changes = ctx;

	if (!is_answer(changes, answer))
		return;
	/* What one of the answers before lacked, this one lacks, too, or the next look has it. */
	if (changes->look.epoch[0] != '\0' && read_end(answer, &changes->look, &changes->look.newest))
		on_looked(changes);
	else
		retry_later(changes);
}

static void
on_oldest(void *ctx, const struct redis_answer *answer)
{
	struct changes *changes = ctx;

	if (answer->kind == REDIS_ARRAY && !read_end(answer, &changes->look, &changes->look.oldest))
		changes->look.epoch[0] = '\0';
}

static void
on_epoch(void *ctx, const struct redis_answer *answer)
{
	struct changes *changes = ctx;

	if (answer->kind != REDIS_STRING ||
		!text_copy(changes->look.epoch, sizeof changes->look.epoch, answer->text))
		changes->look.epoch[0] = '\0';
}

static void
ask_epoch(struct changes *changes)
{
	char fresh[ID_UUID_SIZE];
	struct redis_args args;
	struct err err;

	id_uuid4(fresh);
	redis_args_init(&args);
	redis_args_format(&args, "%sepoch", changes->options.prefix);
	redis_args_format(&args, "%srun", changes->options.prefix);
	redis_args_text(&args, fresh);
	redis_args_text(&args, changes->look.run);
	if (redis_run(changes->options.redis, &epoch_script, &args, to_us(changes, on_epoch), &err) != 0)
		asked_in_vain(changes);
}

static void
ask_end(struct changes *changes, const char *command, const char *from, const char *to, redis_reply_fn *fn)
{
	struct redis_args args;

	redis_args_init(&args);
	redis_args_text(&args, command);
	redis_args_format(&args, "%schanges", changes->options.prefix);
	redis_args_text(&args, from);
	redis_args_text(&args, to);
	redis_args_text(&args, "COUNT");
	redis_args_text(&args, "1");
	ask(changes, &args, fn);
}

static void
look_at_stream(struct changes *changes)
{
	ask_epoch(changes);
	ask_end(changes, "XRANGE", "-", "+", on_oldest);
	ask_end(changes, "XREVRANGE", "+", "-", on_newest);
}

static void
on_server(void *ctx, const struct redis_answer *answer)
{
	struct changes *changes = ctx;
	const char *line = answer->kind == REDIS_STRING ? strstr(answer->text, "run_id:") : NULL;

	if (answer->kind == REDIS_LOST)
		return;
	if (line != NULL)
		(void)!sscanf(line, "run_id:%63[0-9a-f]", changes->look.run);
	look_at_stream(changes);
}

static void
look(struct changes *changes)
{
	struct redis_args args;

	changes->look = (struct look){ 0 };
	if (!changes->resumes) {
		look_at_stream(changes);
		return;
	}
	redis_args_init(&args);
	redis_args_text(&args, "INFO");
	redis_args_text(&args, "server");
	ask(changes, &args, on_server);
}

/* --- coming and going --- */

static void
look_anew(struct changes *changes)
{
	redis_forget(changes->options.redis, changes);
	event_del(changes->retry);
	look(changes);
}

static void
on_change(void *ctx, bool up)
{
	struct changes *changes = ctx;

	event_del(changes->retry);
	if (!up)
		return;
	changes->resumes = true;
	look_anew(changes);
}

static void
on_retry(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	look_anew(arg);
}

struct changes *
changes_new(const struct changes_options *options)
{
	struct changes *changes = alloc_zero(1, sizeof *changes);

	changes->options = *options;
	if (changes->options.deadline_ms == 0)
		changes->options.deadline_ms = ANSWER_MS;
	changes->retry = event_new(options->base, -1, 0, on_retry, changes);
	if (changes->retry == NULL)
		abort();
	redis_on_change(options->redis, on_change, changes);
	if (redis_is_up(options->redis))
		on_change(changes, true);
	return changes;
}

void
changes_free(struct changes *changes)
{
	if (changes == NULL)
		return;
	redis_on_change(changes->options.redis, NULL, NULL);
	redis_forget(changes->options.redis, changes);
	event_free(changes->retry);
	free(changes);
}

const char *
changes_epoch(const struct changes *changes)
{
	return changes->epoch;
}
