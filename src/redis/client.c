/*
 * client.c - commands in flight: taken, matched with answers in their order, given up, lost.
 *
 * Redis answers in the order of the commands, and the list holds them in that order. One that is given up keeps its
 * place, without a callback, until its answer has come: so no answer is ever taken for another's.
 */
/* SPDX-License-Identifier: MIT */
#include "redis/answer_impl.h"
#include "redis/client_impl.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"

#include <string.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>

enum { MAX_COMMANDS = 16384, MAX_BYTES = 64 * 1024 * 1024, SILENCE_MS = 3000, CONNECT_MS = 3000 };

struct redis *
redis_new(struct event_base *base, const struct redis_options *options)
{
	struct redis *redis = alloc_zero(1, sizeof *redis);

	redis->base = base;
	redis->options = *options;
	if (options->name != NULL)
		redis->options.name = redis->name = alloc_string(options->name);
	if (options->max_commands == 0)
		redis->options.max_commands = MAX_COMMANDS;
	if (options->max_bytes == 0)
		redis->options.max_bytes = MAX_BYTES;
	if (options->silence_ms == 0)
		redis->options.silence_ms = SILENCE_MS;
	if (options->connect_ms == 0)
		redis->options.connect_ms = CONNECT_MS;
	STAILQ_INIT(&redis->commands);
	redis_connect_start(redis);
	return redis;
}

bool
redis_is_up(const struct redis *redis)
{
	return redis->state == REDIS_UP;
}

const char *
redis_identity(const struct redis *redis)
{
	return redis->identity;
}

const char *
redis_problem(const struct redis *redis)
{
	return redis->state == REDIS_UP ? "" : redis->problem;
}

void
redis_on_change(struct redis *redis, redis_change_fn *fn, void *ctx)
{
	redis->on_change = fn;
	redis->change_ctx = ctx;
}

void
redis_stats(const struct redis *redis, struct redis_stats *ret_stats)
{
	*ret_stats = redis->stats;
}

struct evbuffer *
redis_output(const struct redis *redis)
{
	return bufferevent_get_output(redis->bev);
}

void
redis_put_word(struct evbuffer *out, const void *data, size_t size)
{
	if (evbuffer_add_printf(out, "$%zu\r\n", size) < 0 || evbuffer_add(out, data, size) != 0 ||
		evbuffer_add(out, "\r\n", 2) != 0)
		abort();
}

int
redis_admit(struct redis *redis, size_t size, struct err *err)
{
	int result = 0;

	if (redis->freed || redis->state != REDIS_UP)
		result = err_set(err, ERR_UNAVAILABLE, "Redis is away: %s", redis->problem);
	else if (redis->stats.waiting >= redis->options.max_commands ||
		evbuffer_get_length(redis_output(redis)) + size > redis->options.max_bytes)
		result = err_set(err, ERR_BUSY, "too much waits for Redis; try again soon");
	if (result != 0)
		redis->stats.refused++;
	return result;
}

static void
command_free(struct redis_command *command)
{
	event_del(&command->deadline);
	free(command->retry.tail);
	free(command);
}

static void
answered(struct redis *redis, const struct redis_command *command, const struct redis_answer *answer)
{
	redis->depth++;
	if (command->to.fn != NULL && !redis->freed)
		command->to.fn(command->to.ctx, answer);
	redis->depth--;
}

static void
command_on_deadline(evutil_socket_t fd, short what, void *arg)
{
	struct redis_command *command = arg;
	struct redis *redis = command->redis;

	(void)fd;
	(void)what;
	redis->stats.late++;
	command->given_up = true;
	answered(redis, &(struct redis_command){ .to = command->to }, &(struct redis_answer){ .kind = REDIS_LATE });
	if (!redis->freed)
		command->to.fn = NULL;
	redis_leave(redis);
}

struct redis_command *
redis_expect(struct redis *redis, struct redis_reply_to to)
{
	struct redis_command *command = alloc_zero(1, sizeof *command);
	struct timeval deadline = clock_tv(to.deadline_ms), silence = clock_tv(redis->options.silence_ms);

	command->redis = redis;
	command->to = to;
	command->sent_us = clock_boot_us();
	if (event_assign(&command->deadline, redis->base, -1, 0, command_on_deadline, command) != 0)
		abort();
	if (to.deadline_ms != 0)
		event_add(&command->deadline, &deadline);
	STAILQ_INSERT_TAIL(&redis->commands, command, entry);
	redis->stats.waiting++;
	if (redis->state == REDIS_UP && !event_pending(redis->watch, EV_TIMEOUT, NULL))
		event_add(redis->watch, &silence);
	return command;
}

void
redis_put(struct redis *redis, const struct redis_args *args, struct redis_reply_to to)
{
	struct evbuffer *out = redis_output(redis);

	evbuffer_add_printf(out, "*%zu\r\n", args->count);
	for (size_t i = 0; i < args->count; i++)
		redis_put_word(out, args->list[i].data, args->list[i].size);
	redis_expect(redis, to);
}

int
redis_send(struct redis *redis, const struct redis_args *args, struct redis_reply_to to, struct err *err)
{
	size_t size = 0;

	for (size_t i = 0; i < args->count; i++)
		size += args->list[i].size;
	if (redis_admit(redis, size, err) != 0)
		return -1;
	redis->stats.commands++;
	redis_put(redis, args, to);
	return 0;
}

static struct redis_command *
take_first(struct redis *redis)
{
	struct redis_command *command = STAILQ_FIRST(&redis->commands);

	STAILQ_REMOVE_HEAD(&redis->commands, entry);
	redis->stats.waiting--;
	return command;
}

void
redis_on_answer(struct redis *redis, const struct redis_answer *answer)
{
	struct redis_command *command = take_first(redis);

	if (command->retry.tail != NULL && redis_answer_is_error(answer, "NOSCRIPT") && !command->given_up) {
		redis_script_again(redis, command);
		return;
	}
	if (command->script != NULL)
		redis_script_judge(redis, command->script, answer);
	redis->stats.errors += answer->kind == REDIS_ERROR;
	redis->stats.answered++;
	redis->stats.answer_us += (uint64_t)(clock_boot_us() - command->sent_us);
	answered(redis, command, answer);
	command_free(command);
}

void
redis_lose_all(struct redis *redis)
{
	while (!STAILQ_EMPTY(&redis->commands)) {
		struct redis_command *command = take_first(redis);

		redis->stats.lost += !command->given_up;
		answered(redis, command, &(struct redis_answer){ .kind = REDIS_LOST });
		command_free(command);
	}
}

void
redis_tell_change(struct redis *redis, bool up)
{
	redis->depth++;
	if (redis->on_change != NULL && !redis->freed)
		redis->on_change(redis->change_ctx, up);
	redis->depth--;
}

void
redis_forget(struct redis *redis, const void *ctx)
{
	struct redis_command *command;

	STAILQ_FOREACH(command, &redis->commands, entry)
	{
		if (command->to.ctx == ctx)
			command->to.fn = NULL;
	}
}

void
redis_leave(struct redis *redis)
{
	if (!redis->freed || redis->depth > 0)
		return;
	redis_connect_stop(redis);
	redis_lose_all(redis);
	redis_script_notes_free(&redis->scripts);
	free(redis->name);
	free(redis);
}

void
redis_free(struct redis *redis)
{
	if (redis == NULL)
		return;
	redis->freed = true;
	redis_leave(redis);
}
