/*
 * job_board.c - the scripts of jobs, sent; ends kept until they are told.
 *
 * An end whose answer was lost is told again: the script takes the first, and says so to the second.
 */
/* SPDX-License-Identifier: MIT */
#include "cluster/job_board_impl.h"
#include "cluster/job_script.h"
#include "cluster/lane_script.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "redis/client.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

enum { DEADLINE_MS = 1500, AGAIN_MS = 1000, AGAIN_MAX_MS = 30000, IN_FLIGHT = 256, REFUSALS = 16 };
enum { LISTED = 100 }; /* jobs of a sandbox, as the REST API lists at most */

static const size_t default_max_bytes = (size_t)32 << 20;

static const struct redis_script put_script = { .text = job_put_script, .keys = 4 };
static const struct redis_script end_script = { .text = job_end_script, .keys = 4 };
static const struct redis_script get_script = { .text = job_get_script, .keys = 1 };
static const struct redis_script cancel_script = { .text = job_cancel_script, .keys = 2 };

/* An end that Redis does not have yet, as far as we know. */
struct board_wait {
	TAILQ_ENTRY(board_wait) link;
	struct job_board *board;
	char *id, *tenant, *sandbox_uid, *json, *brief; /* owned */
	double created_at;
	size_t bytes;
	int64_t keep_ms;
	bool sent;
	uint32_t refusals; /* answers that were errors */
	job_board_ended_f *done; /* NULL: nobody wants to know */
	void *arg;
};

/* What put and end begin with: their keys and two arguments. */
static void
put_keys(const struct job_board *board, struct redis_args *args, const char *sandbox_uid, const char *words[2])
{
	redis_args_init(args);
	redis_args_format(args, "%sjob:%s", board->options.prefix, words[0]);
	redis_args_format(args, "%sjobs:%s", board->options.prefix, board->options.replica);
	redis_args_format(args, "%schanges", board->options.prefix);
	redis_args_format(args, "%ssandbox-jobs:%s", board->options.prefix, sandbox_uid);
	redis_args_text(args, words[0]);
	redis_args_text(args, words[1]);
}

static void
put_listed(struct redis_args *args, int64_t keep_ms, double created_at, const char *sandbox_uid)
{
	redis_args_number(args, keep_ms);
	redis_args_number(args, LANE_STREAM_ENTRIES);
	redis_args_number(args, (int64_t)(created_at * 1e6));
	redis_args_number(args, sandbox_uid[0] != '\0' ? LISTED : 0);
}

static void
put_pair(struct redis_args *args, const char *name, const char *value)
{
	redis_args_text(args, name);
	redis_args_text(args, value);
}

/* --- questions --- */

struct board_ask *
job_board_ask(struct job_board *board, void *arg)
{
	struct board_ask *ask = alloc_zero(1, sizeof *ask);

	ask->board = board;
	ask->arg = arg;
	LIST_INSERT_HEAD(&board->asks, ask, link);
	return ask;
}

struct board_ask
job_board_answered(struct board_ask *ask)
{
	struct board_ask copy = *ask;

	LIST_REMOVE(ask, link);
	free(ask);
	return copy;
}

void
job_board_unask(struct board_ask *ask)
{
	(void)job_board_answered(ask);
}

/* Its answer may still come. */
static void
ask_free(struct board_ask *ask)
{
	redis_forget(ask->board->options.redis, ask);
	job_board_unask(ask);
}

static void
ask_on_put(void *ctx, const struct redis_answer *answer)
{
	struct board_ask ask = job_board_answered(ctx);
	const struct job_board_options *options = &ask.board->options;
	int64_t word = -1;
	bool known = redis_answer_number(answer, &word);

	if (ask.told != NULL)
		ask.told(known, ask.arg);
	if (known && word != 1 && options->marked != NULL)
		options->marked(options->ctx, ask.job_id, word == 2 ? BOARD_CANCEL : BOARD_CLAIMED);
}

