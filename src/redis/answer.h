/*
 * answer.h - what became of one command: Redis' answer as a tree, or that none came.
 *
 * Borrowed by the callback that gets it, with everything below it. Texts end with a NUL that `size` does not count, and may hold others.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_REDIS_ANSWER_H
#define ORCHARD_REDIS_ANSWER_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

enum redis_kind {
	REDIS_STRING, /* text, size; statuses such as OK, too */
	REDIS_INTEGER, /* number */
	REDIS_ARRAY, /* items, size */
	REDIS_NIL,
	REDIS_ERROR, /* Redis refused it: text, size */
	/* No answer, so nobody knows whether it was done: */
	REDIS_LOST, /* the connection ended */
	REDIS_LATE /* the deadline passed; an answer that comes after all is dropped */
};

struct redis_answer {
	enum redis_kind kind;
	int64_t number;
	size_t size; /* bytes of text, or how many items */
	const char *text;
	const struct redis_answer *items;
};

/* The item, or a nil when there is none: what another version leaves out reads as nil. Never NULL. */
const struct redis_answer *redis_answer_item(const struct redis_answer *answer, size_t index);
/* The value behind that name in a flat list of names and values (HGETALL, stream entries), else a nil. Never NULL. */
const struct redis_answer *redis_answer_field(const struct redis_answer *answer, const char *name);
/* A string that is exactly this. */
bool redis_answer_is(const struct redis_answer *answer, const char *text);
/* An integer, or a string that is a decimal one; false, *ret_number untouched, for anything else. */
bool redis_answer_number(const struct redis_answer *answer, int64_t *ret_number) MUSTCHECK;

/*
 * 0 for an answer; else -1 with the reason. ERR_UNAVAILABLE: there is no Redis to write to just now, lost and late
 * included (what they asked for may have been done). ERR_INTERNAL: Redis did not understand us.
 */
int redis_answer_check(const struct redis_answer *answer, struct err *err) MUSTCHECK;

#endif
