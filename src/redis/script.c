/*
 * script.c - sends a script whole the first time on a connection, then by its digest.
 *
 * Whole at first, because answers of "no such script" would change the order of commands; later they come only when
 * somebody flushed the scripts of a Redis that serves.
 */
/* SPDX-License-Identifier: MIT */
#include "redis/client_impl.h"

#include "base/alloc.h"
#include "base/clock.h"

#include <sha1.h>
#include <stdio.h>
#include <string.h>

#include <event2/buffer.h>

static struct redis_script_note *
script_note(struct redis_script_notes *notes, const struct redis_script *script)
{
	struct redis_script_note *note;

	for (size_t i = 0; i < notes->count; i++) {
		if (notes->list[i].script == script)
			return &notes->list[i];
	}
	notes->list = alloc_resize(notes->list, (notes->count + 1) * sizeof *notes->list);
	note = &notes->list[notes->count++];
	*note = (struct redis_script_note){ .script = script };
	SHA1Data((const uint8_t *)script->text, strlen(script->text), note->sha);
	return note;
}

void
redis_script_notes_free(struct redis_script_notes *notes)
{
	free(notes->list);
	*notes = (struct redis_script_notes){ 0 };
}

/* The words behind the text or the digest: how many keys, the keys, the arguments. */
static struct evbuffer *
script_tail(const struct redis_script *script, const struct redis_args *args)
{
	struct evbuffer *tail = must_alloc(evbuffer_new());
	char keys[16];

	redis_put_word(tail, keys, (size_t)snprintf(keys, sizeof keys, "%u", script->keys));
	for (size_t i = 0; i < args->count; i++)
		redis_put_word(tail, args->list[i].data, args->list[i].size);
	return tail;
}

static void
script_put(struct redis *redis, const struct redis_script_note *note, bool whole, size_t words)
{
	struct evbuffer *out = redis_output(redis);

	evbuffer_add_printf(out, "*%zu\r\n", words);
	if (whole) {
		redis_put_word(out, "EVAL", 4);
		redis_put_word(out, note->script->text, strlen(note->script->text));
	} else {
		redis_put_word(out, "EVALSHA", 7);
		redis_put_word(out, note->sha, REDIS_SCRIPT_SHA);
	}
}

static void
retry_keep(struct redis_retry *retry, const struct redis_script_note *note, struct evbuffer *tail, size_t words)
{
	retry->note = *note;
	retry->words = words;
	retry->tail_size = evbuffer_get_length(tail);
	retry->tail = alloc_bytes(retry->tail_size);
	evbuffer_copyout(tail, retry->tail, retry->tail_size);
}

int
redis_run(struct redis *redis, const struct redis_script *script, const struct redis_args *args,
	struct redis_reply_to to, struct err *err)
{
	struct redis_script_note *note = script_note(&redis->scripts, script);
	struct evbuffer *tail = script_tail(script, args);
	bool whole = note->connection != redis->stats.connects;
	size_t words = args->count + 3;
	struct redis_command *command;

	if (redis_admit(redis, evbuffer_get_length(tail), err) != 0) {
		evbuffer_free(tail);
		return -1;
	}
	redis->stats.commands++;
	note->connection = redis->stats.connects;
	script_put(redis, note, whole, words);
	command = redis_expect(redis, to);
	command->script = script;
	if (!whole)
		retry_keep(&command->retry, note, tail, words);
	evbuffer_add_buffer(redis_output(redis), tail);
	evbuffer_free(tail);
	return 0;
}

void
redis_script_again(struct redis *redis, struct redis_command *command)
{
	struct redis_retry *retry = &command->retry;

	script_put(redis, &retry->note, true, retry->words);
	evbuffer_add(redis_output(redis), retry->tail, retry->tail_size);
	free(STEAL_PTR(retry->tail));
	STAILQ_INSERT_TAIL(&redis->commands, command, entry);
	redis->stats.waiting++;
}

/* --- scripts that are refused --- */

enum { ERRORS_IN_A_ROW = 3, LATELY_MS = 30000 };

void
redis_script_judge(struct redis *redis, const struct redis_script *script, const struct redis_answer *answer)
{
	struct redis_script_note *note = script_note(&redis->scripts, script);

	note->errors = answer->kind == REDIS_ERROR ? note->errors + 1 : 0;
	if (note->errors >= ERRORS_IN_A_ROW) {
		redis->refusal_ms = clock_boot_ms();
		snprintf(redis->refusal, sizeof redis->refusal, "%s", answer->text);
	}
}

static bool
some_is_refused(const struct redis_script_notes *notes)
{
	for (size_t i = 0; i < notes->count; i++) {
		if (notes->list[i].errors >= ERRORS_IN_A_ROW)
			return true;
	}
	return false;
}

const char *
redis_refusal(const struct redis *redis)
{
	/* Who hears of it may send no more work here, and then nothing would show that it is over. */
	bool lately = redis->refusal_ms != 0 && clock_boot_ms() - redis->refusal_ms < LATELY_MS;

	return lately && some_is_refused(&redis->scripts) ? redis->refusal : "";
}