/* Nobody will answer. */
static void
ask_drop(struct board_ask *ask)
{
	struct board_ask copy = *ask;
	struct err err;

	ask_free(ask);
	err_set(&err, ERR_UNAVAILABLE, "this server process stops; ask again");
	if (copy.told != NULL)
		copy.told(false, copy.arg);
	else if (copy.got != NULL)
		copy.got(NULL, &err, copy.arg);
	else if (copy.rows != NULL)
		copy.rows(NULL, &err, copy.arg);
}

bool
job_board_put(struct job_board *board, const struct board_job *job, job_board_told_f *done, void *arg)
{
	struct board_ask *ask = job_board_ask(board, arg);
	struct redis_args args;
	struct err err;

	ask->told = done;
	snprintf(ask->job_id, sizeof ask->job_id, "%s", job->id);
	put_keys(board, &args, job->sandbox_uid, (const char *[]){ job->id, board->options.replica });
	put_listed(&args, job->keep_ms, job->created_at, job->sandbox_uid);
	put_pair(&args, "tenant", job->tenant);
	put_pair(&args, "state", job->state);
	put_pair(&args, "live", job->json);
	put_pair(&args, "take", job->take);
	put_pair(&args, "host", job->host);
	put_pair(&args, "sandbox", job->sandbox_id);
	put_pair(&args, "uid", job->sandbox_uid);
	if (redis_run(board->options.redis, &put_script, &args,
		    (struct redis_reply_to){
			    .fn = ask_on_put, .ctx = ask, .deadline_ms = board->options.deadline_ms },
		    &err) == 0)
		return true;
	job_board_unask(ask);
	return false;
}

static const char *
text_of(const struct redis_answer *answer, size_t index)
{
	const struct redis_answer *item = redis_answer_item(answer, index);

	return item->kind == REDIS_STRING ? item->text : "";
}

static void
ask_on_got(void *ctx, const struct redis_answer *answer)
{
	struct board_ask ask = job_board_answered(ctx);
	struct err err;
	struct board_answer job = {
		.tenant = text_of(answer, 0),
		.state = text_of(answer, 1),
		.json = text_of(answer, 2),
		.json_len = redis_answer_item(answer, 2)->size,
		.sandbox_id = text_of(answer, 3),
		.sandbox_uid = text_of(answer, 4),
		.home = text_of(answer, 5),
	};

	if (redis_answer_check(answer, &err) != 0) {
		ask.got(NULL, &err, ask.arg);
	} else if (answer->kind != REDIS_ARRAY && shared_return_is_fresh(&ask.board->back, clock_boot_ms())) {
		err_set(&err, ERR_UNAVAILABLE,
			"Redis has just come back, and may not have been told of that job yet");
		ask.got(NULL, &err, ask.arg);
	} else if (answer->kind != REDIS_ARRAY) {
		err_set(&err, ERR_NOT_FOUND, "no server knows of that job");
		ask.got(NULL, &err, ask.arg);
	} else {
		ask.got(&job, NULL, ask.arg);
	}
}

int
job_board_get(struct job_board *board, const char *job_id, job_board_got_f *done, void *arg, struct err *err)
{
	struct board_ask *ask = job_board_ask(board, arg);
	struct redis_args args;

	ask->got = done;
	redis_args_init(&args);
	redis_args_format(&args, "%sjob:%s", board->options.prefix, job_id);
	if (redis_run(board->options.redis, &get_script, &args,
		    (struct redis_reply_to){
			    .fn = ask_on_got, .ctx = ask, .deadline_ms = board->options.deadline_ms },
		    err) == 0)
		return 0;
	job_board_unask(ask);
	return -1;
}

