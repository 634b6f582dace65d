/*
 * turns.h - creates that wait for their turn, in lines with names: each line in the order they came, and the lines one
 * after the other, so that nobody waits behind all that somebody else has asked for.
 *
 * Those that wait longer than a moment are told their place, and again when it has changed.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWN_TURNS_H
#define ORCHARD_SPAWN_TURNS_H

#include "base/cleanup.h"
#include "ipc/scoreboard.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct event_base;
struct turn_line;
struct turns;

/* Part of what waits; zero: it does not. */
struct turn {
	TAILQ_ENTRY(turn) link;
	struct turn_line *line; /* NULL: it does not wait */
	void *owner;
	uint32_t told; /* the place, as it was told last; 0: not yet */
};

struct turns_options {
	/* place: 1 is next. It must not change who waits. NULL: nobody is told. */
	void (*tell)(void *owner, uint32_t place, void *arg);
	void *arg;
	struct shm_scoreboard *board; /* counts those that wait; NULL: nobody does */
	struct proc_ref self;
};

struct turns *turns_create(struct event_base *base, const struct turns_options *options);
/* What still waits is its owners'. */
void turns_free(struct turns *turns);

/* turn: borrowed until it is taken or has left. */
void turns_join(struct turns *turns, struct turn *turn, const char *line, void *owner);
/* Whose turn it is, or NULL; it goes on waiting. */
struct turn *turns_next(struct turns *turns);
/* The one of turns_next() waits no longer: the others of its line come after every other line's next. */
void turns_take(struct turns *turns, struct turn *turn);
/* It waits no longer, if it did, and was not served. */
void turns_leave(struct turns *turns, struct turn *turn);
uint32_t turns_count(const struct turns *turns);

/* In words. */
enum { TURNS_WORDS_SIZE = 64 };
void turns_words(uint32_t place, char ret_words[TURNS_WORDS_SIZE]);

#endif
