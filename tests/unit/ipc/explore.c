/* explore.c - see explore.h. */
/* SPDX-License-Identifier: MIT */
#include "explore.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { NAME_SIZE = 96 };

struct step {
	uint32_t parent;
	uint16_t action, nth;
};

struct explorer {
	const struct explore_system *system;
	struct step *steps; /* of state i, the way to it from its parent; state 0 is the first */
	uint64_t *seen; /* open addressing; 0: empty */
	uint32_t mask, count, max;
	uint32_t level_end, depth;
	uint64_t transitions;
	/* The transition under way. */
	uint32_t parent;
	struct step step;
};

static struct explorer *running;
static jmp_buf death;
static uint32_t points_left; /* 0: nobody dies */

void
explore_point(void)
{
	if (points_left != 0 && --points_left == 0)
		longjmp(death, 1);
}

bool
explore_die_in(uint32_t nth, void (*f)(void *arg), void *arg)
{
	if (setjmp(death) != 0)
		return true;
	points_left = nth;
	f(arg);
	points_left = 0;
	return false;
}

static void
print_step(const struct explorer *e, const struct step *step)
{
	char name[NAME_SIZE];

	e->system->name(step->action, name, sizeof name);
	if (step->nth == 0)
		fprintf(stderr, "    %s\n", name);
	else
		fprintf(stderr, "    %s, and dies at its point %u\n", name, step->nth);
}

static void
print_way(const struct explorer *e, uint32_t state)
{
	if (state == 0)
		return;
	print_way(e, e->steps[state].parent);
	print_step(e, &e->steps[state]);
}

void
explore_fault(const char *format, ...)
{
	char words[512];
	va_list args;

	va_start(args, format);
	vsnprintf(words, sizeof words, format, args);
	va_end(args);
	fprintf(stderr, "after %u states, the shortest way to a fault:\n", running->count);
	print_way(running, running->parent);
	print_step(running, &running->step);
	fail_msg("%s", words);
	abort();
}

/* False: it is known. */
static bool
remember(struct explorer *e, uint64_t hash)
{
	uint32_t i;

	hash |= hash == 0;
	for (i = (uint32_t)hash & e->mask; e->seen[i] != 0; i = (i + 1) & e->mask)
		if (e->seen[i] == hash)
			return false;
	e->seen[i] = hash;
	return true;
}

static void
walk_to(struct explorer *e, uint32_t state)
{
	const struct step *step = &e->steps[state];

	if (state == 0) {
		e->system->start();
		return;
	}
	walk_to(e, step->parent);
	if (!e->system->act(step->action, step->nth))
		fail_msg("the system is not deterministic");
}

static void
visit(struct explorer *e, uint32_t state, void *copy)
{
	const struct explore_system *system = e->system;
	bool possible;

	walk_to(e, state);
	memcpy(copy, system->memory, system->size);
	e->parent = state;
	for (uint32_t action = 0; action < system->actions; action++)
		for (uint32_t nth = 0;; nth++) {
			e->step = (struct step){
				.parent = state, .action = (uint16_t)action, .nth = (uint16_t)nth
			};
			possible = system->act(action, nth);
			if (possible) {
				e->transitions++;
				if (remember(e, system->hash())) {
					if (e->count < e->max)
						e->steps[e->count++] = e->step;
					system->check();
				}
			}
			memcpy(system->memory, copy, system->size);
			if (!possible)
				break;
		}
}

void
explore(const struct explore_system *system, uint32_t max_states, struct explore_result *ret_result)
{
	struct explorer e = { .system = system, .max = max_states, .mask = 15, .count = 1, .level_end = 1 };
	void *copy = malloc(system->size);
	uint32_t state;

	while (e.mask / 4 < max_states)
		e.mask = e.mask * 2 + 1;
	e.steps = calloc(max_states, sizeof *e.steps);
	e.seen = calloc((size_t)e.mask + 1, sizeof *e.seen);
	if (copy == NULL || e.steps == NULL || e.seen == NULL)
		abort();
	running = &e;
	system->start();
	remember(&e, system->hash());
	for (state = 0; state < e.count && e.count < max_states; state++) {
		if (state == e.level_end) {
			e.depth++;
			e.level_end = e.count;
		}
		visit(&e, state, copy);
	}
	*ret_result = (struct explore_result){
		.states = e.count, .depth = e.depth, .transitions = e.transitions, .complete = state == e.count
	};
	running = NULL;
	free(copy);
	free(e.steps);
	free(e.seen);
}
