/* answer.c - reads answers: items and fields that may not be there, numbers, and why there is none. */
/* SPDX-License-Identifier: MIT */
#include "redis/answer.h"
#include "redis/answer_impl.h"

#include "base/alloc.h"
#include "base/err.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

static const struct redis_answer nothing = { .kind = REDIS_NIL };

const struct redis_answer *
redis_answer_item(const struct redis_answer *answer, size_t index)
{
	return answer->kind == REDIS_ARRAY && index < answer->size ? &answer->items[index] : &nothing;
}

bool
redis_answer_is(const struct redis_answer *answer, const char *text)
{
	return answer->kind == REDIS_STRING && answer->size == strlen(text) &&
		memcmp(answer->text, text, answer->size) == 0;
}

const struct redis_answer *
redis_answer_field(const struct redis_answer *answer, const char *name)
{
	if (answer->kind != REDIS_ARRAY)
		return &nothing;
	for (size_t i = 0; i + 1 < answer->size; i += 2) {
		if (redis_answer_is(&answer->items[i], name))
			return &answer->items[i + 1];
	}
	return &nothing;
}

bool
redis_answer_number(const struct redis_answer *answer, int64_t *ret_number)
{
	long long number;
	char *end;

	if (answer->kind == REDIS_INTEGER) {
		*ret_number = answer->number;
		return true;
	}
	if (answer->kind != REDIS_STRING || answer->size == 0 || strchr("-0123456789", answer->text[0]) == NULL)
		return false;
	errno = 0;
	number = strtoll(answer->text, &end, 10);
	if (errno != 0 || end != answer->text + answer->size || !((unsigned)(end[-1] - '0') < 10))
		return false;
	*ret_number = number;
	return true;
}

/* The word stands first, or, from a script in Redis 6, behind "-" somewhere in the sentence. */
static bool
error_says(const struct redis_answer *answer, const char *word)
{
	size_t len = strlen(word);
	const char *found = answer->text;

	while ((found = strstr(found, word)) != NULL) {
		if ((found == answer->text || found[-1] == '-') && strchr(" \r\n", found[len]) != NULL)
			return true;
		found += len;
	}
	return false;
}

static bool
error_is_any(const struct redis_answer *answer, const char *const *words)
{
	for (; *words != NULL; words++) {
		if (error_says(answer, *words))
			return true;
	}
	return false;
}

bool
redis_answer_is_away(const struct redis_answer *answer)
{
	static const char *const words[] = { "READONLY", "LOADING", "MASTERDOWN", "NOREPLICAS", "CLUSTERDOWN",
		"UNBLOCKED", "OOM", "MISCONF", NULL };

	return answer->kind == REDIS_ERROR && error_is_any(answer, words);
}

bool
redis_answer_is_error(const struct redis_answer *answer, const char *word)
{
	return answer->kind == REDIS_ERROR && error_says(answer, word);
}

int
redis_answer_check(const struct redis_answer *answer, struct err *err)
{
	static const char *const passing[] = { "BUSY", "TRYAGAIN", NULL };

	switch (answer->kind) {
	case REDIS_LOST:
		return err_set(err, ERR_UNAVAILABLE, "the connection to Redis was lost");
	case REDIS_LATE:
		return err_set(err, ERR_UNAVAILABLE, "Redis did not answer in time");
	case REDIS_ERROR:
		if (redis_answer_is_away(answer) || error_is_any(answer, passing))
			return err_set(err, ERR_UNAVAILABLE, "Redis refuses for now: %s", answer->text);
		return err_set(err, ERR_INTERNAL, "Redis refused a command: %s", answer->text);
	default:
		return 0;
	}
}

void
redis_answer_fill(struct redis_answer *answer, const struct redisReply *reply)
{
	struct redis_answer *items;

	*answer = (struct redis_answer){ .kind = REDIS_NIL };
	switch (reply->type) {
	case REDIS_REPLY_INTEGER:
		answer->kind = REDIS_INTEGER;
		answer->number = reply->integer;
		break;
	case REDIS_REPLY_STRING:
	case REDIS_REPLY_STATUS:
	case REDIS_REPLY_ERROR:
		answer->kind = reply->type == REDIS_REPLY_ERROR ? REDIS_ERROR : REDIS_STRING;
		answer->text = reply->str;
		answer->size = (size_t)reply->len;
		break;
	case REDIS_REPLY_ARRAY:
		items = alloc_zero(reply->elements + 1, sizeof *items);
		for (size_t i = 0; i < reply->elements; i++)
			redis_answer_fill(&items[i], reply->element[i]);
		answer->kind = REDIS_ARRAY;
		answer->size = reply->elements;
		answer->items = items;
		break;
	default:
		break;
	}
}

void
redis_answer_clear(struct redis_answer *answer)
{
	struct redis_answer *items = (struct redis_answer *)(uintptr_t)answer->items;

	if (answer->kind != REDIS_ARRAY)
		return;
	for (size_t i = 0; i < answer->size; i++)
		redis_answer_clear(&items[i]);
	free(items);
}
