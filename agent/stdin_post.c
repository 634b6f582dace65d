/* stdin_post.c - from the head of a write to its answer. */
/* SPDX-License-Identifier: MIT */
#include "agent/stdin_post.h"

#include "base/alloc.h"
#include "agent/answer.h"
#include "agent/feed.h"
#include "agent/job.h"
#include "agent/query.h"
#include "http/http_server.h"

#include <event2/buffer.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

struct stdin_post {
	struct feed_turn turn;
	struct feed *feed;
	struct http_exchange *exchange;
	uint8_t id[16];
	bool eof;
};

static void
post_answer(struct http_exchange *exchange, const struct feed_result *result)
{
	struct json_object *body = json_object_new_object();

	json_object_object_add(body, "accepted", json_object_new_int64((int64_t)result->accepted));
	json_object_object_add(body, "stdin_bytes", json_object_new_int64((int64_t)result->total));
	json_object_object_add(body, "closed", json_object_new_boolean(result->closed));
	answer_json(exchange, 200, body);
}

static void
post_refuse(struct http_exchange *exchange)
{
	answer_error(exchange, 409, "stdin_closed", "the command takes no input, or none any more");
}

/* The same write may have been taken while this one waited. */
static void
post_end_closed(struct stdin_post *post)
{
	struct http_exchange *exchange = post->exchange;
	struct feed_result result;
	bool known = feed_recall(post->feed, post->id, &result);

	free(post);
	if (known)
		post_answer(exchange, &result);
	else
		post_refuse(exchange);
}

static void
post_on_body(struct http_exchange *exchange, struct evbuffer *body, void *arg)
{
	struct stdin_post *post = arg;
	struct feed_result result;

	if (!feed_write(post->feed, &post->turn, post->id, body, post->eof, &result)) {
		post_end_closed(post);
		return;
	}
	free(post);
	post_answer(exchange, &result);
}

static void
post_on_turn(bool open, void *arg)
{
	struct stdin_post *post = arg;

	if (open)
		http_exchange_collect(post->exchange, post->turn.len, post_on_body, post);
	else
		post_end_closed(post);
}

static void
post_on_gone(void *arg)
{
	struct stdin_post *post = arg;

	feed_leave(post->feed, &post->turn);
	free(post);
}

static void
post_wait(struct http_exchange *exchange, struct job *job, const uint8_t id[16], bool eof)
{
	struct stdin_post *post = alloc_zero(1, sizeof *post);
	int64_t len = http_exchange_length(exchange);

	*post = (struct stdin_post){
		.turn = { .len = len < 0 || len > FEED_MAX_PENDING ? FEED_MAX_PENDING : (size_t)len,
			.on_turn = post_on_turn,
			.arg = post },
		.feed = job->feed,
		.exchange = exchange,
		.eof = eof,
	};
	memcpy(post->id, id, sizeof post->id);
	http_exchange_on_gone(exchange, post_on_gone, post);
	if (feed_wait(job->feed, &post->turn))
		return;
	free(post);
	answer_error(exchange, 503, "stdin_busy", "the command does not read, and many wait to write already");
}

void
stdin_post_attach(struct http_exchange *exchange, struct job *job)
{
	struct feed_result result;
	uint8_t id[16];
	int64_t eof = 0;

	if (!query_uuid(exchange, "write_id", id) || !query_int(exchange, "eof", 1, &eof))
		return;
	if (job->feed == NULL)
		post_refuse(exchange);
	else if (feed_recall(job->feed, id, &result))
		post_answer(exchange, &result);
	else
		post_wait(exchange, job, id, eof != 0);
}