void
job_board_cancel(struct job_board *board, const char *job_id, const char *tenant)
{
	struct redis_args args;
	struct err err;

	redis_args_init(&args);
	redis_args_format(&args, "%sjob:%s", board->options.prefix, job_id);
	redis_args_format(&args, "%schanges", board->options.prefix);
	redis_args_text(&args, job_id);
	redis_args_text(&args, tenant);
	redis_args_number(&args, LANE_STREAM_ENTRIES);
	if (redis_run(board->options.redis, &cancel_script, &args,
		    (struct redis_reply_to){ .deadline_ms = board->options.deadline_ms }, &err) != 0)
		log_write(LOG_LEVEL_WARN, &(struct log_ctx){ .job_id = job_id },
			"the server that runs this job can't be told to cancel it: %s", err.msg);
}

/* --- ends --- */

static void
wait_free(struct board_wait *wait, enum board_told told)
{
	struct job_board *board = wait->board;
	job_board_ended_f *done = wait->done;
	void *arg = wait->arg;

	if (wait->sent) {
		redis_forget(board->options.redis, wait);
		board->in_flight--;
	}
	TAILQ_REMOVE(&board->waits, wait, link);
	board->bytes -= wait->bytes;
	board->waiting--;
	free(wait->id);
	free(wait->tenant);
	free(wait->sandbox_uid);
	free(wait->json);
	free(wait->brief);
	free(wait);
	if (done != NULL)
		done(told, arg);
}

static void
board_sleep(struct job_board *board)
{
	int64_t pause = board->refusals < 5 ? AGAIN_MS << board->refusals : AGAIN_MAX_MS;
	struct timeval tv = clock_tv(pause);

	if (!event_pending(board->again, EV_TIMEOUT, NULL))
		event_add(board->again, &tv);
}

/*
 * A Redis that takes no writes is away, and is not what answers here. One that refuses all is asked ever more seldom, and
 * what it refuses again and again is given up: whoever compares later tells it anew.
 */
static void
wait_on_refused(struct board_wait *wait, const struct redis_answer *answer)
{
	struct job_board *board = wait->board;

	if (board->refusals++ == 0)
		log_write(LOG_LEVEL_WARN, &(struct log_ctx){ .job_id = wait->id },
			"Redis does not take how jobs have ended, it is told again: %.*s", (int)answer->size,
			answer->text);
	board_sleep(board);
	/* Perhaps it is this one alone: others go first. */
	TAILQ_REMOVE(&board->waits, wait, link);
	TAILQ_INSERT_TAIL(&board->waits, wait, link);
	if (++wait->refusals < REFUSALS)
		return;
	log_write(LOG_LEVEL_WARN, &(struct log_ctx){ .job_id = wait->id },
		"other servers are not told how this job has ended: Redis does not take it");
	wait_free(wait, BOARD_GIVEN_UP);
}

static void board_send(struct job_board *board);

static void
wait_on_answer(void *ctx, const struct redis_answer *answer)
{
	struct board_wait *wait = ctx;
	struct job_board *board = wait->board;
	int64_t first;

	wait->sent = false;
	board->in_flight--;
	if (answer->kind == REDIS_INTEGER && redis_answer_number(answer, &first)) {
		board->refusals = 0;
		wait_free(wait, first == 1 ? BOARD_TOLD : BOARD_TOLD_BEFORE);
		board_send(board);
	} else if (answer->kind == REDIS_ERROR) {
		wait_on_refused(wait, answer);
	} else {
		board_sleep(board);
	}
}

static void
wait_send(struct board_wait *wait)
{
	struct job_board *board = wait->board;
	struct redis_args args;
	struct err err;

	put_keys(board, &args, wait->sandbox_uid, (const char *[]){ wait->id, wait->tenant });
	put_listed(&args, wait->keep_ms, wait->created_at, wait->sandbox_uid);
	redis_args_text(&args, wait->json);
	redis_args_text(&args, wait->brief);
	wait->sent = redis_run(board->options.redis, &end_script, &args,
			     (struct redis_reply_to){
				     .fn = wait_on_answer, .ctx = wait, .deadline_ms = board->options.deadline_ms },
			     &err) == 0;
	board->in_flight += wait->sent;
	/* Down is heard of; too much at once is not. */
	if (!wait->sent)
		board_sleep(board);
}

