/* args.c - options as the tables say, so that they read alike in every command. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/args.h"
#include "orchardctl/help.h"
#include "orchardctl/nearest.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

enum { NAME_SIZE = 64 };

void
args_init(struct args *args, struct ctl *ctl, int argc, char **argv)
{
	*args = (struct args){ .ctl = ctl, .argc = argc, .argv = argv, .at = 1 };
}

int
args_fail(struct args *args, const char *fmt, ...)
{
	const struct command *command = args->ctl->command;
	char text[1024];
	va_list list;

	va_start(list, fmt);
	vsnprintf(text, sizeof text, fmt, list);
	va_end(list);
	if (command != NULL)
		ctl_error(
			"%s: %s\n'orchardctl %s --help' tells how it is used", command->name, text, command->name);
	else
		ctl_error("%s\n'orchardctl --help' tells how it is used", text);
	return args->status = CTL_USAGE;
}

static int
args_stop(struct args *args, int status)
{
	args->status = status;
	return ARG_STOP;
}

static bool
args_take_output(struct args *args)
{
	static const char *const names[] = { "table", "json", "yaml", "name" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (strcmp(args->value, names[i]) == 0) {
			args->ctl->output = (enum output)i;
			args->ctl->output_given = true;
			return true;
		}
	}
	args_fail(args, "-o takes table, json, yaml or name, not \"%s\"", args->value);
	return false;
}

/* False: the command line ends here, args->status says how. */
static bool
args_take_global(struct args *args, int code)
{
	struct ctl *ctl = args->ctl;

	switch (code) {
	case GLOBAL_SERVER:
		ctl->server_flag = args->value;
		return true;
	case GLOBAL_KEY:
		ctl->key_flag = args->value;
		return true;
	case GLOBAL_CONTEXT:
		ctl->context_flag = args->value;
		return true;
	case GLOBAL_RETRY:
		return args_duration(args, "--retry", &ctl->retry_seconds);
	case GLOBAL_NO_COLOR:
		ctl->no_color = true;
		return true;
	case 'o':
		return args_take_output(args);
	case 'q':
		ctl->quiet = true;
		return true;
	case 'V':
		help_version();
		break;
	default:
		help_print(ctl->command);
	}
	args->status = CTL_OK;
	return false;
}

static const struct option_spec *
option_in(const struct option_spec *table, const char *name, size_t len, int letter)
{
	for (; table != NULL && table->name != NULL; table++)
		if (name != NULL ? strncmp(table->name, name, len) == 0 && table->name[len] == '\0'
				 : table->code == letter)
			return table;
	return NULL;
}

const struct option_spec *
args_option(const struct command *command, const char *name, size_t len, int letter)
{
	const struct option_spec *spec = command != NULL ? option_in(command->options, name, len, letter) : NULL;

	return spec != NULL ? spec : option_in(global_options, name, len, letter);
}

static int
args_unknown(struct args *args, const char *name, size_t len)
{
	const struct command *command = args->ctl->command;
	char given[NAME_SIZE];
	struct nearest nearest;

	snprintf(given, sizeof given, "%.*s", (int)(len < NAME_SIZE ? len : NAME_SIZE - 1), name);
	nearest_init(&nearest, given);
	for (const struct option_spec *o = command != NULL ? command->options : NULL; o != NULL && o->name; o++)
		nearest_try(&nearest, o->name);
	for (const struct option_spec *o = global_options; o->name != NULL; o++)
		nearest_try(&nearest, o->name);
	if (nearest.word != NULL)
		args_fail(args, "there is no option --%s; do you mean --%s?", given, nearest.word);
	else
		args_fail(args, "there is no option --%s", given);
	return ARG_STOP;
}

/* Whether the value is one of those that the table names, if it names any. */
static bool
args_choose(struct args *args, const struct option_spec *spec)
{
	size_t len = args->value != NULL ? strlen(args->value) : 0;

	for (const char *word = spec->choices; word != NULL && *word != '\0'; word += strspn(word, " ")) {
		size_t word_len = strcspn(word, " ");

		if (word_len == len && strncmp(word, args->value, len) == 0)
			return true;
		word += word_len;
	}
	if (spec->choices == NULL)
		return true;
	args_fail(args, "--%s takes one of: %s; not \"%s\"", spec->name, spec->choices, args->value);
	return false;
}

static bool
is_global(const struct option_spec *spec)
{
	return option_in(global_options, spec->name, strlen(spec->name), 0) == spec;
}

