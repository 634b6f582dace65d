/*
 * command.h - what a command is, and what all of them share.
 *
 * A command is one entry of the table in command_table.c; parsing, --help, shell completion and the man page come
 * from that entry. stdout carries results only; everything else goes to stderr.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARDCTL_COMMAND_H
#define ORCHARDCTL_COMMAND_H

#include "base/cleanup.h"

#include <stdbool.h>

struct client;
struct err;
struct signals;

enum ctl_exit {
	CTL_OK = 0,
	CTL_FAILED = 1, /* the server refused, or it failed */
	CTL_USAGE = 2,
	CTL_UNREACHABLE = 3, /* no answer from the server */
	CTL_NOT_FOUND = 4,
	CTL_NOT_RUN = 125, /* of run and exec: the command could not be run */
	CTL_SIGNAL = 128, /* and the number of the signal */
};

enum output { OUTPUT_TABLE, OUTPUT_JSON, OUTPUT_YAML, OUTPUT_NAME };

/* Where the server is. */
struct server {
	char *url; /* without a slash at its end */
	char *key; /* secret; NULL: none */
	char *ca_file; /* NULL: the system's */
};

/* What the words on the command line may be; for completion. But for those with an S at the end it is the first word. */
enum word_kind {
	WORD_NONE,
	WORD_SANDBOX,
	WORD_SANDBOXES,
	WORD_THING, /* a sandbox, or a job */
	WORD_THINGS,
	WORD_JOBS, /* that have not ended */
	WORD_PROGRAM, /* a sandbox, then a command in it */
	WORD_PATCH, /* a sandbox, then a file here */
	WORD_PATHS, /* here or in a sandbox */
	WORD_SHELL,
	WORD_COMMAND,
	WORD_CONFIG, /* a verb, then a context */
	WORD_IMAGE /* an image, then a command in it */
};

/* An option; a table of them ends with one without a name. */
struct option_spec {
	const char *name; /* without its dashes */
	int code; /* what args_next() answers; a letter is its short form */
	const char *value; /* what follows it, in capitals; NULL: a switch */
	const char *help;
	const char *choices; /* words that its value can be, or NULL */
};

struct ctl;

struct command {
	const char *group; /* that begins with it, in --help; NULL: it belongs to the one before */
	const char *name;
	const char *words; /* after the options: "SANDBOX [--] COMMAND..." */
	const char *summary; /* half a line */
	const char *about; /* paragraphs */
	const char *examples; /* lines; "# " begins a remark */
	const struct option_spec *options; /* NULL: none but the global ones */
	int (*run)(struct ctl *ctl, int argc, char **argv); /* argv[0]: its name; the exit status */
	enum word_kind word_kind;
	bool hidden;
};

struct ctl {
	const struct command *command; /* that runs */
	struct server server; /* from ctl_open() on, as client is */
	struct client *client;
	struct signals *signals; /* NULL: signals end the process */
	enum output output;
	bool output_given, quiet, no_color;
	double retry_seconds;
	/* As given on the command line; NULL: not. */
	const char *server_flag, *key_flag, *context_flag;
};

/* Ends with one without a name. */
extern const struct command command_table[];
extern const struct option_spec global_options[];
/* NULL: there is none. */
const struct command *command_find(const char *name);

/*
 * Finds out where the server is, once the command line is read; nothing is sent. 0, or the exit status after it has
 * said what is wrong.
 */
int ctl_open(struct ctl *ctl) MUSTCHECK;
void ctl_close(struct ctl *ctl);
/* Whether colours go to this descriptor. */
bool ctl_is_colored(const struct ctl *ctl, int fd);

/* "orchardctl: ..." to stderr. Control characters other than line ends are shown, not sent. */
void ctl_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same, but not with --quiet. */
void ctl_note(const struct ctl *ctl, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Says why it failed, unless a signal ended it; the exit status for that. */
int ctl_fail(const struct ctl *ctl, const struct err *err) MUSTCHECK;

#endif
