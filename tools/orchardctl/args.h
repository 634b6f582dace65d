/*
 * args.h - the words of a command line, one after the other.
 *
 *	struct args args;
 *
 *	args_init(&args, ctl, argc, argv);
 *	while ((code = args_next(&args)) != ARG_END) {
 *		switch (code) {
 *		case 'f':
 *			follow = true;
 *			break;
 *		case ARG_WORD:
 *			id = args.value;
 *			break;
 *		default:
 *			return args.status;
 *		}
 *	}
 *
 * Options and words may be mixed; behind "--" everything is a word. Global options are taken along on the way.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARDCTL_ARGS_H
#define ORCHARDCTL_ARGS_H

#include "orchardctl/command.h"

enum { ARG_END = -1, ARG_WORD = -2, ARG_STOP = -3 };

struct args {
	struct ctl *ctl;
	int argc;
	char **argv; /* borrowed, as every value is */
	int at; /* the next word */
	const char *cluster; /* what is left of "-abc" */
	bool words_only;
	char *value; /* of the option, or the word */
	int status; /* with ARG_STOP: the exit status */
};

/* argv[0] is passed over. ctl->command NULL: global options only. */
void args_init(struct args *args, struct ctl *ctl, int argc, char **argv);
/* The code of an option, ARG_WORD, ARG_END; ARG_STOP after --help and after what is wrong, which has been said. */
int args_next(struct args *args);
/* Of a command without options: its words, how many; words has room for argc of them. -1: args->status. */
int args_words(struct args *args, char **words) MUSTCHECK;
/* Of one that takes nothing: false with args->status. */
bool args_nothing(struct args *args) MUSTCHECK;
/* Says what is wrong with the command line; CTL_USAGE, also in args->status. */
int args_fail(struct args *args, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* An option by its name, or, name NULL, by its letter: the command's own (NULL: none yet), or a global one. NULL: none. */
const struct option_spec *
args_option(const struct command *command, const char *name, size_t len, int letter) MUSTCHECK;

/* The value as a number in these limits, or false after args_fail(). what: "--timeout". */
bool args_number(struct args *args, const char *what, double min, double max, double *ret) MUSTCHECK;
bool args_whole(struct args *args, const char *what, long long min, long long max, long long *ret) MUSTCHECK;
/* A label to find things by: "NAME=VALUE". */
bool args_label(struct args *args, const char **ret_label) MUSTCHECK;
/* "10", "90s", "15m", "2h", "1d" in seconds. */
bool args_duration(struct args *args, const char *what, double *ret_seconds) MUSTCHECK;

#endif