/* An option is found; value is what the same word holds of it, or NULL. Returns 0 when it was a global one. */
static int
args_take(struct args *args, const struct option_spec *spec, char *value)
{
	if (spec->value == NULL && value != NULL) {
		args_fail(args, "--%s takes no value", spec->name);
		return ARG_STOP;
	}
	if (spec->value != NULL && value == NULL) {
		if (args->at >= args->argc) {
			args_fail(args, "--%s needs a value: %s", spec->name, spec->value);
			return ARG_STOP;
		}
		value = args->argv[args->at++];
	}
	args->value = value;
	if (!is_global(spec))
		return args_choose(args, spec) ? spec->code : ARG_STOP;
	return args_take_global(args, spec->code) ? 0 : args_stop(args, args->status);
}

static int
args_long(struct args *args, char *word)
{
	char *name = word + 2, *equals = strchr(name, '=');
	size_t len = equals != NULL ? (size_t)(equals - name) : strlen(name);
	const struct option_spec *spec;

	spec = args_option(args->ctl->command, name, len, 0);
	if (spec == NULL)
		return args_unknown(args, name, len);
	return args_take(args, spec, equals != NULL ? equals + 1 : NULL);
}

static int
args_short(struct args *args)
{
	int letter = (unsigned char)*args->cluster++;
	const struct option_spec *spec;
	char *value = NULL;

	spec = args_option(args->ctl->command, NULL, 0, letter);
	if (spec == NULL) {
		args_fail(args, "there is no option -%c", letter);
		return ARG_STOP;
	}
	if (spec->value != NULL && *args->cluster != '\0') {
		/* The rest of a word of argv, which may be written to. */
		value = args->argv[args->at - 1] + strlen(args->argv[args->at - 1]) - strlen(args->cluster);
		args->cluster = "";
	}
	return args_take(args, spec, value);
}

int
args_next(struct args *args)
{
	int code = 0;

	while (code == 0) {
		char *word;

		if (args->cluster != NULL && *args->cluster != '\0') {
			code = args_short(args);
			continue;
		}
		if (args->at >= args->argc)
			return ARG_END;
		word = args->argv[args->at++];
		if (args->words_only || word[0] != '-' || word[1] == '\0') {
			args->value = word;
			return ARG_WORD;
		}
		if (strcmp(word, "--") == 0)
			args->words_only = true;
		else if (word[1] == '-')
			code = args_long(args, word);
		else
			args->cluster = word + 1;
	}
	return code;
}

int
args_words(struct args *args, char **words)
{
	int code, count = 0;

	while ((code = args_next(args)) == ARG_WORD)
		words[count++] = args->value;
	return code == ARG_END ? count : -1;
}

bool
args_nothing(struct args *args)
{
	int code = args_next(args);

	if (code == ARG_WORD)
		args_fail(args, "what is \"%s\"?", args->value);
	return code == ARG_END;
}

static bool
number_parse(const char *text, double *ret, char **ret_end)
{
	errno = 0;
	*ret = strtod(text, ret_end);
	return *ret_end != text && errno == 0 && isfinite(*ret) && (text[0] != ' ');
}

bool
args_number(struct args *args, const char *what, double min, double max, double *ret)
{
	double number;
	char *end;

	if (number_parse(args->value, &number, &end) && *end == '\0' && number >= min && number <= max) {
		*ret = number;
		return true;
	}
	args_fail(args, "%s takes a number from %g to %g, not \"%s\"", what, min, max, args->value);
	return false;
}

bool
args_whole(struct args *args, const char *what, long long min, long long max, long long *ret)
{
	long long number;
	char *end;

	errno = 0;
	number = strtoll(args->value, &end, 10);
	if (end != args->value && *end == '\0' && errno == 0 && number >= min && number <= max) {
		*ret = number;
		return true;
	}
	args_fail(args, "%s takes a whole number from %lld to %lld, not \"%s\"", what, min, max, args->value);
	return false;
}

bool
args_label(struct args *args, const char **ret_label)
{
	*ret_label = args->value;
	if (args->value[0] != '=' && strchr(args->value, '=') != NULL)
		return true;
	args_fail(args, "--label takes NAME=VALUE, not \"%s\"", args->value);
	return false;
}

bool
args_duration(struct args *args, const char *what, double *ret_seconds)
{
	static const struct {
		const char *unit;
		double seconds;
	} units[] = { { "", 1 }, { "s", 1 }, { "m", 60 }, { "h", 3600 }, { "d", 86400 }, { "ms", 0.001 } };
	double number;
	char *end;

	if (number_parse(args->value, &number, &end) && number >= 0) {
		for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
			if (strcmp(end, units[i].unit) == 0) {
				*ret_seconds = number * units[i].seconds;
				return true;
			}
		}
	}
	args_fail(args, "%s takes a time such as 10, 90s, 15m, 2h or 1d, not \"%s\"", what, args->value);
	return false;
}
