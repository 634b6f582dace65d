/* test_args.c - command lines, right and wrong. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/args.h"
#include "orchardctl/nearest.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>

enum { OPT_LONG_ONLY = 700 };

static const struct option_spec options[] = {
	{ "follow", 'f', NULL, "", NULL },
	{ "count", 'n', "N", "", NULL },
	{ "long-only", OPT_LONG_ONLY, "X", "", NULL },
	{ NULL, 0, NULL, NULL, NULL },
};
static const struct command command = { .name = "try", .options = options, .examples = "", .words = "" };

struct line {
	struct ctl ctl;
	struct args args;
	char *argv[16];
	char words[16][32];
};

static void
line_set(struct line *line, const char *const *words)
{
	int argc = 0;

	*line = (struct line){ .ctl = { .command = &command } };
	for (; words[argc] != NULL; argc++) {
		strcpy(line->words[argc], words[argc]);
		line->argv[argc] = line->words[argc];
	}
	args_init(&line->args, &line->ctl, argc, line->argv);
}

#define LINE(line, ...) line_set(line, (const char *const[]){ "try", __VA_ARGS__, NULL })

static void
expect(struct line *line, int code, const char *value)
{
	assert_int_equal(args_next(&line->args), code);
	if (value != NULL)
		assert_string_equal(line->args.value, value);
}

static void
test_options_and_words_mix(void **state)
{
	struct line line;

	(void)state;
	LINE(&line, "a", "-f", "b", "--count", "3", "--long-only=x=y", "-n4", "-fn", "5", "-");
	expect(&line, ARG_WORD, "a");
	expect(&line, 'f', NULL);
	expect(&line, ARG_WORD, "b");
	expect(&line, 'n', "3");
	expect(&line, OPT_LONG_ONLY, "x=y");
	expect(&line, 'n', "4");
	expect(&line, 'f', NULL);
	expect(&line, 'n', "5");
	expect(&line, ARG_WORD, "-");
	expect(&line, ARG_END, NULL);
	expect(&line, ARG_END, NULL);
}

static void
test_nothing_is_an_option_behind_two_dashes(void **state)
{
	struct line line;

	(void)state;
	LINE(&line, "--", "-f", "--help", "--");
	expect(&line, ARG_WORD, "-f");
	expect(&line, ARG_WORD, "--help");
	expect(&line, ARG_WORD, "--");
	expect(&line, ARG_END, NULL);
}

static void
test_global_options_are_taken_on_the_way(void **state)
{
	struct line line;

	(void)state;
	LINE(&line, "-qo", "json", "a", "--server", "http://x", "--no-color", "--retry=2m");
	expect(&line, ARG_WORD, "a");
	expect(&line, ARG_END, NULL);
	assert_true(line.ctl.quiet && line.ctl.no_color && line.ctl.output_given);
	assert_int_equal(line.ctl.output, OUTPUT_JSON);
	assert_string_equal(line.ctl.server_flag, "http://x");
	assert_true(line.ctl.retry_seconds == 120);
}

static void
test_wrong_lines_are_refused(void **state)
{
	static const char *const wrong[][3] = { { "--folow" }, { "-x" }, { "--count" }, { "-n" }, { "--follow=1" },
		{ "-o", "xml" }, { "--retry", "soon" }, { "--retry", "-1" }, { "--" } };
	struct line line;

	(void)state;
	for (size_t i = 0; wrong[i][0] != NULL && strcmp(wrong[i][0], "--") != 0; i++) {
		LINE(&line, wrong[i][0], wrong[i][1]);
		expect(&line, ARG_STOP, NULL);
		assert_int_equal(line.args.status, CTL_USAGE);
	}
}

static void
test_numbers_and_times(void **state)
{
	static const struct {
		const char *text;
		double seconds; /* -1: wrong */
	} times[] = { { "10", 10 }, { "1.5s", 1.5 }, { "15m", 900 }, { "2h", 7200 }, { "1d", 86400 },
		{ "250ms", 0.25 }, { "0", 0 }, { "", -1 }, { "m", -1 }, { "10x", -1 }, { "-3", -1 }, { "nan", -1 },
		{ "inf", -1 }, { " 1", -1 } };
	struct line line;
	long long whole = 7;

	(void)state;
	for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
		double seconds = -1;

		LINE(&line, "--count", times[i].text);
		expect(&line, 'n', times[i].text);
		assert_int_equal(args_duration(&line.args, "--count", &seconds), times[i].seconds >= 0);
		assert_true(seconds == times[i].seconds);
	}
	LINE(&line, "-n", "12x", "-n", "3");
	expect(&line, 'n', "12x");
	assert_false(args_whole(&line.args, "-n", 1, 20, &whole));
	assert_int_equal(whole, 7);
	expect(&line, 'n', "3");
	assert_false(args_whole(&line.args, "-n", 4, 20, &whole));
	assert_true(args_whole(&line.args, "-n", 3, 3, &whole));
	assert_int_equal(whole, 3);
}

static void
test_nearest_word(void **state)
{
	static const struct {
		const char *given, *word;
	} cases[] = { { "lss", "ls" }, { "crate", "create" }, { "exce", "exec" }, { "l", "ls" },
		{ "heartbeet", "heartbeat" }, { "frobnicate", NULL }, { "xy", NULL } };
	static const char *const words[] = { "create", "exec", "heartbeat", "ls", "rm" };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct nearest nearest;

		nearest_init(&nearest, cases[i].given);
		for (size_t j = 0; j < sizeof words / sizeof *words; j++)
			nearest_try(&nearest, words[j]);
		if (cases[i].word == NULL)
			assert_null(nearest.word);
		else
			assert_string_equal(nearest.word, cases[i].word);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_options_and_words_mix),
		cmocka_unit_test(test_nothing_is_an_option_behind_two_dashes),
		cmocka_unit_test(test_global_options_are_taken_on_the_way),
		cmocka_unit_test(test_wrong_lines_are_refused),
		cmocka_unit_test(test_numbers_and_times),
		cmocka_unit_test(test_nearest_word),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