/* The oldest ones, some at a time; one that refuses is tried with one. */
static void
board_send(struct job_board *board)
{
	struct board_wait *wait;

	if (!redis_is_up(board->options.redis) || event_pending(board->again, EV_TIMEOUT, NULL))
		return;
	TAILQ_FOREACH(wait, &board->waits, link)
	{
		if (board->in_flight >= (board->refusals > 0 ? 1 : IN_FLIGHT))
			break;
		if (wait->sent)
			continue;
		wait_send(wait);
		if (!wait->sent)
			break;
	}
}

static void
board_on_time(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	board_send(arg);
}

void
job_board_on_redis(struct job_board *board, bool up)
{
	if (!up)
		return;
	shared_return_up(&board->back, clock_boot_ms());
	board->refusals = 0;
	event_del(board->again);
	board_send(board);
}

void
job_board_end(struct job_board *board, const struct board_end *end, job_board_ended_f *done, void *arg)
{
	struct board_wait *wait = alloc_zero(1, sizeof *wait);

	wait->board = board;
	wait->id = alloc_string(end->id);
	wait->tenant = alloc_string(end->tenant);
	wait->sandbox_uid = alloc_string(end->sandbox_uid);
	wait->json = alloc_string(end->json);
	wait->brief = alloc_string(end->brief);
	wait->created_at = end->created_at;
	wait->bytes = sizeof *wait + strlen(end->json) + strlen(end->brief);
	wait->keep_ms = end->keep_ms;
	wait->done = done;
	wait->arg = arg;
	TAILQ_INSERT_TAIL(&board->waits, wait, link);
	board->bytes += wait->bytes;
	board->waiting++;
	board_send(board);
	while (board->bytes > board->options.max_bytes && TAILQ_FIRST(&board->waits) != wait)
		wait_free(TAILQ_FIRST(&board->waits), BOARD_GIVEN_UP);
}

uint32_t
job_board_waiting(const struct job_board *board)
{
	return redis_is_up(board->options.redis) && board->refusals == 0 ? board->waiting : 0;
}

bool
job_board_is_idle(const struct job_board *board)
{
	return redis_is_up(board->options.redis) && TAILQ_EMPTY(&board->waits);
}

bool
job_board_tells(const struct job_board *board, const char *job_id)
{
	const struct board_wait *wait;

	TAILQ_FOREACH(wait, &board->waits, link)
	if (strcmp(wait->id, job_id) == 0)
		return true;
	return false;
}

/* --- the board --- */

void
job_board_forget(struct job_board *board, const void *arg)
{
	struct board_ask *ask, *next;
	struct board_wait *wait;

	for (ask = LIST_FIRST(&board->asks); ask != NULL; ask = next) {
		next = LIST_NEXT(ask, link);
		if (ask->arg == arg)
			ask_free(ask);
	}
	TAILQ_FOREACH(wait, &board->waits, link)
	if (wait->arg == arg)
		wait->done = NULL;
}

struct job_board *
job_board_new(const struct job_board_options *options)
{
	struct job_board *board = alloc_zero(1, sizeof *board);

	board->options = *options;
	if (board->options.deadline_ms == 0)
		board->options.deadline_ms = DEADLINE_MS;
	if (board->options.max_bytes == 0)
		board->options.max_bytes = default_max_bytes;
	LIST_INIT(&board->asks);
	TAILQ_INIT(&board->waits);
	board->back.was_up = redis_is_up(options->redis);
	board->again = event_new(options->base, -1, 0, board_on_time, board);
	if (board->again == NULL)
		abort();
	return board;
}

void
job_board_free(struct job_board *board)
{
	struct board_wait *wait;

	if (board == NULL)
		return;
	while (!LIST_EMPTY(&board->asks))
		ask_drop(LIST_FIRST(&board->asks));
	while ((wait = TAILQ_FIRST(&board->waits)) != NULL) {
		wait->done = NULL;
		wait_free(wait, BOARD_GIVEN_UP);
	}
	event_free(board->again);
	free(board);
}
