/* feed.c - pieces of stdin as requests. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/attach/feed.h"
#include "base/clock.h"
#include "orchardctl/client/path.h"
#include "orchardctl/command.h"
#include "orchardctl/output/print.h"

#include <errno.h>
#include <json-c/json_object.h>

enum { TRY_SECONDS = 300, SETTLE_SECONDS = 1, IDLE_MS = 60000 };

void
feed_start(struct feed *feed)
{
	feed->state = FEED_READING;
	retry_start(&feed->retry, TRY_SECONDS);
}

void
feed_fini(struct feed *feed)
{
	struct err err;

	if (feed->transfer != NULL)
		client_end(feed->transfer, NULL, &err);
	answer_fini(&feed->answer);
	free(feed->path);
}

/* What is to be sent in this state: the rest of the piece, nothing (only to be told the count), or the end. */
static void
send_request(struct feed *feed)
{
	bool piece = feed->state == FEED_SENDING;

	free(feed->path);
	feed->path = path_format(
		feed->state == FEED_CLOSING ? "/jobs/%s/stdin?eof=1" : "/jobs/%s/stdin", feed->job_id);
	feed->request = (struct request){
		.method = "POST",
		.path = feed->path,
		.data = piece ? feed->data + feed->off : "",
		.data_len = piece ? feed->len - feed->off : 0,
		.no_retry = true,
	};
	feed->transfer = client_start(feed->client, &feed->request, NULL, &feed->answer);
}

static void
enter(struct feed *feed, enum feed_state state)
{
	feed->state = state;
	if (state == FEED_SENDING || state == FEED_ASKING || state == FEED_CLOSING)
		send_request(feed);
}

static void
give_up(struct feed *feed, const struct err *err)
{
	ctl_error("stdin is not passed on any more: %s", err->msg);
	feed->state = FEED_OVER;
}

/* What the job says it has got decides what of the piece is still to be sent. */
static void
on_taken(struct feed *feed)
{
	struct json_object *count = print_member(feed->answer.json, "stdin_bytes");
	int64_t all = count != NULL ? json_object_get_int64(count) : feed->sent;

	retry_start(&feed->retry, TRY_SECONDS);
	if (all < feed->sent || all > feed->sent + (int64_t)(feed->len - feed->off)) {
		ctl_error("somebody else writes to this command's stdin, too");
		all = feed->sent + (int64_t)(feed->len - feed->off);
	}
	feed->off += (size_t)(all - feed->sent);
	feed->sent = all;
	answer_fini(&feed->answer);
	if (feed->state == FEED_CLOSING)
		feed->state = FEED_OVER;
	else
		enter(feed, feed->off < feed->len ? FEED_SENDING : FEED_READING);
}

/* Nobody knows whether the command got it: no answer, or that of a server that had none of the agent. */
static bool
is_lost(const struct feed *feed, const struct err *err)
{
	return feed->answer.status == 0 || err->code == ERR_UNAVAILABLE ||
		strcmp(feed->answer.code, "agent_unreachable") == 0 ||
		strcmp(feed->answer.code, "unavailable") == 0;
}

static void
on_done(struct feed *feed)
{
	struct err err;
	bool again;
	int rc = client_end(STEAL_PTR(feed->transfer), &again, &err);
	bool lost = rc < 0 && is_lost(feed, &err);
	bool closed = strcmp(feed->answer.code, "stdin_closed") == 0;
	bool early = strcmp(feed->answer.code, "job_not_running") == 0;
	int64_t pause;

	if (rc == 0) {
		on_taken(feed);
		return;
	}
	/* A command that is not there yet, or does not read, is waited for as long as it takes. */
	if (early || feed->answer.status == 503)
		retry_start(&feed->retry, TRY_SECONDS);
	/* A piece whose answer is lost may still be on its way: to ask too soon would be to send it twice. */
	pause = retry_next(
		&feed->retry, lost && feed->state == FEED_SENDING ? SETTLE_SECONDS : feed->answer.retry_after);
	answer_fini(&feed->answer);
	if (closed || err.code == ERR_NOT_FOUND) {
		feed->state = FEED_OVER; /* the command has ended, which its stream tells */
	} else if ((!again && !early) || pause < 0) {
		give_up(feed, &err);
	} else {
		/* To be told the end twice does no harm, a piece would. */
		feed->before = feed->state == FEED_SENDING && lost ? FEED_ASKING : feed->state;
		feed->next_ms = clock_boot_ms() + pause;
	}
}

int
feed_go_on(struct feed *feed)
{
	int64_t left;

	if (feed->transfer != NULL && transfer_is_done(feed->transfer))
		on_done(feed);
	if (feed->transfer != NULL || feed->next_ms == 0 || feed->state == FEED_OVER)
		return IDLE_MS;
	left = feed->next_ms - clock_boot_ms();
	if (left > 0)
		return (int)left;
	feed->next_ms = 0;
	enter(feed, feed->before);
	return 0;
}

bool
feed_wants(const struct feed *feed)
{
	return feed->state == FEED_READING;
}

void
feed_on_readable(struct feed *feed)
{
	ssize_t n = read(feed->fd, feed->data, sizeof feed->data);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n < 0)
		ctl_error("stdin: %s", strerror(errno));
	feed->off = 0;
	feed->len = n > 0 ? (size_t)n : 0;
	enter(feed, n > 0 ? FEED_SENDING : FEED_CLOSING);
}
