/*
 * program.h - what is executed for a request: the shell and its text, or an argv.
 *
 * A text up to PROGRAM_MAX_ARGUMENT goes to the shell as its -c argument. The
 * kernel refuses longer ones (128 KiB an argument), so they are handed over in
 * an unlinked memory file that a short -c text evaluates and closes first.
 *
 * A login shell (login.h) always gets it that way. It may never come to read it:
 * a start file can end or replace the shell. Then nothing of the command has
 * run, and it is run without start files.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_PROGRAM_H
#define ORCHARD_AGENT_PROGRAM_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>

struct err;
struct json_object;

enum { PROGRAM_MAX_ARGUMENT = 100 << 10 };

struct program {
	char **argv; /* NULL at the end */
	char **paths; /* tried in this order, NULL at the end */
	int script_fd; /* -1: none */
	int script_target; /* the number the program expects it at */
	bool login; /* 0, 1 and 2 are /dev/null, and what they should be is at the three numbers after script_target */
};

/* root: where to look for shells ("" in the sandbox itself). */
struct program_request {
	struct json_object *command; /* string, or array of strings */
	bool login_shell;
	const char *root;
	const char *path; /* PATH of the command */
	const char *cwd; /* absolute; only a login shell is told */
};

/* ERR_NOT_FOUND: no shell in the image. */
int program_prepare(const struct program_request *request, struct program *ret_program, struct err *err) MUSTCHECK;
/* The agent's own program, with that option. */
void program_own(const char *option, struct program *ret_program);
void program_fini(struct program *program);
/* A login shell that runs, or has ended, has not begun with the command. */
bool program_is_unread(const struct program *program);
/* Makes a login shell that has not begun one without start files. */
void program_drop_login(struct program *program);

/* The shell that runs texts, bash if there is one; NULL: the image has none. */
const char *program_find_shell(const char *root, bool *ret_is_bash);
/* The kernel's memfd with data in it, rewound and sealed; -1 with errno. */
int program_memory_file(const void *data, size_t len) MUSTCHECK;

#endif
