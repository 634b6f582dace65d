/* turns.c - lines in a ring: the head of the first line is next. */
/* SPDX-License-Identifier: MIT */
#include "spawn/turns.h"

#include "base/alloc.h"
#include "base/clock.h"

#include <event2/event.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Telling thousands costs more than making some: the more were told, the later comes the next time. */
enum { TELL_FIRST_MS = 250, TELL_MS = 1000, TELL_EACH_MS = 10 };

struct turn_line {
	TAILQ_ENTRY(turn_line) link;
	TAILQ_HEAD(, turn) turns; /* never empty */
	struct turn *walk; /* in tell_places() */
	char name[64];
};

struct turns {
	struct turns_options options;
	TAILQ_HEAD(, turn_line) lines;
	uint32_t count;
	struct event *tick;
};

static void
tell_later(struct turns *turns, int64_t ms)
{
	struct timeval tv = clock_tv(ms);

	event_add(turns->tick, &tv);
}

/* Returns how many have heard. */
static uint32_t
tell_one(struct turns *turns, struct turn *turn, uint32_t place)
{
	if (turn->told == place)
		return 0;
	turn->told = place;
	turns->options.tell(turn->owner, place, turns->options.arg);
	return 1;
}

/* In the order in which they would be taken now. */
static uint32_t
tell_places(struct turns *turns)
{
	struct turn_line *line;
	uint32_t place = 0, told = 0;

	TAILQ_FOREACH(line, &turns->lines, link)
	{
		line->walk = TAILQ_FIRST(&line->turns);
	}
	while (place < turns->count) {
		TAILQ_FOREACH(line, &turns->lines, link)
		{
			if (line->walk == NULL)
				continue;
			told += tell_one(turns, line->walk, ++place);
			line->walk = TAILQ_NEXT(line->walk, link);
		}
	}
	return told;
}

static void
on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct turns *turns = arg;

	(void)fd;
	(void)what;
	if (turns->count > 0)
		tell_later(turns, TELL_MS + (int64_t)tell_places(turns) * TELL_EACH_MS);
}

struct turns *
turns_create(struct event_base *base, const struct turns_options *options)
{
	struct turns *turns = alloc_zero(1, sizeof *turns);

	turns->options = *options;
	TAILQ_INIT(&turns->lines);
	turns->tick = must_alloc(event_new(base, -1, 0, on_tick, turns));
	return turns;
}

void
turns_free(struct turns *turns)
{
	struct turn_line *line;

	if (turns == NULL)
		return;
	while ((line = TAILQ_FIRST(&turns->lines)) != NULL)
		turns_leave(turns, TAILQ_FIRST(&line->turns));
	event_free(turns->tick);
	free(turns);
}

static void
count(struct turns *turns, int n)
{
	turns->count += (uint32_t)n;
	if (turns->options.board != NULL)
		scoreboard_add(turns->options.board, turns->options.self, METRIC_CREATES_WAITING, n);
}

static struct turn_line *
line_of(struct turns *turns, const char *name)
{
	struct turn_line *line;

	TAILQ_FOREACH(line, &turns->lines, link)
	{
		if (strncmp(line->name, name, sizeof line->name - 1) == 0)
			return line;
	}
	line = alloc_zero(1, sizeof *line);
	snprintf(line->name, sizeof line->name, "%s", name);
	TAILQ_INIT(&line->turns);
	TAILQ_INSERT_TAIL(&turns->lines, line, link);
	return line;
}

void
turns_join(struct turns *turns, struct turn *turn, const char *name, void *owner)
{
	turn->line = line_of(turns, name);
	turn->owner = owner;
	turn->told = 0;
	TAILQ_INSERT_TAIL(&turn->line->turns, turn, link);
	count(turns, 1);
	if (turns->options.tell != NULL && !event_pending(turns->tick, EV_TIMEOUT, NULL))
		tell_later(turns, TELL_FIRST_MS);
}

struct turn *
turns_next(struct turns *turns)
{
	struct turn_line *line = TAILQ_FIRST(&turns->lines);

	return line != NULL ? TAILQ_FIRST(&line->turns) : NULL;
}

void
turns_take(struct turns *turns, struct turn *turn)
{
	struct turn_line *line = turn->line;

	TAILQ_REMOVE(&turns->lines, line, link);
	TAILQ_INSERT_TAIL(&turns->lines, line, link);
	turns_leave(turns, turn);
}

void
turns_leave(struct turns *turns, struct turn *turn)
{
	struct turn_line *line = turn->line;

	if (line == NULL)
		return;
	turn->line = NULL;
	TAILQ_REMOVE(&line->turns, turn, link);
	count(turns, -1);
	if (!TAILQ_EMPTY(&line->turns))
		return;
	TAILQ_REMOVE(&turns->lines, line, link);
	free(line);
}

uint32_t
turns_count(const struct turns *turns)
{
	return turns->count;
}

void
turns_words(uint32_t place, char ret_words[TURNS_WORDS_SIZE])
{
	snprintf(ret_words, TURNS_WORDS_SIZE, "waits for its turn: place %" PRIu32, place);
}
