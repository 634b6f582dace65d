/* test_turns.c - who is next, and which place everybody is told, as tables. */
/* SPDX-License-Identifier: MIT */
#include "spawn/turns.h"

#include <event2/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 2000 };

struct one {
	struct turn turn;
	char name[8];
	uint32_t place;
	unsigned told;
};

static struct event_base *base;
static struct turns *turns;
static struct one ones[MOST];
static int used;

static void
on_place(void *owner, uint32_t place, void *arg)
{
	struct one *one = owner;

	assert_ptr_equal(arg, ones);
	one->place = place;
	one->told++;
}

static int
set_up(void **state)
{
	struct turns_options options = { .tell = on_place, .arg = ones };

	(void)state;
	memset(ones, 0, sizeof ones);
	used = 0;
	base = event_base_new();
	turns = turns_create(base, &options);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	turns_free(turns);
	event_base_free(base);
	return 0;
}

/* Its line is its first letter. */
static struct one *
join(const char *name)
{
	struct one *one = &ones[used++];
	char line[] = { name[0], '\0' };

	snprintf(one->name, sizeof one->name, "%s", name);
	turns_join(turns, &one->turn, line, one);
	return one;
}

static struct one *
find(const char *name)
{
	for (int i = 0; i < used; i++) {
		if (strcmp(ones[i].name, name) == 0)
			return &ones[i];
	}
	fail();
	return NULL;
}

static const char *
take(void)
{
	struct turn *turn = turns_next(turns);
	struct one *one;

	if (turn == NULL)
		return "";
	one = turn->owner;
	assert_ptr_equal(turns_next(turns), turn); /* until it is taken */
	turns_take(turns, turn);
	assert_null(turn->line);
	return one->name;
}

/* Words: "a1" joins, "-a1" leaves, "!a1" is taken. At the end all that wait are taken, in the order of `rest`. */
static const struct {
	const char *steps, *rest;
} cases[] = {
	{ "", "" },
	{ "a1 a2 a3", "a1 a2 a3" },
	{ "a1 a2 a3 a4 b1", "a1 b1 a2 a3 a4" },
	{ "a1 a2 a3 b1 b2 c1", "a1 b1 c1 a2 b2 a3" },
	{ "a1 a2 a3 !a1 b1", "a2 b1 a3" },
	{ "a1 a2 b1 !a1 !b1 b2 b3", "a2 b2 b3" },
	{ "a1 a2 b1 !a1 b2 c1", "b1 a2 c1 b2" }, /* a, just served, comes after b; c is new */
	{ "a1 a2 a3 b1 -a1", "a2 b1 a3" }, /* who left was not served */
	{ "a1 b1 -a1 a2", "b1 a2" }, /* with its last one a line loses its place in the ring */
	{ "a1 b1 -b1 b2", "a1 b2" },
	{ "a1 -a1", "" },
	{ "a1 -a1 -a1 a2", "a2" },
	{ "a1 !a1 -a1 a2", "a2" },
};

static void
run_steps(const char *steps)
{
	char text[200], *rest = NULL;

	snprintf(text, sizeof text, "%s", steps);
	for (char *word = strtok_r(text, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
		if (*word == '-')
			turns_leave(turns, &find(word + 1)->turn);
		else if (*word == '!')
			assert_string_equal(take(), word + 1);
		else
			join(word);
	}
}

static void
test_order(void **state)
{
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char got[200] = "";
		uint32_t left;

		tear_down(state);
		set_up(state);
		run_steps(cases[i].steps);
		while ((left = turns_count(turns)) > 0) {
			snprintf(got + strlen(got), sizeof got - strlen(got), "%s%s", got[0] != '\0' ? " " : "",
				take());
			assert_int_equal(turns_count(turns), left - 1);
		}
		assert_null(turns_next(turns));
		assert_string_equal(got, cases[i].rest);
	}
}

/* Lets time pass until one more has been told. */
static void
run_until_told(const struct one *one, unsigned told)
{
	while (one->told < told)
		assert_int_equal(event_base_loop(base, EVLOOP_ONCE), 0);
}

/* What was told is the order in which they are taken, whatever the steps were. */
static void
test_places(void **state)
{
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint32_t place = 0;

		tear_down(state);
		set_up(state);
		run_steps(cases[i].steps);
		if (turns_count(turns) == 0)
			continue;
		run_until_told(turns_next(turns)->owner, 1);
		for (const char *name = take(); *name != '\0'; name = take()) {
			assert_int_equal(find(name)->place, ++place);
			assert_int_equal(find(name)->told, 1);
		}
	}
}

static void
test_a_thousand_in_one_line_hold_nobody_up(void **state)
{
	struct one *late;
	int before = 0;

	(void)state;
	for (int i = 0; i < 1000; i++)
		join("a");
	assert_string_equal(take(), "a");
	late = join("b");
	while (turns_next(turns)->owner != late) {
		take();
		before++;
	}
	assert_true(before <= 1);
	assert_int_equal(turns_count(turns), 1000 - before);
}

static void
test_only_news_are_told(void **state)
{
	struct one *first = join("a1"), *second = join("a2"), *other;

	(void)state;
	run_until_told(second, 1);
	assert_int_equal(second->place, 2);
	other = join("b1"); /* comes between */
	run_until_told(other, 1);
	assert_int_equal(other->place, 2);
	assert_int_equal(second->place, 3);
	assert_int_equal(first->told, 1);
}

static void
test_words(void **state)
{
	char words[TURNS_WORDS_SIZE];

	(void)state;
	turns_words(UINT32_MAX, words);
	assert_string_equal(words, "waits for its turn: place 4294967295");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_order, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_places, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_thousand_in_one_line_hold_nobody_up, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_only_news_are_told, set_up, tear_down),
		cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
