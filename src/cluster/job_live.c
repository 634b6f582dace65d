/* job_live.c - one walk at a time through the set of live jobs, page by page. */
/* SPDX-License-Identifier: MIT */
#include "cluster/job_live.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "redis/client.h"

#include <event2/event.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEADLINE_MS = 1500, EVERY_MS = 30000, PAGE = 100 };

struct job_live {
	struct job_live_options options;
	struct event *timer;
	bool looks; /* an answer is on its way */
	char cursor[32];
};

static void
set_key(const struct job_live *live, const char *verb, struct redis_args *args)
{
	redis_args_init(args);
	redis_args_text(args, verb);
	redis_args_format(args, "%sjobs:%s", live->options.prefix, live->options.replica);
}

static void ask_page(struct job_live *live);

static void
on_page(void *ctx, const struct redis_answer *answer)
{
	struct job_live *live = ctx;
	const struct redis_answer *cursor = redis_answer_item(answer, 0), *ids = redis_answer_item(answer, 1);
	bool more;

	live->looks = false;
	if (cursor->kind != REDIS_STRING || cursor->size >= sizeof live->cursor)
		return;
	memcpy(live->cursor, cursor->text, cursor->size + 1);
	more = strcmp(live->cursor, "0") != 0;
	for (size_t i = 0; ids->kind == REDIS_ARRAY && i < ids->size; i++)
		if (ids->items[i].kind == REDIS_STRING)
			live->options.found(live->options.ctx, ids->items[i].text);
	if (more)
		ask_page(live);
}

static void
ask_page(struct job_live *live)
{
	struct redis_args args;
	struct err err;

	set_key(live, "SSCAN", &args);
	redis_args_text(&args, live->cursor);
	redis_args_text(&args, "COUNT");
	redis_args_number(&args, PAGE);
	live->looks = redis_send(live->options.redis, &args,
			      (struct redis_reply_to){ on_page, live, live->options.deadline_ms }, &err) == 0;
}

void
job_live_look(struct job_live *live)
{
	if (live->looks)
		return;
	snprintf(live->cursor, sizeof live->cursor, "0");
	ask_page(live);
}

void
job_live_drop(struct job_live *live, const char *job_id)
{
	struct redis_args args;
	struct err err;

	set_key(live, "SREM", &args);
	redis_args_text(&args, job_id);
	if (redis_send(live->options.redis, &args,
		    (struct redis_reply_to){ .deadline_ms = live->options.deadline_ms }, &err) != 0)
		log_debug("a job that is not live stays named so for now: %s", err.msg);
}

static void
on_time(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	job_live_look(arg);
}

struct job_live *
job_live_new(const struct job_live_options *options)
{
	struct job_live *live = alloc_zero(1, sizeof *live);
	struct timeval every = clock_tv(EVERY_MS);

	live->options = *options;
	if (live->options.deadline_ms == 0)
		live->options.deadline_ms = DEADLINE_MS;
	live->timer = must_alloc(event_new(options->base, -1, EV_PERSIST, on_time, live));
	event_add(live->timer, &every);
	return live;
}

void
job_live_free(struct job_live *live)
{
	if (live == NULL)
		return;
	redis_forget(live->options.redis, live);
	event_free(live->timer);
	free(live);
}
